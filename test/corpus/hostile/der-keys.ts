/** Keys and signatures: keys that prove nothing, keys that cost much, and signatures that say something else. */
import { createHash } from 'node:crypto';
import * as der from '../../harness/x509/der-writer.ts';
import {
  makeRequest,
  pssParameters,
  sharedKey,
  signatureAlgorithm,
  type RequestSpec,
  type TestKeyKind,
} from '../../harness/x509/requests.ts';
import type { Ending, HostileCase } from './case.ts';
import { specCase } from './request.ts';
import { nodeAt, toBytes, toTree } from './tlv-tree.ts';

const subject = { CN: 'hostile' };
const malformed = 'RequestMalformed';
const unproven = 'SignatureInvalid';
const unusable: readonly Ending[] = ['KeyNotPermitted', malformed];
/** A key without a known private key, so the signature cannot verify either: any of the three says so. */
const hopeless: readonly Ending[] = ['KeyNotPermitted', malformed, unproven];

const rsaOid = '1.2.840.113549.1.1.1';
const ecOid = '1.2.840.10045.2.1';
const p256 = '1.2.840.10045.3.1.7';
const spki = (algorithm: Uint8Array, key: Uint8Array, unused = 0) => der.sequence(algorithm, der.bits(key, unused));
const rsaIdentifier = der.sequence(der.oid(rsaOid), der.nothing());
const rsaSpki = (modulus: Uint8Array, exponent: Uint8Array, parameters: readonly Uint8Array[] = [der.nothing()]) =>
  spki(der.sequence(der.oid(rsaOid), ...parameters), der.sequence(modulus, exponent));
const ecSpki = (point: Uint8Array, ...parameters: readonly Uint8Array[]) =>
  spki(der.sequence(der.oid(ecOid), ...(parameters.length === 0 ? [der.oid(p256)] : parameters)), point);

/** An odd number of so many bits. It is the same in every run, and no real key. */
function oddNumber(bits: number): bigint {
  let hex = '';
  for (let i = 0; hex.length * 4 < bits; i++) hex += createHash('sha256').update(String(i)).digest('hex');
  const all = BigInt(`0x${hex}`) >> BigInt(hex.length * 4 - bits);
  return all | 1n | (1n << BigInt(bits - 1));
}
const modulus = der.integer(oddNumber(2048));
const exponent = der.integer(65_537);

const rsaKeys: readonly (readonly [string, readonly Ending[], () => Uint8Array])[] = [
  ['exponent-1', hopeless, () => rsaSpki(modulus, der.integer(1))],
  ['exponent-0', hopeless, () => rsaSpki(modulus, der.integer(0))],
  ['exponent-2', hopeless, () => rsaSpki(modulus, der.integer(2))],
  ['exponent-even', hopeless, () => rsaSpki(modulus, der.integer(65_536))],
  ['exponent-negative', hopeless, () => rsaSpki(modulus, der.tlv(2, Buffer.from([0xff])))],
  ['exponent-2-to-32', hopeless, () => rsaSpki(modulus, der.integer(2n ** 32n + 1n))],
  ['exponent-2048-bits', hopeless, () => rsaSpki(modulus, der.integer(oddNumber(2048)))],
  ['exponent-above-modulus', hopeless, () => rsaSpki(modulus, der.integer(oddNumber(3072)))],
  ['exponent-missing', hopeless, () => spki(der.sequence(der.oid(rsaOid), der.nothing()), der.sequence(modulus))],
  ['exponent-padded', hopeless, () => rsaSpki(modulus, der.tlv(2, Buffer.from([0, 1, 0, 1])))],
  ['modulus-0', hopeless, () => rsaSpki(der.integer(0), exponent)],
  ['modulus-1', hopeless, () => rsaSpki(der.integer(1), exponent)],
  ['modulus-3', hopeless, () => rsaSpki(der.integer(3), exponent)],
  ['modulus-negative', hopeless, () => rsaSpki(der.tlv(2, Buffer.alloc(256, 0xfe)), exponent)],
  ['modulus-even', hopeless, () => rsaSpki(der.integer(oddNumber(2048) - 1n), exponent)],
  ['modulus-empty', hopeless, () => rsaSpki(der.tlv(2), exponent)],
  ['modulus-a-power-of-two', hopeless, () => rsaSpki(der.integer(2n ** 2047n), exponent)],
  ...[512, 1023, 8193, 16_384, 32_768, 131_072, 700_000].map(
    (bits) => [`modulus-${bits}-bits`, hopeless, () => rsaSpki(der.integer(oddNumber(bits)), exponent)] as const,
  ),
  [
    'modulus-and-exponent-8192-bits',
    hopeless,
    () => rsaSpki(der.integer(oddNumber(8192)), der.integer(oddNumber(8191))),
  ],
  [
    'three-integers',
    hopeless,
    () => spki(der.sequence(der.oid(rsaOid), der.nothing()), der.sequence(modulus, exponent, exponent)),
  ],
  [
    'private-key-instead',
    hopeless,
    () =>
      spki(
        der.sequence(der.oid(rsaOid), der.nothing()),
        der.sequence(der.integer(0), ...Array.from({ length: 8 }, () => modulus)),
      ),
  ],
  [
    'key-with-byte-behind',
    hopeless,
    () =>
      spki(
        der.sequence(der.oid(rsaOid), der.nothing()),
        Buffer.concat([der.sequence(modulus, exponent), Buffer.alloc(1)]),
      ),
  ],
  ['key-empty', hopeless, () => spki(der.sequence(der.oid(rsaOid), der.nothing()), Buffer.alloc(0))],
  [
    'key-indefinite',
    hopeless,
    () =>
      spki(
        der.sequence(der.oid(rsaOid), der.nothing()),
        Buffer.concat([Buffer.from([0x30, 0x80]), modulus, exponent, Buffer.alloc(2)]),
      ),
  ],
  ['parameters-missing', hopeless, () => rsaSpki(modulus, exponent, [])],
  ['parameters-sequence', hopeless, () => rsaSpki(modulus, exponent, [der.sequence()])],
  ['parameters-twice', hopeless, () => rsaSpki(modulus, exponent, [der.nothing(), der.nothing()])],
];

/** A real key in forms that are not its one encoding, signed with it: only the reader is in the way. */
const ownRsaKeys: readonly (readonly [string, Ending | readonly Ending[], () => Uint8Array])[] = (
  [
    ['as-it-is', 'issued', (n, e) => rsaSpki(n, e)],
    ['exponent-padded', malformed, (n, e) => rsaSpki(n, der.tlv(2, Buffer.from([0]), e.subarray(2)))],
    ['modulus-padded', malformed, (n, e) => rsaSpki(der.tlv(2, Buffer.from([0]), n.subarray(4)), e)],
    ['modulus-unsigned', malformed, (n, e) => rsaSpki(der.tlv(2, n.subarray(5)), e)],
    ['third-integer', malformed, (n, e) => spki(rsaIdentifier, der.sequence(n, e, e))],
    ['byte-behind', malformed, (n, e) => spki(rsaIdentifier, der.concat(der.sequence(n, e), Buffer.alloc(1)))],
    [
      'indefinite',
      malformed,
      (n, e) => spki(rsaIdentifier, der.concat(Buffer.from([0x30, 0x80]), n, e, Buffer.alloc(2))),
    ],
    ['no-parameters', malformed, (n, e) => rsaSpki(n, e, [])],
    ['other-parameters', malformed, (n, e) => rsaSpki(n, e, [der.sequence()])],
    ['second-parameters', malformed, (n, e) => rsaSpki(n, e, [der.nothing(), der.nothing()])],
    ['unused-bits', malformed, (n, e) => spki(rsaIdentifier, der.sequence(n, e), 1)],
    ['third-part', malformed, (n, e) => der.sequence(rsaIdentifier, der.bits(der.sequence(n, e)), der.nothing())],
    [
      'oaep-oid',
      unusable,
      (n, e) => spki(der.sequence(der.oid('1.2.840.113549.1.1.7'), der.nothing()), der.sequence(n, e)),
    ],
    ['pss-oid', unusable, (n, e) => spki(der.sequence(der.oid('1.2.840.113549.1.1.10')), der.sequence(n, e))],
  ] as const satisfies readonly (readonly [string, unknown, (n: Buffer, e: Buffer) => Uint8Array])[]
).map(([id, expected, make]) => [id, expected, () => make(...ownRsaIntegers())]);

/** Modulus and exponent as they stand in the key of the request. */
function ownRsaIntegers(): [Buffer, Buffer] {
  const key = nodeAt(toTree(sharedKey('RSA-2048').spki), [1, 1]);
  const [n, e] = [nodeAt(key, [0]), nodeAt(key, [1])];
  return [toBytes(n), toBytes(e)];
}

const point = sharedKey('P-256').spki.subarray(-65);
const changed = (at: number) => Buffer.from(point.map((octet, i) => (i === at ? octet ^ 1 : octet)));
const compressed = Buffer.concat([Buffer.from([2 + ((point.at(-1) ?? 0) & 1)]), point.subarray(1, 33)]);
const hybrid = Buffer.concat([Buffer.from([6 + ((point.at(-1) ?? 0) & 1)]), point.subarray(1)]);
/** P-256 written out as parameters, with a base point that makes any signature right (CVE-2020-0601). */
const explicitCurve = der.sequence(
  der.integer(1),
  der.sequence(
    der.oid('1.2.840.10045.1.1'),
    der.integer(BigInt('0xffffffff00000001000000000000000000000000ffffffffffffffffffffffff')),
  ),
  der.sequence(der.octets(Buffer.alloc(32, 0xff)), der.octets(Buffer.alloc(32, 0x5a))),
  der.octets(point),
  der.integer(oddNumber(256)),
  der.integer(1),
);

const ecKeys: readonly (readonly [string, readonly Ending[], () => Uint8Array])[] = [
  ['point-at-infinity', hopeless, () => ecSpki(Buffer.from([0]))],
  ['point-empty', hopeless, () => ecSpki(Buffer.alloc(0))],
  ['point-all-zero', hopeless, () => ecSpki(Buffer.concat([Buffer.from([4]), Buffer.alloc(64)]))],
  ['point-all-ones', hopeless, () => ecSpki(Buffer.concat([Buffer.from([4]), Buffer.alloc(64, 0xff)]))],
  ['point-off-the-curve', hopeless, () => ecSpki(changed(64))],
  ['point-compressed', hopeless, () => ecSpki(compressed)],
  ['point-compressed-no-root', hopeless, () => ecSpki(Buffer.concat([Buffer.from([2]), Buffer.alloc(32, 5)]))],
  ['point-hybrid', hopeless, () => ecSpki(hybrid)],
  ['point-of-form-5', hopeless, () => ecSpki(Buffer.concat([Buffer.from([5]), point.subarray(1)]))],
  ['point-short', hopeless, () => ecSpki(point.subarray(0, 64))],
  ['point-long', hopeless, () => ecSpki(Buffer.concat([point, Buffer.alloc(1)]))],
  ['point-60-kb', hopeless, () => ecSpki(Buffer.alloc(60_000, 4))],
  ['point-of-another-curve', hopeless, () => ecSpki(sharedKey('P-384').spki.subarray(-97))],
  ['curve-missing', hopeless, () => spki(der.sequence(der.oid(ecOid)), point)],
  ['curve-null', hopeless, () => ecSpki(point, der.nothing())],
  ['curve-twice', hopeless, () => ecSpki(point, der.oid(p256), der.oid(p256))],
  ['curve-unknown', hopeless, () => ecSpki(point, der.oid('1.3.132.0.99'))],
  ['curve-secp256r1-as-192', hopeless, () => ecSpki(point, der.oid('1.2.840.10045.3.1.1'))],
  ['curve-sm2', hopeless, () => ecSpki(point, der.oid('1.2.156.10197.1.301'))],
  ['curve-explicit', hopeless, () => ecSpki(point, explicitCurve)],
  ['curve-explicit-empty', hopeless, () => ecSpki(point, der.sequence())],
  ['unused-bits', hopeless, () => spki(der.sequence(der.oid(ecOid), der.oid(p256)), point, 1)],
];

const edKey = sharedKey('Ed25519').spki.subarray(-32);
const otherKeys: readonly (readonly [string, readonly Ending[], () => Uint8Array])[] = [
  ['ed25519-31-octets', hopeless, () => spki(der.sequence(der.oid('1.3.101.112')), edKey.subarray(1))],
  [
    'ed25519-33-octets',
    hopeless,
    () => spki(der.sequence(der.oid('1.3.101.112')), Buffer.concat([edKey, Buffer.alloc(1)])),
  ],
  ['ed25519-null-parameters', hopeless, () => spki(der.sequence(der.oid('1.3.101.112'), der.nothing()), edKey)],
  [
    'ed25519-small-order',
    hopeless,
    () => spki(der.sequence(der.oid('1.3.101.112')), Buffer.concat([Buffer.from([1]), Buffer.alloc(31)])),
  ],
  ['algorithm-unknown', hopeless, () => spki(der.sequence(der.oid('1.2.3.4')), point)],
  ['algorithm-is-a-signature', hopeless, () => spki(der.sequence(der.oid('1.2.840.10045.4.3.2')), point)],
  ['algorithm-empty', hopeless, () => spki(der.sequence(), point)],
  ['spki-empty', hopeless, () => der.sequence()],
  [
    'spki-three-parts',
    hopeless,
    () => der.sequence(der.sequence(der.oid(ecOid), der.oid(p256)), der.bits(point), der.nothing()),
  ],
  ['spki-octet-string', hopeless, () => der.sequence(der.sequence(der.oid(ecOid), der.oid(p256)), der.octets(point))],
  ['spki-of-another', [unproven], () => sharedKey('Ed25519').spki],
  ['spki-is-pkcs8', hopeless, () => sharedKey('P-256').privateKey.export({ type: 'pkcs8', format: 'der' })],
];

/** Keys that are what they say, signed with what they are; without the long RSA keys, which take long to make. */
const kinds: Readonly<Partial<Record<TestKeyKind, Ending | readonly Ending[]>>> = {
  'RSA-1024': 'KeyNotPermitted',
  'RSA-2048': 'issued',
  'RSA-PSS-2048': unusable,
  'P-224': unusable,
  'P-256': 'issued',
  'P-384': 'issued',
  'P-521': 'issued',
  secp256k1: unusable,
  brainpoolP256r1: unusable,
  Ed25519: 'issued',
  Ed448: unusable,
  X25519: unusable,
  DSA: unusable,
};

const algorithmOf = (oid: string, ...parameters: readonly Uint8Array[]) => der.sequence(der.oid(oid), ...parameters);
const ecdsa256 = '1.2.840.10045.4.3.2';
const pss = (parameters: Uint8Array) => algorithmOf('1.2.840.113549.1.1.10', parameters);
const pssSpec = (spec: Parameters<typeof pssParameters>[0], more: RequestSpec = {}): RequestSpec => ({
  key: 'RSA-2048',
  padding: 'pss',
  ...more,
  algorithm: pss(pssParameters(spec)),
});
const notSigned: readonly Ending[] = [unproven, malformed, 'KeyNotPermitted'];

const algorithms: readonly (readonly [string, Ending | readonly Ending[], RequestSpec])[] = [
  ['rsa-oid-on-ec-key', notSigned, { algorithm: signatureAlgorithm('RSA-2048', 'sha256') }],
  ['ec-oid-on-rsa-key', notSigned, { key: 'RSA-2048', algorithm: algorithmOf(ecdsa256) }],
  ['ed25519-oid-on-ec-key', notSigned, { algorithm: signatureAlgorithm('Ed25519', 'sha256') }],
  ['sha384-said-sha256-used', notSigned, { algorithm: signatureAlgorithm('P-256', 'sha384') }],
  ['pss-said-pkcs1-used', notSigned, { key: 'RSA-2048', algorithm: signatureAlgorithm('RSA-2048', 'sha256', 'pss') }],
  [
    'pkcs1-said-pss-used',
    notSigned,
    { key: 'RSA-2048', padding: 'pss', algorithm: signatureAlgorithm('RSA-2048', 'sha256') },
  ],
  ['ecdsa-sha1', 'KeyNotPermitted', { hash: 'sha1' }],
  ['rsa-sha1', 'KeyNotPermitted', { key: 'RSA-2048', hash: 'sha1' }],
  ['rsa-md5', notSigned, { key: 'RSA-2048', hash: 'md5' }],
  ['rsa-sha224', notSigned, { key: 'RSA-2048', hash: 'sha224' }],
  ['ecdsa-null-parameters', ['issued', malformed], { algorithm: algorithmOf(ecdsa256, der.nothing()) }],
  ['ecdsa-curve-parameters', notSigned, { algorithm: algorithmOf(ecdsa256, der.oid(p256)) }],
  ['ecdsa-two-parameters', malformed, { algorithm: algorithmOf(ecdsa256, der.nothing(), der.nothing()) }],
  ['rsa-no-parameters', ['issued', malformed], { key: 'RSA-2048', algorithm: algorithmOf('1.2.840.113549.1.1.11') }],
  [
    'rsa-sequence-parameters',
    malformed,
    { key: 'RSA-2048', algorithm: algorithmOf('1.2.840.113549.1.1.11', der.sequence()) },
  ],
  ['ed25519-null-parameters', malformed, { key: 'Ed25519', algorithm: algorithmOf('1.3.101.112', der.nothing()) }],
  ['unknown', notSigned, { algorithm: algorithmOf('1.2.3.4') }],
  ['key-algorithm-instead', notSigned, { algorithm: algorithmOf(ecOid, der.oid(p256)) }],
  ['rsa-encryption-instead', notSigned, { key: 'RSA-2048', algorithm: algorithmOf(rsaOid, der.nothing()) }],
  ['hash-instead', notSigned, { algorithm: algorithmOf('2.16.840.1.101.3.4.2.1') }],
  ['not-an-oid', malformed, { algorithm: der.sequence(der.utf8('sha256')) }],
  ['empty', malformed, { algorithm: der.sequence() }],
  ['null', malformed, { algorithm: der.nothing() }],
  ['bare-oid', malformed, { algorithm: der.oid(ecdsa256) }],
  ['90-kb-of-parameters', malformed, { algorithm: algorithmOf(ecdsa256, der.octets(Buffer.alloc(90_000))) }],
  ['pss', 'issued', { key: 'RSA-2048', padding: 'pss' }],
  ['pss-salt-0', notSigned, pssSpec({ hash: 'sha256', saltLength: 0 }, { saltLength: 0 })],
  ['pss-salt-20', notSigned, pssSpec({ hash: 'sha256', saltLength: 20 }, { saltLength: 20 })],
  ['pss-salt-2-to-31', notSigned, pssSpec({ hash: 'sha256', saltLength: 2 ** 31 })],
  ['pss-salt-2-to-32-and-32', notSigned, pssSpec({ hash: 'sha256', saltLength: 2 ** 32 + 32 })],
  ['pss-salt-said-32-used-20', notSigned, pssSpec({ hash: 'sha256' }, { saltLength: 20 })],
  // No room for hash and salt: OpenSSL throws instead of saying no.
  ['pss-on-1024-bits-with-sha512', notSigned, { key: 'RSA-1024', algorithm: pss(pssParameters({ hash: 'sha512' })) }],
  [
    'pss-on-512-bits',
    notSigned,
    { spki: rsaSpki(der.integer(oddNumber(512)), exponent), algorithm: pss(pssParameters({ hash: 'sha256' })) },
  ],
  [
    'pkcs1-on-256-bits-with-sha512',
    notSigned,
    { spki: rsaSpki(der.integer(oddNumber(256)), exponent), algorithm: signatureAlgorithm('RSA-2048', 'sha512') },
  ],
  ['pss-trailer-1', ['issued', unproven, malformed], pssSpec({ hash: 'sha256', trailer: 1 })],
  ['pss-trailer-2', notSigned, pssSpec({ hash: 'sha256', trailer: 2 })],
  ['pss-trailer-257', notSigned, pssSpec({ hash: 'sha256', trailer: 257 })],
  ['pss-mgf-sha1', notSigned, pssSpec({ hash: 'sha256', mgfHash: 'sha1' })],
  ['pss-sha1', notSigned, pssSpec({ hash: 'sha1' }, { hash: 'sha1' })],
  ['pss-defaults', notSigned, { key: 'RSA-2048', padding: 'pss', hash: 'sha1', algorithm: pss(der.sequence()) }],
  [
    'pss-no-parameters',
    notSigned,
    { key: 'RSA-2048', padding: 'pss', algorithm: algorithmOf('1.2.840.113549.1.1.10') },
  ],
  ['pss-null-parameters', notSigned, { key: 'RSA-2048', padding: 'pss', algorithm: pss(der.nothing()) }],
  [
    'pss-parameters-reversed',
    notSigned,
    {
      key: 'RSA-2048',
      padding: 'pss',
      algorithm: pss(
        der.sequence(der.constructed(2, der.integer(32)), der.constructed(0, algorithmOf('2.16.840.1.101.3.4.2.1'))),
      ),
    },
  ],
  [
    'pss-field-twice',
    notSigned,
    {
      key: 'RSA-2048',
      padding: 'pss',
      algorithm: pss(
        der.sequence(...Array.from({ length: 4 }, () => der.constructed(0, algorithmOf('2.16.840.1.101.3.4.2.1')))),
      ),
    },
  ],
  ['pss-on-ec-key', notSigned, { algorithm: pss(pssParameters({ hash: 'sha256' })) }],
];

const order = BigInt('0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551');
const rs = (r: Uint8Array, s: Uint8Array) => () => der.sequence(r, s);
const signatures: readonly (readonly [string, Ending | readonly Ending[], (signature: Buffer) => Uint8Array])[] = [
  ['empty', notSigned, () => Buffer.alloc(0)],
  ['one-octet', notSigned, () => Buffer.from([0x30])],
  ['zeros', notSigned, (signature) => Buffer.alloc(signature.length)],
  ['cut', notSigned, (signature) => signature.subarray(0, -1)],
  ['byte-behind', notSigned, (signature) => Buffer.concat([signature, Buffer.alloc(1)])],
  ['twice', notSigned, (signature) => Buffer.concat([signature, signature])],
  ['90-kb', notSigned, () => Buffer.alloc(90_000, 0x30)],
  ['raw-r-and-s', notSigned, () => Buffer.alloc(64, 0x11)],
  ['r-0', notSigned, rs(der.integer(0), der.integer(1))],
  ['s-0', notSigned, rs(der.integer(1), der.integer(0))],
  ['r-0-s-0', notSigned, rs(der.integer(0), der.integer(0))],
  ['r-1-s-1', notSigned, rs(der.integer(1), der.integer(1))],
  ['r-order', notSigned, rs(der.integer(order), der.integer(1))],
  ['s-order', notSigned, rs(der.integer(1), der.integer(order))],
  ['r-and-s-above-order', notSigned, rs(der.integer(order + 1n), der.integer(order + 1n))],
  ['r-negative', notSigned, rs(der.tlv(2, Buffer.from([0x80])), der.integer(1))],
  ['r-60-kb', notSigned, rs(der.tlv(2, Buffer.alloc(60_000, 0x7f)), der.integer(1))],
  ['r-empty', notSigned, rs(der.tlv(2), der.tlv(2))],
  ['three-integers', notSigned, () => der.sequence(der.integer(1), der.integer(1), der.integer(1))],
  ['no-integers', notSigned, () => der.sequence()],
  ['nested-30000', notSigned, () => Buffer.from(Array.from({ length: 30_000 }, () => [0x30, 0x80]).flat())],
  ['of-other-content', notSigned, () => signatureOf(makeRequest({ subject: { CN: 'other' } }).der)],
];

/** The last element of a request is the BIT STRING of the signature: up to 72 octets and their header. */
function signatureOf(request: Buffer): Buffer {
  return request.subarray(request.lastIndexOf(Buffer.from([0x03, request.at(-1) === undefined ? 0 : 0x48])) + 3);
}

const rsaSignatures: readonly (readonly [string, (signature: Buffer) => Uint8Array])[] = [
  ['empty', () => Buffer.alloc(0)],
  ['zeros', (signature) => Buffer.alloc(signature.length)],
  ['ones', (signature) => Buffer.alloc(signature.length, 0xff)],
  ['one', (signature) => Buffer.concat([Buffer.alloc(signature.length - 1), Buffer.from([1])])],
  ['leading-zero', (signature) => Buffer.concat([Buffer.alloc(1), signature])],
  ['cut', (signature) => signature.subarray(1)],
  ['90-kb', () => Buffer.alloc(90_000, 1)],
];

const keyCase = (
  [id, expected, key]: readonly [string, readonly Ending[], () => Uint8Array],
  family: string,
  more: RequestSpec = {},
): HostileCase => specCase(`key/${family}/${id}`, expected, () => ({ subject, spki: key(), ...more }));

const rsaAlgorithm = { algorithm: signatureAlgorithm('RSA-2048', 'sha256'), signature: () => Buffer.alloc(256, 1) };

export const keyCases: readonly HostileCase[] = [
  ...rsaKeys.map((key) => keyCase(key, 'rsa', rsaAlgorithm)),
  ...ownRsaKeys.map(([id, expected, key]) =>
    specCase(`key/own-rsa/${id}`, expected, () => ({ subject, key: 'RSA-2048', spki: key() })),
  ),
  ...ecKeys.map((key) => keyCase(key, 'ec')),
  ...otherKeys.map((key) => keyCase(key, 'other')),
  ...Object.entries(kinds).map(([kind, expected]) =>
    specCase(`key/kind/${kind}`, expected, () => ({ subject, key: kind as TestKeyKind })),
  ),
  ...algorithms.map(([id, expected, spec]) =>
    specCase(`signature/algorithm/${id}`, expected, () => ({ subject, ...spec })),
  ),
  ...signatures.map(([id, expected, signature]) =>
    specCase(`signature/ecdsa/${id}`, expected, () => ({ subject, signature })),
  ),
  ...rsaSignatures.map(([id, signature]) =>
    specCase(`signature/rsa/${id}`, notSigned, () => ({ subject, key: 'RSA-2048', signature })),
  ),
];
