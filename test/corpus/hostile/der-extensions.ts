/**
 * Alternative names, and the extensions and attributes that carry them: names of every type and length, and requests
 * that hold two answers to one question.
 */
import * as der from '../../harness/x509/der-writer.ts';
import {
  attribute,
  directoryName,
  encodeExtensions,
  encodeSans,
  extensionRequestType,
  otherName,
  registeredId,
  type ExtensionSpec,
  type RequestSpec,
} from '../../harness/x509/requests.ts';
import type { Ending, HostileCase } from './case.ts';
import { specCase } from './request.ts';

const malformed = 'RequestMalformed';
const latin1 = (text: string) => Buffer.from(text, 'latin1');
const many = (count: number, of: (i: number) => Uint8Array) => Array.from({ length: count }, (_, i) => of(i));
const plain = der.utf8('x');

const sanValue = (value: Uint8Array): RequestSpec => ({
  subject: { CN: 'hostile' },
  extensions: [{ oid: '2.5.29.17', value }],
});
const names = (...general: readonly Uint8Array[]) => sanValue(der.sequence(...general));
const dns = (text: string) => der.primitive(2, latin1(text));
const email = (text: string) => der.primitive(1, latin1(text));
const uri = (text: string) => der.primitive(6, latin1(text));
const ip = (...octets: readonly number[]) => der.primitive(7, Buffer.from(octets));
const repeat = (count: number, octet = 1) => Array.from({ length: count }, () => octet);

const alternativeNames: readonly HostileCase[] = (
  [
    ['empty-value', malformed, sanValue(Buffer.alloc(0))],
    ['no-names', ['issued', malformed], names()],
    ['null', malformed, sanValue(der.nothing())],
    ['set', malformed, sanValue(der.set(dns('a.example')))],
    ['octet-string-twice', malformed, sanValue(der.octets(der.sequence(dns('a.example'))))],
    [
      'two-values',
      malformed,
      sanValue(Buffer.concat([der.sequence(dns('a.example')), der.sequence(dns('b.example'))])),
    ],
    ['byte-behind', malformed, sanValue(Buffer.concat([der.sequence(dns('a.example')), Buffer.alloc(1)]))],
    ['universal-tags', malformed, names(der.ia5('a.example'))],
    ['name-constructed', malformed, names(der.constructed(2, der.ia5('a.example')))],
    ['tag-9', malformed, names(der.primitive(9, latin1('a')))],
    ['tag-30', malformed, names(der.primitive(30, latin1('a')))],
    ['dns-empty', malformed, names(dns(''))],
    ['dns-nul', malformed, names(dns('a.example\0.evil'))],
    ['dns-line-end', malformed, names(dns('a.example\nb'))],
    ['dns-high', malformed, names(dns('\u00e4.example'))],
    ['dns-utf8', malformed, names(der.primitive(2, Buffer.from('\u00e4.example')))],
    ['dns-comma', malformed, names(dns('a.example, DNS:b.example'))],
    ['dns-space', malformed, names(dns(' a.example'))],
    ['dns-only-dots', ['issued', malformed], names(dns('...'))],
    ['dns-star', ['issued', malformed], names(dns('*'))],
    ['dns-64-kb', ['issued', malformed], names(dns('a.'.repeat(32_768)))],
    ['dns-is-an-ip', ['issued', malformed], names(dns('10.0.0.1'))],
    ['email-empty', malformed, names(email(''))],
    ['email-comma', malformed, names(email('a@b,c@d'))],
    ['email-space', malformed, names(email('a @b'))],
    ['email-nul', malformed, names(email('a@b\0'))],
    ['email-two-ats', ['issued', malformed], names(email('a@b@c'))],
    ['email-header', malformed, names(email('a@b\r\nBcc: c'))],
    ['email-high', malformed, names(email('\u00e4@b'))],
    ...[0, 1, 3, 5, 6, 7, 8, 12, 15, 17, 20, 32, 64, 60_000].map(
      (size) => [`ip-${size}-octets`, malformed, names(ip(...repeat(size)))] as const,
    ),
    ['ip-mapped', ['issued', malformed], names(ip(...repeat(10, 0), 0xff, 0xff, 10, 0, 0, 1))],
    ['ip-unspecified', ['issued', malformed], names(ip(0, 0, 0, 0), ip(...repeat(16, 0)))],
    ['uri-empty', ['issued', malformed], names(uri(''))],
    ['uri-relative', ['issued', malformed], names(uri('/a/b'))],
    ['uri-bad-escape', malformed, names(uri('http://a/%zz'))],
    ['uri-nul', malformed, names(uri('http://a/\0'))],
    ['uri-space', malformed, names(uri('http://a b/'))],
    ['uri-high', malformed, names(uri('http://\u00e4/'))],
    ['uri-no-scheme', malformed, names(uri('://a'))],
    ['uri-upper-case-scheme', ['issued', malformed], names(uri('SPIFFE://a/b'))],
    ['uri-open-bracket', malformed, names(uri('http://[::1'))],
    ['uri-bracketed-nonsense', malformed, names(uri('http://[1.2.3.4.5:::]/'))],
    ['uri-zone', ['issued', malformed], names(uri('http://[fe80::1%25eth0]/'))],
    ['uri-port', malformed, names(uri('http://a:b/'))],
    ['uri-userinfo', ['issued', malformed], names(uri('http://u:p@a/'))],
    ['uri-javascript', ['issued', malformed], names(uri('javascript:alert(1)'))],
    ['uri-90-kb', ['issued', malformed], names(uri(`http://a/${'b'.repeat(90_000)}`))],
    ['uri-90-kb-of-slashes', ['issued', malformed], names(uri(`http://a${'/'.repeat(90_000)}`))],
    ['uri-90-kb-of-dots', ['issued', malformed], names(uri(`http://${'a.'.repeat(45_000)}`))],
    ['uri-90-kb-almost', malformed, names(uri(`http://${'a'.repeat(90_000)} `))],
    ['uri-90-kb-almost-path', malformed, names(uri(`a:${'/a'.repeat(45_000)}%`))],
    ['uri-90-kb-almost-user', malformed, names(uri(`a://${'u:'.repeat(45_000)}@`))],
    ['uri-90-kb-of-percent', malformed, names(uri(`a:${'%41'.repeat(30_000)}%4`))],
    ['other-name', 'SanNotPermitted', names(otherName('1.3.6.1.4.1.311.20.2.3', der.utf8('admin@a')))],
    ['other-name-empty', ['SanNotPermitted', malformed], names(der.constructed(0))],
    ['other-name-beside-dns', 'SanNotPermitted', names(dns('a.example'), otherName('1.2.3', der.utf8('x')))],
    ['other-name-primitive', malformed, names(der.primitive(0, latin1('x')))],
    ['x400', 'SanNotPermitted', names(der.constructed(3))],
    ['directory-name', 'SanNotPermitted', names(directoryName({ CN: 'system:admin' }))],
    ['directory-name-broken', ['SanNotPermitted', malformed], names(der.constructed(4, der.nothing()))],
    ['edi-party', 'SanNotPermitted', names(der.constructed(5))],
    ['registered-id', 'SanNotPermitted', names(registeredId('1.2.3.4'))],
    ['registered-id-empty', ['SanNotPermitted', malformed], names(der.primitive(8))],
    [
      'every-type',
      'SanNotPermitted',
      names(dns('a'), email('a@b'), ip(1, 2, 3, 4), uri('a:b'), registeredId('1.2'), directoryName({ CN: 'x' })),
    ],
    ['2000-other-names', 'RequestTooLarge', names(...many(2_000, () => otherName('1.2.3', der.nothing())))],
    ['same-name-twice', ['issued', malformed], names(dns('a.example'), dns('a.example'))],
    [
      '3000-names',
      'RequestTooLarge',
      { subject: { CN: 'hostile' }, sans: { dns: Array.from({ length: 3_000 }, (_, i) => `n${i}`) } },
    ],
    ['3000-addresses', 'RequestTooLarge', names(...many(3_000, (i) => ip(10, 0, i >> 8, i & 255)))],
    ['9990-names', 'RequestTooLarge', names(...many(9_990, () => dns('a')))],
    ['10000-names', malformed, names(...many(10_000, () => dns('a')))],
    ['40000-empty-names', malformed, names(Buffer.alloc(80_000, dns('')))],
  ] as readonly (readonly [string, Ending | readonly Ending[], RequestSpec])[]
).map(([id, expected, spec]) => specCase(`san/${id}`, expected, () => spec));

const san = (name = 'a.example'): ExtensionSpec => ({ oid: '2.5.29.17', value: encodeSans({ dns: [name] }) });
const extensionRequest = (...value: readonly Uint8Array[]) => attribute(extensionRequestType, ...value);
const oneSan = encodeExtensions([san()]);
const attributes = (...all: readonly Uint8Array[]): RequestSpec => ({ subject: { CN: 'hostile' }, attributes: all });
const extensions = (...all: readonly ExtensionSpec[]): RequestSpec => ({ subject: { CN: 'hostile' }, extensions: all });
const extension = (...parts: readonly Uint8Array[]): RequestSpec =>
  attributes(extensionRequest(der.sequence(der.sequence(...parts))));
const sanOid = der.oid('2.5.29.17');
const sanOctets = der.octets(encodeSans({ dns: ['a.example'] }));

const carriers: readonly HostileCase[] = (
  [
    ['attributes/absent', malformed, { rawAttributes: Buffer.alloc(0) }],
    ['attributes/empty', 'issued', attributes()],
    ['attributes/tag-1', malformed, { rawAttributes: der.constructed(1) }],
    ['attributes/set', malformed, { rawAttributes: der.set(extensionRequest(oneSan)) }],
    ['attributes/primitive', malformed, { rawAttributes: der.primitive(0) }],
    ['attributes/twice', malformed, { rawAttributes: Buffer.concat([der.constructed(0), der.constructed(0)]) }],
    [
      'attributes/extension-request-twice',
      malformed,
      attributes(extensionRequest(oneSan), extensionRequest(encodeExtensions([san('b.example')]))),
    ],
    [
      'attributes/extension-request-twice-same',
      malformed,
      attributes(extensionRequest(oneSan), extensionRequest(oneSan)),
    ],
    [
      'attributes/extension-request-second-empty',
      malformed,
      attributes(extensionRequest(oneSan), extensionRequest(der.sequence())),
    ],
    [
      'attributes/extension-request-two-values',
      malformed,
      attributes(extensionRequest(oneSan, encodeExtensions([san('b.example')]))),
    ],
    ['attributes/extension-request-no-value', malformed, attributes(extensionRequest())],
    ['attributes/extension-request-empty', ['issued', malformed], attributes(extensionRequest(der.sequence()))],
    ['attributes/extension-request-not-a-sequence', malformed, attributes(extensionRequest(der.octets(oneSan)))],
    [
      'attributes/values-not-a-set',
      malformed,
      attributes(der.sequence(der.oid(extensionRequestType), der.sequence(oneSan))),
    ],
    ['attributes/values-missing', malformed, attributes(der.sequence(der.oid(extensionRequestType)))],
    [
      'attributes/three-parts',
      malformed,
      attributes(der.sequence(der.oid(extensionRequestType), der.set(oneSan), der.nothing())),
    ],
    [
      'attributes/type-not-an-oid',
      malformed,
      attributes(der.sequence(der.utf8(extensionRequestType), der.set(oneSan))),
    ],
    ['attributes/microsoft-extensions', 'issued', attributes(attribute('1.3.6.1.4.1.311.2.1.14', oneSan))],
    [
      'attributes/microsoft-and-ours',
      ['issued', malformed],
      attributes(attribute('1.3.6.1.4.1.311.2.1.14', encodeExtensions([san('b.example')])), extensionRequest(oneSan)),
    ],
    ['attributes/challenge-password', 'issued', attributes(attribute('1.2.840.113549.1.9.7', der.utf8('secret')))],
    [
      'attributes/unstructured-name-90-kb',
      'issued',
      attributes(attribute('1.2.840.113549.1.9.2', der.utf8('x'.repeat(90_000)))),
    ],
    ['attributes/unknown-without-values', ['issued', malformed], attributes(attribute('1.2.3.4'))],
    [
      'attributes/unknown-twice',
      ['issued', malformed],
      attributes(attribute('1.2.3.4', plain), attribute('1.2.3.4', plain)),
    ],
    ['extensions/san-twice', malformed, extensions(san('a.example'), san('b.example'))],
    ['extensions/san-twice-same', malformed, extensions(san(), san())],
    [
      'extensions/san-first-and-last',
      malformed,
      extensions(san(), { oid: '2.5.29.15', value: der.bits(Buffer.from([0x80]), 7) }, san('b.example')),
    ],
    [
      'extensions/unknown-twice',
      malformed,
      extensions({ oid: '1.2.3.4', value: plain }, { oid: '1.2.3.4', value: plain }),
    ],
    [
      'extensions/basic-constraints-ca',
      'issued',
      extensions({ oid: '2.5.29.19', critical: true, value: der.sequence(der.boolean(true)) }),
    ],
    [
      'extensions/basic-constraints-twice',
      malformed,
      extensions(
        { oid: '2.5.29.19', value: der.sequence() },
        { oid: '2.5.29.19', value: der.sequence(der.boolean(true)) },
      ),
    ],
    [
      'extensions/key-cert-sign',
      'issued',
      extensions({ oid: '2.5.29.15', critical: true, value: der.bits(Buffer.from([0x06]), 1) }),
    ],
    [
      'extensions/key-usage-broken',
      ['issued', malformed],
      extensions({ oid: '2.5.29.15', value: Buffer.from([3, 200]) }),
    ],
    ['extensions/any-eku', 'issued', extensions({ oid: '2.5.29.37', value: der.sequence(der.oid('2.5.29.37.0')) })],
    ['extensions/name-constraints', 'issued', extensions({ oid: '2.5.29.30', critical: true, value: der.sequence() })],
    [
      'extensions/aki',
      'issued',
      extensions({ oid: '2.5.29.35', value: der.sequence(der.primitive(0, Buffer.alloc(20))) }),
    ],
    ['extensions/unknown-critical', 'issued', extensions({ oid: '1.2.3.4', critical: true, value: plain })],
    ['extensions/value-empty', 'issued', extensions({ oid: '1.2.3.4', value: Buffer.alloc(0) })],
    ['extensions/value-not-der', 'issued', extensions({ oid: '1.2.3.4', value: Buffer.alloc(100, 0xff) })],
    [
      'extensions/1000',
      'issued',
      extensions(...Array.from({ length: 1_000 }, (_, i) => ({ oid: `1.2.3.${i}`, value: plain }))),
    ],
    [
      'extensions/4000',
      malformed,
      extensions(...Array.from({ length: 4_000 }, (_, i) => ({ oid: `1.2.3.${i}`, value: plain }))),
    ],
    ['extensions/no-value', malformed, extension(sanOid)],
    ['extensions/no-oid', malformed, extension(sanOctets)],
    ['extensions/empty', malformed, extension()],
    ['extensions/critical-behind', malformed, extension(sanOid, sanOctets, der.boolean(true))],
    ['extensions/critical-twice', malformed, extension(sanOid, der.boolean(true), der.boolean(true), sanOctets)],
    ['extensions/critical-integer', malformed, extension(sanOid, der.integer(1), sanOctets)],
    ['extensions/two-values', malformed, extension(sanOid, sanOctets, sanOctets)],
    ['extensions/value-not-octets', malformed, extension(sanOid, encodeSans({ dns: ['a.example'] }))],
    ['extensions/value-constructed', malformed, extension(sanOid, der.tlv(0x24, sanOctets))],
    [
      'extensions/issuer-alt-name',
      'issued',
      extensions({ oid: '2.5.29.18', value: encodeSans({ dns: ['b.example'] }) }),
    ],
  ] as readonly (readonly [string, Ending | readonly Ending[], RequestSpec])[]
).map(([id, expected, spec]) => specCase(id, expected, () => spec));

export const extensionCases: readonly HostileCase[] = [...alternativeNames, ...carriers];
