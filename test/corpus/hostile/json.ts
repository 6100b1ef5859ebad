/** The object as JSON text: what JSON parsers differ in, and how large, deep and odd it can be. */
import { maxObjectBytes } from '../../../core/encoding/json-body.ts';
import type { Ending, HostileCase } from './case.ts';
import { bytesEvent } from './event.ts';
import { bodyCase, object, replaced, request, text } from './object.ts';

const bytesCase = (id: string, expected: Ending, body: () => Uint8Array): HostileCase => ({
  id: `json/${id}`,
  expected: [expected],
  input: () => ({ event: bytesEvent(body()) }),
});

const documents: readonly HostileCase[] = [
  bodyCase('document/control', 'issued', text),
  bodyCase('document/control-with-blanks', 'issued', () => ` \n\t${text()}\r\n`),
  bodyCase('document/empty', 'invalid', () => ''),
  bodyCase('document/blank', 'invalid', () => ' '.repeat(1_000_000)),
  bodyCase('document/null', 'invalid', () => 'null'),
  bodyCase('document/true', 'invalid', () => 'true'),
  bodyCase('document/number', 'invalid', () => '1e999'),
  bodyCase('document/string', 'invalid', () => JSON.stringify(text())),
  bodyCase('document/array', 'invalid', () => `[${text()}]`),
  bodyCase('document/empty-object', 'invalid', () => '{}'),
  bodyCase('document/two', 'invalid', () => text() + text()),
  bodyCase('document/two-lines', 'invalid', () => `${text()}\n${text()}`),
  bodyCase('document/trailing-comma', 'invalid', () => text().replace(/\}$/, ',}')),
  bodyCase('document/comment', 'invalid', () => `/* */${text()}`),
  bodyCase('document/single-quotes', 'invalid', () => text().replaceAll('"', "'")),
  bodyCase('document/cut', 'invalid', () => text().slice(0, -1)),
  bodyCase('document/cut-in-string', 'invalid', () => text().slice(0, 40)),
  bodyCase('document/cut-in-escape', 'invalid', () => '{"a":"\\u00'),
  bodyCase('document/bom', 'invalid', () => `\ufeff${text()}`),
  bodyCase('document/nul-behind', 'invalid', () => `${text()}\0`),
  bodyCase('document/nul-in-string', 'invalid', () => text().replace('hostile', 'host\0ile')),
  bodyCase('document/line-end-in-string', 'invalid', () => text().replace('hostile', 'host\nile')),
  bodyCase('document/nan', 'invalid', () => text().replace('3600', 'NaN')),
  bodyCase('document/infinity', 'invalid', () => text().replace('3600', 'Infinity')),
  bodyCase('document/hex-number', 'invalid', () => text().replace('3600', '0x10')),
  bodyCase('document/leading-zero', 'invalid', () => text().replace('3600', '03600')),
  bodyCase('document/yaml', 'invalid', () => 'apiVersion: certificates.k8s.io/v1\nkind: CertificateSigningRequest\n'),
  bodyCase('document/xml', 'invalid', () => '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>'),
  bodyCase('document/form', 'invalid', () => `object=${encodeURIComponent(text())}`),
  bytesCase('document/utf-16le', 'invalid', () => Buffer.from(text(), 'utf16le')),
  bytesCase('document/utf-8-in-base64', 'issued', () => Buffer.from(text())),
  bytesCase('document/protobuf', 'invalid', () => Buffer.from([0x6b, 0x38, 0x73, 0, 0x0a, 0x20])),
  bytesCase('document/gzip', 'invalid', () => Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3])),
  bytesCase('document/invalid-utf-8', 'invalid', () => invalidUtf8(0xff)),
  bytesCase('document/overlong-utf-8', 'invalid', () => invalidUtf8(0xc0, 0xaf)),
  bytesCase('document/surrogate-in-utf-8', 'invalid', () => invalidUtf8(0xed, 0xa0, 0x80)),
  bytesCase('document/cut-utf-8', 'invalid', () => Buffer.concat([Buffer.from(text()), Buffer.from([0xe2, 0x82])])),
];

/** In a field that the function does not read: it would go back changed. */
function invalidUtf8(...octets: readonly number[]): Buffer {
  const [before = '', after = ''] = text().split('none', 2);
  return Buffer.concat([Buffer.from(before), Buffer.from(octets), Buffer.from(after)]);
}

const fill = (size: number, of: (missing: number) => string) => {
  const empty = JSON.stringify(replaced('metadata.annotations', { note: '' }));
  return empty.replace('"note":""', `"note":${of(size - empty.length + 2)}`);
};
const filler = (size: number) => fill(size, (missing) => JSON.stringify('x'.repeat(missing - 2)));

const sizes: readonly HostileCase[] = [
  bodyCase('size/at-the-cap', 'issued', () => filler(maxObjectBytes)),
  bodyCase('size/one-above', 'RequestTooLarge', () => filler(maxObjectBytes + 1)),
  bodyCase('size/1.6-mib', 'RequestTooLarge', () => filler(1_677_722)),
  bodyCase('size/6-mib', 'RequestTooLarge', () => filler(6 * 1_048_576)),
  bytesCase('size/6-mib-of-zeros', 'RequestTooLarge', () => Buffer.alloc(6 * 1_048_576)),
  // Three bytes for one character: the cap is about bytes.
  bodyCase('size/cap-in-characters-three-times-in-bytes', 'RequestTooLarge', () =>
    fill(maxObjectBytes, (missing) => JSON.stringify('\u20ac'.repeat(missing - 2))),
  ),
  bodyCase('size/1.5-mib-of-escapes', 'issued', () =>
    fill(1_500_000, (missing) => `"${'\\u0041'.repeat((missing - 2) / 6)}"`),
  ),
  bodyCase('size/1.5-mib-of-backslashes', 'issued', () =>
    fill(1_500_000, (missing) => `"${'\\\\'.repeat((missing - 2) / 2)}"`),
  ),
  bodyCase('size/1.5-mib-of-quotes', 'invalid', () => '"'.repeat(1_500_001)),
  bodyCase('size/1.5-mib-of-zeros-in-a-number', 'issued', () =>
    fill(1_500_000, (missing) => `1${'0'.repeat(missing - 1)}`),
  ),
  bodyCase('size/1.5-mib-of-digits-behind-the-point', 'issued', () =>
    fill(1_500_000, (missing) => `0.${'7'.repeat(missing - 2)}`),
  ),
  bodyCase('size/700000-numbers', ['issued', 'invalid'], () =>
    fill(1_500_000, (missing) => `[${'0,'.repeat((missing - 3) >> 1)}0]`),
  ),
  bodyCase('size/500000-arrays', ['issued', 'invalid'], () =>
    fill(1_500_000, (missing) => `[${'[],'.repeat((missing - 4) / 3)}[]]`),
  ),
  bodyCase('size/500000-objects', ['issued', 'invalid'], () =>
    fill(1_500_000, (missing) => `[${'{},'.repeat((missing - 4) / 3)}{}]`),
  ),
  bodyCase('size/150000-keys', ['issued', 'invalid'], () => {
    const keys = Array.from({ length: 120_000 }, (_, i) => `"k${i}":0`);
    return fill(1_500_000, () => `{${keys.join(',')}}`);
  }),
  // Integer-like keys go into another table of the engine, and these hash alike in a naive one.
  bodyCase('size/100000-number-keys', ['issued', 'invalid'], () => {
    const keys = Array.from({ length: 100_000 }, (_, i) => `"${i * 40_000}":0`);
    return fill(1_500_000, () => `{${keys.join(',')}}`);
  }),
  bodyCase('size/one-key-300000-times', ['issued', 'invalid'], () =>
    fill(1_500_000, () => `{${'"k":0,'.repeat(240_000)}"k":0}`),
  ),
];

const nested = (depth: number, open = '[', close = ']') => open.repeat(depth) + close.repeat(depth);
const depths: readonly HostileCase[] = [
  bodyCase('depth/1.5-mb-of-open-arrays', 'invalid', () => '['.repeat(1_500_000)),
  bodyCase('depth/1.5-mb-of-open-objects', 'invalid', () => '{"a":'.repeat(300_000)),
  bodyCase('depth/750000-arrays', 'invalid', () => nested(750_000)),
  bodyCase('depth/250000-objects', 'invalid', () => nested(250_000, '{"a":', '}').replace('{"a":}', '{"a":0}')),
  ...[10, 50].map((depth) =>
    bodyCase(`depth/${depth}-in-an-ordinary-object`, 'issued', () => fill(1, () => nested(depth))),
  ),
  ...[90, 100, 110].map((depth) =>
    bodyCase(`depth/${depth}-in-an-ordinary-object`, ['issued', 'invalid'], () => fill(1, () => nested(depth))),
  ),
  // Parsing takes any depth; what walks the result afterwards, once the certificate is there, may not.
  ...[1_000, 5_000, 10_000, 100_000, 700_000].map((depth) =>
    bodyCase(`depth/${depth}-in-an-ordinary-object`, 'invalid', () => fill(1, () => nested(depth))),
  ),
  bodyCase('depth/100000-in-conditions', 'invalid', () =>
    text().replace('"conditions":[', `"conditions":[${nested(100_000)},`),
  ),
  bodyCase('depth/brackets-in-a-string', 'issued', () =>
    replaced('metadata.annotations', { note: '[{'.repeat(100_000) }),
  ),
  bodyCase('depth/brackets-behind-an-escaped-quote', 'issued', () =>
    replaced('metadata.annotations', { note: `\\"${'['.repeat(1_000)}"\\` }),
  ),
  bodyCase('depth/closed-more-than-opened', 'invalid', () => ']'.repeat(1_000_000)),
];

const keys: readonly HostileCase[] = [
  bodyCase('keys/proto', 'issued', () => text().replace('{', '{"__proto__":{"hasCertificate":true},')),
  bodyCase('keys/proto-in-spec', 'issued', () =>
    text().replace('"spec":{', '"spec":{"__proto__":{"usages":["cert sign"]},'),
  ),
  // What the prototype would lend must be taken for absent.
  bodyCase('keys/proto-for-spec', 'invalid', () => {
    const { spec, ...rest } = object();
    return JSON.stringify(rest).replace('{', `{"__proto__":${JSON.stringify({ spec })},`);
  }),
  bodyCase('keys/constructor', 'issued', () =>
    text().replace('{', '{"constructor":{"prototype":{"a":1}},"toString":1,"hasOwnProperty":null,'),
  ),
  bodyCase('keys/to-json', 'issued', () => text().replace('{', '{"toJSON":"x","then":1,"valueOf":2,')),
  bodyCase('keys/then', 'issued', () => text().replace('"metadata":{', '"then":null,"metadata":{"then":{},')),
  bodyCase('keys/empty', 'issued', () => text().replace('{', '{"":"","\\u0000":1,')),
  bodyCase('keys/lone-surrogate', 'issued', () => text().replace('{', '{"\\ud800":"\\udc00",')),
  // The last one of a key counts, in Go as here.
  bodyCase('keys/kind-twice-last-right', 'issued', () => text().replace('{', '{"kind":"Pod",')),
  bodyCase('keys/kind-twice-last-wrong', 'invalid', () => text().replace(/\}$/, ',"kind":"Pod"}')),
  bodyCase('keys/request-twice', ['RequestMalformed', 'invalid'], () =>
    text().replace('"signerName"', '"request":"AAAA","signerName"'),
  ),
  bodyCase('keys/status-twice', 'ignored', () => text().replace(/\}$/, ',"status":{}}')),
  bodyCase('keys/other-case', 'invalid', () => text().replace('"spec"', '"Spec"')),
  bodyCase('keys/escaped', 'issued', () => text().replace('"spec"', '"\\u0073pec"')),
  bodyCase('keys/dotted', 'invalid', () => ({ 'metadata.uid': 'x', 'spec.request': request.toString('base64') })),
];

export const jsonCases: readonly HostileCase[] = [...documents, ...sizes, ...depths, ...keys];
