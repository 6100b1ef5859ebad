/** The object as JSON: what JSON parsers differ in, and values of the wrong type, size and number in every field. */
import { makeRequest } from '../../harness/requests.ts';
import { maxObjectBytes } from '../../../core/kubernetes.ts';
import type { Ending, HostileCase } from './case.ts';
import { approvedObject, bytesEvent, signEvent } from './event.ts';

const request = makeRequest({ subject: { CN: 'hostile' } }).bytes;
const base64 = request.toString('base64');
let uids = 0;
const object = () => approvedObject({ uid: `json-${++uids}`, request });
const text = () => JSON.stringify(object());

type Json = Record<string, unknown>;

/** The object with one field replaced, the path dotted. `undefined` leaves it out. */
export function replaced(path: string, value: unknown, base: object = object()): Json {
  const copy = structuredClone(base) as Json;
  const names = path.split('.');
  const last = names.pop() ?? '';
  const holder = names.reduce<Json>((inner, name) => inner[name] as Json, copy);
  if (value === undefined) delete holder[last];
  else holder[last] = value;
  return copy;
}

const bodyCase = (id: string, expected: Ending | readonly Ending[], body: () => unknown): HostileCase => ({
  id: `json/${id}`,
  expected: typeof expected === 'string' ? [expected] : expected,
  input: () => ({ event: signEvent(body()) }),
});
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

function invalidUtf8(...octets: readonly number[]): Buffer {
  const [before = '', after = ''] = text().split('hostile', 2);
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
  bodyCase('keys/dotted', 'invalid', () => ({ 'metadata.uid': 'x', 'spec.request': base64 })),
];

const everyType: readonly (readonly [string, unknown])[] = [
  ['null', null],
  ['true', true],
  ['zero', 0],
  ['number', 1.5],
  ['string', 'x'],
  ['empty-string', ''],
  ['array', []],
  ['array-of-null', [null]],
  ['array-of-arrays', [[], [[]]]],
  ['object', {}],
  ['object-with-length', { length: 1, 0: 'client auth' }],
  ['absent', undefined],
];
/** Fields that are read, and what they may end in when of the wrong type. A few wrong ones are right. */
const fields: Readonly<Record<string, readonly Ending[]>> = {
  apiVersion: ['invalid'],
  kind: ['invalid'],
  metadata: ['invalid'],
  'metadata.name': ['invalid', 'issued'],
  'metadata.uid': ['invalid', 'issued', 'UidReused'],
  spec: ['invalid'],
  'spec.request': ['invalid', 'RequestMalformed'],
  'spec.signerName': ['invalid', 'ignored'],
  'spec.usages': ['invalid', 'SignerValidationFailure'],
  'spec.expirationSeconds': ['invalid', 'issued'],
  'spec.username': ['invalid', 'issued'],
  'spec.groups': ['invalid', 'issued'],
  status: ['invalid', 'ignored'],
  'status.conditions': ['invalid', 'ignored'],
  'status.certificate': ['invalid', 'issued', 'ignored'],
};
const types: readonly HostileCase[] = Object.entries(fields).flatMap(([field, expected]) =>
  everyType.map(([id, value]) => bodyCase(`type/${field}/${id}`, expected, () => replaced(field, value))),
);
/** Fields that nobody reads, and that go back as they came. */
const unread = ['metadata.annotations', 'spec.extra', 'spec.uid', 'metadata.resourceVersion', 'status.unknown'];
const unreadTypes: readonly HostileCase[] = unread.flatMap((field) =>
  everyType.map(([id, value]) => bodyCase(`unread/${field}/${id}`, 'issued', () => replaced(field, value))),
);

const seconds = (value: string) => () => text().replace('3600', value);
const numbers: readonly HostileCase[] = (
  [
    ['-0', ['issued', 'invalid']],
    ['0', ['issued', 'invalid']],
    ['-1', ['issued', 'invalid']],
    ['1', ['issued', 'invalid']],
    ['599', ['issued', 'invalid']],
    ['1.5', ['invalid']],
    ['3600.0', ['issued']],
    ['3.6e3', ['issued']],
    ['1e-400', ['issued', 'invalid']],
    ['1e999', ['invalid']],
    ['-1e999', ['invalid']],
    ['2147483647', ['issued']],
    ['2147483648', ['invalid']],
    ['-2147483648', ['issued', 'invalid']],
    ['-2147483649', ['invalid']],
    ['4294968296', ['invalid']],
    ['9007199254740993', ['invalid']],
    ['18446744073709555216', ['invalid']],
    [`1${'0'.repeat(1_000)}`, ['invalid']],
  ] as const
).map(([value, expected]) =>
  bodyCase(`expiration-seconds/${value.length > 30 ? 'of-1001-digits' : value}`, expected, seconds(value)),
);

const uid = (value: unknown) => () => replaced('metadata.uid', value);
const uids10: readonly HostileCase[] = [
  ...(
    [
      ['hash', 'a#b'],
      ['slash', 'a/b'],
      ['up', '../a'],
      ['percent', 'a%23b'],
      ['space', 'a b'],
      ['nul', 'a\0b'],
      ['line-end', 'a\nb'],
      ['line-end-behind', 'a\n'],
      ['quote', "a';DROP TABLE records;--"],
      ['unicode', 'ab\u00e4c'],
      ['full-width', '\uff41'],
      ['bidi', 'a\u202eb'],
      ['lone-surrogate', 'a\ud800'],
      ['10-kb', 'a'.repeat(10_240)],
      ['254', 'a'.repeat(254)],
      ['1-mb', 'a'.repeat(1_000_000)],
      ['dollar', '$ne'],
      ['dash', '-'],
    ] as const
  ).map(([id, value]) => bodyCase(`uid/${id}`, 'invalid', uid(value))),
  bodyCase('uid/253', 'issued', uid('a'.repeat(253))),
  bodyCase('uid/proto', ['issued', 'invalid'], uid('__proto__')),
  bodyCase('uid/constructor', 'issued', uid('constructor')),
  bodyCase('uid/name-line-end', 'invalid', () => replaced('metadata.name', 'a\nb')),
];

const encodedRequest = (value: string) => () => replaced('spec.request', value);
const base64Forms: readonly HostileCase[] = (
  [
    ['url-alphabet', Buffer.from('\u00ff\u00fb'.repeat(30), 'latin1').toString('base64url')],
    ['line-ends', base64.replaceAll(/(.{76})/g, '$1\n')],
    ['blank-before', ` ${base64}`],
    ['blank-behind', `${base64} `],
    ['no-padding', Buffer.from('ab').toString('base64').replaceAll('=', '')],
    ['spare-bits', 'QR=='],
    ['padding-alone', '===='],
    ['padding-inside', `QQ==${base64}`],
    ['three-paddings', 'Q==='],
    ['high', `${base64.slice(0, -4)}\u00e4\u00e4\u00e4\u00e4`],
    ['nul', `${base64}\0\0\0\0`],
    ['pem-not-encoded', request.toString('latin1')],
    ['data-url', `data:application/x-pem-file;base64,${base64}`],
    ['hex', request.toString('hex').slice(0, -1)],
  ] as const
).map(([id, value]) => bodyCase(`base64/${id}`, 'invalid', encodedRequest(value)));
const base64More: readonly HostileCase[] = [
  bodyCase('base64/twice', 'RequestMalformed', encodedRequest(Buffer.from(base64).toString('base64'))),
  bodyCase('base64/1-mb', 'RequestTooLarge', encodedRequest('A'.repeat(1_000_000))),
  bodyCase('base64/1-mb-of-nonsense', ['RequestTooLarge', 'invalid'], encodedRequest('!'.repeat(1_000_000))),
];

const many = (count: number, of: (i: number) => unknown) => Array.from({ length: count }, (_, i) => of(i));
const approved = { type: 'Approved', status: 'True' };
const values: readonly HostileCase[] = [
  bodyCase('value/10000-groups', 'issued', () =>
    replaced(
      'spec.groups',
      many(10_000, (i) => `g${i}`),
    ),
  ),
  bodyCase('value/100000-groups', 'invalid', () =>
    replaced(
      'spec.groups',
      many(100_000, (i) => `g${i}`),
    ),
  ),
  bodyCase('value/group-of-1-mb', 'issued', () => replaced('spec.groups', ['g'.repeat(1_000_000)])),
  bodyCase('value/username-of-1-mb', 'issued', () => replaced('spec.username', 'u'.repeat(1_000_000))),
  bodyCase('value/username-lone-surrogate', ['issued', 'invalid'], () => replaced('spec.username', '\ud800')),
  bodyCase('value/username-escape-sequence', 'issued', () => replaced('spec.username', '\u001b[2J\r\n\u202e')),
  bodyCase('value/10000-usages', 'SignerValidationFailure', () =>
    replaced(
      'spec.usages',
      many(10_000, (i) => `u${i}`),
    ),
  ),
  bodyCase('value/10000-times-one-usage', ['issued', 'SignerValidationFailure'], () =>
    replaced(
      'spec.usages',
      many(10_000, () => 'client auth'),
    ),
  ),
  bodyCase('value/usage-of-1-mb', 'SignerValidationFailure', () => replaced('spec.usages', ['u'.repeat(1_000_000)])),
  bodyCase('value/usage-proto', 'SignerValidationFailure', () =>
    replaced('spec.usages', ['client auth', '__proto__', 'constructor', 'toString']),
  ),
  bodyCase('value/usage-escape-sequence', 'SignerValidationFailure', () =>
    replaced('spec.usages', ['client auth', '\u001b[2J\r\nx\u202e\ud800']),
  ),
  bodyCase('value/usage-other-case', 'SignerValidationFailure', () => replaced('spec.usages', ['Client Auth'])),
  bodyCase('value/usage-blank-behind', 'SignerValidationFailure', () => replaced('spec.usages', ['client auth '])),
  bodyCase('value/no-usages', 'SignerValidationFailure', () => replaced('spec.usages', [])),
  bodyCase('value/1000-conditions', ['issued', 'invalid'], () =>
    replaced(
      'status.conditions',
      many(1_000, () => approved),
    ),
  ),
  bodyCase('value/30000-conditions', 'invalid', () =>
    replaced(
      'status.conditions',
      many(30_000, () => approved),
    ),
  ),
  bodyCase('value/approved-in-lower-case', 'ignored', () =>
    replaced('status.conditions', [{ type: 'approved', status: 'True' }]),
  ),
  bodyCase('value/approved-unknown', 'ignored', () =>
    replaced('status.conditions', [{ type: 'Approved', status: 'Unknown' }]),
  ),
  bodyCase('value/approved-and-not', 'ignored', () =>
    replaced('status.conditions', [approved, { type: 'Approved', status: 'False' }]),
  ),
  bodyCase('value/approved-and-denied', 'ignored', () =>
    replaced('status.conditions', [approved, { type: 'Denied', status: 'False' }]),
  ),
  bodyCase('value/approved-and-failed', 'ignored', () => replaced('status.conditions', [approved, { type: 'Failed' }])),
  bodyCase('value/approved-is-a-list', 'invalid', () =>
    replaced('status.conditions', [{ type: ['Approved'], status: 'True' }]),
  ),
  bodyCase('value/conditions-object', 'invalid', () => replaced('status.conditions', { 0: approved, length: 1 })),
  bodyCase('value/other-signer', 'ignored', () => replaced('spec.signerName', 'example.com/x')),
  bodyCase('value/signer-proto', 'ignored', () => replaced('spec.signerName', '__proto__')),
  bodyCase('value/signer-of-571', 'ignored', () => replaced('spec.signerName', `a.b/${'c'.repeat(567)}`)),
  bodyCase('value/signer-of-1-mb', 'invalid', () => replaced('spec.signerName', 'a'.repeat(1_000_000))),
  bodyCase('value/v2', 'invalid', () => replaced('apiVersion', 'certificates.k8s.io/v2')),
  bodyCase('value/list', 'invalid', () => ({
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequestList',
    items: [object()],
  })),
  bodyCase('value/v1beta1-without-signer', 'issued', () => {
    // Neither kubelet signer fits, so the default is legacy-unknown.
    return replaced('spec.signerName', undefined, { ...object(), apiVersion: 'certificates.k8s.io/v1beta1' });
  }),
];

export const jsonCases: readonly HostileCase[] = [
  ...documents,
  ...sizes,
  ...depths,
  ...keys,
  ...types,
  ...unreadTypes,
  ...numbers,
  ...uids10,
  ...base64Forms,
  ...base64More,
  ...values,
];
