/** Certificates that a strict reader refuses: each is an ordinary one with one thing wrong. */
import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { certificateFacts, CertificateUnreadableError } from '../../../../core/x509/read-certificate.ts';
import * as der from '../../../harness/x509/der-writer.ts';
import { encodeSubject, sharedKey } from '../../../harness/x509/requests.ts';

const algorithm = der.sequence(der.oid('1.2.840.10045.4.3.2'));
const otherAlgorithm = der.sequence(der.oid('1.2.840.10045.4.3.3'));
const utcTime = (text: string) => der.tlv(0x17, Buffer.from(text));
const generalizedTime = (text: string) => der.tlv(0x18, Buffer.from(text));
const extension = (oid: string, ...rest: readonly Uint8Array[]) => der.sequence(der.oid(oid), ...rest);
const basicConstraints = '2.5.29.19';
const subjectKeyIdentifier = '2.5.29.14';

interface Parts {
  readonly version: readonly Uint8Array[];
  readonly serial: Uint8Array;
  readonly signedAlgorithm: readonly Uint8Array[];
  readonly issuer: readonly Uint8Array[];
  readonly validity: Uint8Array;
  readonly subject: readonly Uint8Array[];
  readonly spki: readonly Uint8Array[];
  /** Behind the key: unique identifiers and extensions. */
  readonly optional: readonly Uint8Array[];
  /** Behind the TBSCertificate. */
  readonly outer: readonly Uint8Array[];
}

const ordinary: Parts = {
  version: [der.constructed(0, der.integer(2))],
  serial: der.integer(0xabcdef),
  signedAlgorithm: [algorithm],
  issuer: [encodeSubject({ CN: 'issuer' })],
  validity: der.sequence(utcTime('261121100000Z'), utcTime('261122100000Z')),
  subject: [encodeSubject({ O: 'system:nodes', CN: 'system:node:n1' })],
  spki: [sharedKey('P-256').spki],
  optional: [
    der.constructed(
      3,
      der.sequence(
        extension(basicConstraints, der.boolean(true), der.octets(der.sequence(der.boolean(true)))),
        extension(subjectKeyIdentifier, der.octets(der.octets(Buffer.from([1, 2, 3])))),
      ),
    ),
  ],
  outer: [otherAlgorithm, der.bits(Buffer.alloc(8))],
};

function certificate(change: Partial<Parts> = {}): Buffer {
  const parts = { ...ordinary, ...change };
  return der.sequence(
    der.sequence(
      ...parts.version,
      parts.serial,
      ...parts.signedAlgorithm,
      ...parts.issuer,
      parts.validity,
      ...parts.subject,
      ...parts.spki,
      ...parts.optional,
    ),
    ...parts.outer,
  );
}

const withExtensions = (...extensions: readonly Uint8Array[]): Partial<Parts> => ({
  optional: [der.constructed(3, der.sequence(...extensions))],
});

test('an ordinary one is read whole', () => {
  const bytes = certificate();
  const facts = certificateFacts(bytes);
  expect(facts).toMatchObject({
    serial: 'abcdef',
    notBefore: Date.UTC(2026, 10, 21, 10),
    notAfter: Date.UTC(2026, 10, 22, 10),
    subject: 'O=system:nodes, CN=system:node:n1',
    issuer: 'CN=issuer',
    isCa: true,
    fingerprintSha256: createHash('sha256').update(bytes).digest('hex'),
  });
  expect([facts.signedAlgorithm, facts.outerAlgorithm].map((bytes) => Buffer.from(bytes))).toEqual([
    algorithm,
    otherAlgorithm,
  ]);
  expect(Buffer.from(facts.subjectKeyIdentifier ?? [])).toEqual(Buffer.from([1, 2, 3]));
  expect([...facts.extensions].map(([oid, { critical }]) => [oid, critical])).toEqual([
    [basicConstraints, true],
    [subjectKeyIdentifier, false],
  ]);
});

test('unique identifiers before the extensions are passed over', () => {
  const { optional } = ordinary;
  expect(certificateFacts(certificate({ optional: [der.primitive(1, Buffer.from([0, 1])), ...optional] })).isCa).toBe(
    true,
  );
});

test('without extensions it is no CA and has no key identifier', () => {
  const facts = certificateFacts(certificate({ optional: [] }));
  expect([facts.isCa, facts.subjectKeyIdentifier, facts.extensions.size]).toEqual([false, undefined, 0]);
});

describe('what is no certificate', () => {
  test.each<[string, Uint8Array, RegExp]>([
    ['no DER at all', Buffer.from('certificate'), /not a certificate: /],
    ['an empty structure', der.sequence(), /no signed structure/],
    ['only the signed part', der.sequence(der.sequence()), /no signed structure/],
    ['a fourth part', certificate({ outer: [...ordinary.outer, der.nothing()] }), /no signed structure/],
    ['no algorithm around it', certificate({ outer: [] }), /no signed structure/],
    [
      'nothing behind the serial number',
      der.sequence(
        der.sequence(der.constructed(0, der.integer(2)), der.integer(1)),
        algorithm,
        der.bits(Buffer.alloc(1)),
      ),
      /no signed structure/,
    ],
    [
      'no issuer and what follows',
      der.sequence(
        der.sequence(der.constructed(0, der.integer(2)), der.integer(1), algorithm),
        algorithm,
        der.bits(Buffer.alloc(1)),
      ),
      /fields are missing/,
    ],
    [
      'no subject',
      der.sequence(
        der.sequence(
          der.constructed(0, der.integer(2)),
          der.integer(1),
          algorithm,
          encodeSubject({ CN: 'x' }),
          ordinary.validity,
        ),
        algorithm,
        der.bits(Buffer.alloc(1)),
      ),
      /fields are missing/,
    ],
    ['no key', certificate({ spki: [], optional: [] }), /fields are missing/],
    [
      'another tag in place of the version',
      certificate({ version: [der.constructed(1, der.integer(2))] }),
      /no X.509 v3/,
    ],
    ['a serial number that is no number', certificate({ serial: der.octets(Buffer.from([1])) }), /no X.509 v3/],
  ])('%s', (_, bytes, why) => {
    expect(() => certificateFacts(bytes)).toThrow(CertificateUnreadableError);
    expect(() => certificateFacts(bytes)).toThrow(why);
  });
});

describe('its validity', () => {
  const from = (notBefore: Uint8Array) => () =>
    certificateFacts(certificate({ validity: der.sequence(notBefore, utcTime('261122100000Z')) })).notBefore;
  test.each<[string, Uint8Array, number]>([
    ['1950, the first year of two digits', utcTime('500101000000Z'), Date.UTC(1950, 0, 1)],
    ['2049, the last one', utcTime('491231235959Z'), Date.UTC(2049, 11, 31, 23, 59, 59)],
    ['2050, with four digits', generalizedTime('20500101000000Z'), Date.UTC(2050, 0, 1)],
  ])('%s', (_, time, instant) => {
    expect(from(time)()).toBe(instant);
  });

  test.each<[string, Uint8Array]>([
    ['four digits in the form for two', utcTime('20261121100000Z')],
    ['two digits in the form for four', generalizedTime('261121100000Z')],
    ['no seconds', utcTime('2611211000Z')],
    ['an offset', utcTime('261121100000+0100')],
    ['fractions', generalizedTime('20261121100000.5Z')],
    ['the right digits in another type', der.tlv(0x16, Buffer.from('20261121100000Z'))],
    ['text before it', utcTime('x261121100000Z')],
  ])('cannot be %s', (_, time) => {
    expect(from(time)).toThrow(/validity cannot be read/);
  });

  test('has two ends', () => {
    const one = certificate({ validity: der.sequence(utcTime('261121100000Z')) });
    expect(() => certificateFacts(one)).toThrow(/validity cannot be read/);
  });
});

describe('its extensions', () => {
  const value = der.octets(der.sequence());
  test.each<[string, Uint8Array, RegExp]>([
    ['without a value', extension(basicConstraints), /an extension cannot be read/],
    ['with a value that is not octets', extension(basicConstraints, der.boolean(true), der.sequence()), /an extension/],
    ['with a part too many', extension(basicConstraints, der.boolean(true), der.boolean(true), value), /an extension/],
    ['without a type', der.sequence(der.boolean(true), value), /an extension cannot be read/],
  ])('%s', (_, one, why) => {
    expect(() => certificateFacts(certificate(withExtensions(one)))).toThrow(why);
  });

  const list = der.sequence(extension(subjectKeyIdentifier, der.octets(der.octets(Buffer.from([1])))));
  test.each<[string, readonly Uint8Array[], RegExp]>([
    ['beside their list', [der.constructed(3, list, extension('1.2.3', value))], /its extensions cannot be read/],
    ['in a set', [der.constructed(3, der.set(extension('1.2.3', value)))], /its extensions cannot be read/],
    ['in no list', [der.constructed(3)], /its extensions cannot be read/],
    ['in two fields', [der.constructed(3, list), der.constructed(3, list)], /its optional fields cannot be read/],
    [
      'before a unique identifier',
      [der.constructed(3, list), der.primitive(1, Buffer.of(0, 1))],
      /its optional fields/,
    ],
    ['behind an unknown field', [der.primitive(4, Buffer.of(0)), der.constructed(3, list)], /its optional fields/],
  ])('%s', (_, optional, why) => {
    expect(() => certificateFacts(certificate({ optional }))).toThrow(why);
  });

  test('twice', () => {
    const twice = withExtensions(extension(basicConstraints, value), extension(basicConstraints, value));
    expect(() => certificateFacts(certificate(twice))).toThrow(`it has two extensions ${basicConstraints}`);
  });

  test.each<[string, readonly Uint8Array[], boolean]>([
    ['critical', [der.boolean(true), value], true],
    ['not critical, written out', [der.boolean(false), value], false],
    ['not critical', [value], false],
    ['a number where the criticality stands', [der.tlv(2, Buffer.from([0xff])), value], false],
    // The last of two parts is the value: octets before it are no criticality.
    ['octets where the criticality stands', [der.octets(Buffer.from([0xff])), value], false],
  ])('%s', (_, parts, critical) => {
    const facts = certificateFacts(certificate(withExtensions(extension('1.2.3', ...parts))));
    expect(facts.extensions.get('1.2.3')?.critical).toBe(critical);
  });

  test.each<[string, Uint8Array, boolean]>([
    ['a sequence with TRUE', der.sequence(der.boolean(true)), true],
    ['a sequence with FALSE', der.sequence(der.boolean(false)), false],
    ['an empty sequence', der.sequence(), false],
    ['a sequence with a number', der.sequence(der.tlv(2, Buffer.from([0xff]))), false],
    ['no DER', Buffer.from([0x30, 5]), false],
    ['TRUE by itself', der.boolean(true), false],
  ])('basicConstraints of %s', (_, content, isCa) => {
    expect(certificateFacts(certificate(withExtensions(extension(basicConstraints, der.octets(content))))).isCa).toBe(
      isCa,
    );
  });

  test.each<[string, Uint8Array]>([
    ['no DER', Buffer.from([4, 5])],
    ['a string of another type', der.utf8('abc')],
  ])('a subjectKeyIdentifier of %s is not read', (_, content) => {
    const facts = certificateFacts(certificate(withExtensions(extension(subjectKeyIdentifier, der.octets(content)))));
    expect(facts.subjectKeyIdentifier).toBeUndefined();
  });
});

test('a name of another CA that cannot be shown is still compared by its bytes', () => {
  const odd = der.sequence(der.set(der.sequence(der.oid('2.5.4.3'), der.universal('x'))));
  const facts = certificateFacts(certificate({ issuer: [odd] }));
  expect(facts.issuer).toBe('(unreadable name)');
  expect(Buffer.from(facts.issuerName)).toEqual(odd);
});
