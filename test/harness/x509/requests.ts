/**
 * Makes PKCS#10 requests for every test: ordinary ones in one call, hostile ones by handing in raw pieces.
 *
 *   makeRequest({ subject: { CN: 'system:node:n1', O: 'system:nodes' }, sans: { dns: ['n1'] } }).pem
 */
import { constants, createPublicKey, generateKeyPairSync, sign, type KeyObject } from 'node:crypto';
import * as der from './der-writer.ts';

export type TestKeyKind =
  | 'RSA-1024'
  | 'RSA-2048'
  | 'RSA-3072'
  | 'RSA-4096'
  /** An id-RSASSA-PSS key, not an RSA key that signs with PSS (that is `padding: 'pss'`). */
  | 'RSA-PSS-2048'
  | 'P-224'
  | 'P-256'
  | 'P-384'
  | 'P-521'
  | 'secp256k1'
  | 'brainpoolP256r1'
  | 'Ed25519'
  | 'Ed448'
  | 'X25519'
  | 'DSA';

export interface TestKey {
  readonly kind: TestKeyKind;
  readonly privateKey: KeyObject;
  /** PKCS#8. */
  readonly keyPem: string;
  /** DER SubjectPublicKeyInfo. */
  readonly spki: Buffer;
}

export type TestHash = 'md5' | 'sha1' | 'sha224' | 'sha256' | 'sha384' | 'sha512';

/** One attribute: type by short name or dotted OID, value as text (the string type OpenSSL would choose) or raw DER. */
export type AttributeSpec = readonly [type: string, value: string | Uint8Array];

/**
 * Either short names in the order wanted, a list value making one RDN of several attributes (as Go and kubelet do for
 * O), or the RDNs themselves, each a list of attributes.
 */
export type SubjectSpec = Readonly<Record<string, string | readonly string[]>> | readonly (readonly AttributeSpec[])[];

export interface SanSpec {
  readonly dns?: readonly string[];
  readonly email?: readonly string[];
  readonly uri?: readonly string[];
  /** Text, or raw octets of any length. */
  readonly ip?: readonly (string | Uint8Array)[];
  /** Raw GeneralNames put behind the others; see `otherName`, `directoryName`, `registeredId`. */
  readonly raw?: readonly Uint8Array[];
}

export interface ExtensionSpec {
  readonly oid: string;
  readonly critical?: boolean;
  /** What the OCTET STRING holds. */
  readonly value: Uint8Array;
}

export interface RequestSpec {
  /** Keys made from a kind are shared within the test process (RSA is slow to make); hand in `newKey()` for one of its own. */
  readonly key?: TestKeyKind | TestKey;
  readonly subject?: SubjectSpec;
  readonly sans?: SanSpec;
  readonly hash?: TestHash;
  /** For RSA keys. */
  readonly padding?: 'pkcs1' | 'pss';
  readonly saltLength?: number;
  /** Besides SAN. */
  readonly extensions?: readonly ExtensionSpec[];
  /** Raw Attributes put behind the extension request. */
  readonly attributes?: readonly Uint8Array[];
  /** Instead of 0. */
  readonly version?: Uint8Array;
  /** Instead of the encoded subject. */
  readonly rawSubject?: Uint8Array;
  /** Instead of the SPKI of `key`; the signature is still made with `key`. */
  readonly spki?: Uint8Array;
  /** Instead of the whole `[0]` attributes element; empty bytes leave it out. */
  readonly rawAttributes?: Uint8Array;
  /** Instead of the AlgorithmIdentifier that fits key and hash. */
  readonly algorithm?: Uint8Array;
  /** Changes the signature octets. */
  readonly signature?: (signature: Buffer) => Uint8Array;
  /** Changes the CertificationRequestInfo before it is signed. */
  readonly info?: (info: Buffer) => Uint8Array;
  /** Changes the whole DER after signing. */
  readonly tamper?: (request: Buffer) => Uint8Array;
  readonly label?: string;
}

export interface MadeRequest {
  readonly pem: string;
  /** The PEM as bytes: what `spec.request` holds. */
  readonly bytes: Buffer;
  readonly der: Buffer;
  readonly key: TestKey;
  readonly keyPem: string;
}

const shared = new Map<TestKeyKind, TestKey>();

export function sharedKey(kind: TestKeyKind): TestKey {
  const known = shared.get(kind) ?? newKey(kind);
  shared.set(kind, known);
  return known;
}

export function newKey(kind: TestKeyKind): TestKey {
  const privateKey = generate(kind);
  return {
    kind,
    privateKey,
    keyPem: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    spki: createPublicKey(privateKey).export({ type: 'spki', format: 'der' }),
  };
}

export function makeRequest(spec: RequestSpec = {}): MadeRequest {
  const key = typeof spec.key === 'object' ? spec.key : sharedKey(spec.key ?? 'P-256');
  const subject = spec.rawSubject ?? encodeSubject(spec.subject ?? { CN: 'test' });
  const attributes = spec.rawAttributes ?? encodeAttributes(spec);
  const plain = der.sequence(spec.version ?? der.integer(0), subject, spec.spki ?? key.spki, attributes);
  const info = spec.info?.(plain) ?? plain;
  const hash = spec.hash ?? 'sha256';
  const signature = signatureOf(info, key, hash, spec);
  const request = der.sequence(
    info,
    spec.algorithm ?? signatureAlgorithm(key.kind, hash, spec.padding ?? 'pkcs1', spec.saltLength),
    der.bits(spec.signature?.(signature) ?? signature),
  );
  const whole = Buffer.from(spec.tamper?.(request) ?? request);
  const pem = pemBlock(spec.label ?? 'CERTIFICATE REQUEST', whole);
  return { pem, bytes: Buffer.from(pem, 'latin1'), der: whole, key, keyPem: key.keyPem };
}

/** As Go and OpenSSL write it: 64 characters a line. */
export function pemBlock(label: string, content: Uint8Array): string {
  const lines =
    Buffer.from(content)
      .toString('base64')
      .match(/.{1,64}/g) ?? [];
  return [`-----BEGIN ${label}-----`, ...lines, `-----END ${label}-----`, ''].join('\n');
}

const attributeTypes: Readonly<Record<string, string>> = {
  CN: '2.5.4.3',
  SN: '2.5.4.4',
  serialNumber: '2.5.4.5',
  C: '2.5.4.6',
  L: '2.5.4.7',
  ST: '2.5.4.8',
  street: '2.5.4.9',
  O: '2.5.4.10',
  OU: '2.5.4.11',
  postalCode: '2.5.4.17',
  DC: '0.9.2342.19200300.100.1.25',
  UID: '0.9.2342.19200300.100.1.1',
  emailAddress: '1.2.840.113549.1.9.1',
};

export function encodeSubject(subject: SubjectSpec): Buffer {
  const rdns = isRdns(subject)
    ? subject
    : Object.entries(subject).map(([type, values]) =>
        (typeof values === 'string' ? [values] : values).map((value): AttributeSpec => [type, value]),
      );
  return der.sequence(...rdns.map((rdn) => der.setOf(...rdn.map(encodeAttribute))));
}

function isRdns(subject: SubjectSpec): subject is readonly (readonly AttributeSpec[])[] {
  return Array.isArray(subject);
}

function encodeAttribute([type, value]: AttributeSpec): Buffer {
  const raw = typeof value === 'string' ? directoryString(value) : value;
  return der.sequence(der.oid(attributeTypes[type] ?? type), raw);
}

function directoryString(text: string): Buffer {
  return /^[A-Za-z0-9 '()+,\-./:=?]*$/.test(text) ? der.printable(text) : der.utf8(text);
}

export function encodeSans(sans: SanSpec): Buffer {
  return der.sequence(
    ...(sans.dns ?? []).map((name) => der.primitive(2, Buffer.from(name, 'utf8'))),
    ...(sans.email ?? []).map((name) => der.primitive(1, Buffer.from(name, 'utf8'))),
    ...(sans.ip ?? []).map((ip) => der.primitive(7, typeof ip === 'string' ? ipOctets(ip) : ip)),
    ...(sans.uri ?? []).map((name) => der.primitive(6, Buffer.from(name, 'utf8'))),
    ...(sans.raw ?? []),
  );
}

export function otherName(type: string, value: Uint8Array): Buffer {
  return der.constructed(0, der.oid(type), der.constructed(0, value));
}

export function directoryName(subject: SubjectSpec): Buffer {
  return der.constructed(4, encodeSubject(subject));
}

export function registeredId(dotted: string): Buffer {
  const whole = der.oid(dotted);
  return der.primitive(8, whole.subarray(2));
}

/** IPv4 or IPv6 text, `::ffff:1.2.3.4` giving all sixteen octets. */
export function ipOctets(text: string): Buffer {
  if (!text.includes(':')) return Buffer.from(text.split('.').map(Number));
  const dotted = /^(.*:)(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(text);
  const [, head = '', a = 0, b = 0, c = 0, d = 0] = dotted ?? [];
  const pair = (high: string | number, low: string | number): string => (Number(high) * 256 + Number(low)).toString(16);
  const plain = dotted === null ? text : `${head}${pair(a, b)}:${pair(c, d)}`;
  const [left = '', right] = plain.split('::');
  const groups = (part: string): string[] => (part === '' ? [] : part.split(':'));
  const before = groups(left);
  const after = right === undefined ? [] : groups(right);
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => '0');
  return Buffer.concat([...before, ...zeros, ...after].map((group) => Buffer.from(group.padStart(4, '0'), 'hex')));
}

/** One Attribute of RFC 2986 §4.1. */
export function attribute(type: string, ...values: readonly Uint8Array[]): Buffer {
  return der.sequence(der.oid(type), der.set(...values));
}

export const extensionRequestType = '1.2.840.113549.1.9.14';

/** The value of an extensionRequest attribute (RFC 2985 §5.4.2). */
export function encodeExtensions(extensions: readonly ExtensionSpec[]): Buffer {
  return der.sequence(
    ...extensions.map(({ oid, critical, value }) =>
      der.sequence(der.oid(oid), ...(critical === true ? [der.boolean(true)] : []), der.octets(value)),
    ),
  );
}

function encodeAttributes({ sans, extensions = [], attributes = [] }: RequestSpec): Buffer {
  const all = [...(sans === undefined ? [] : [{ oid: '2.5.29.17', value: encodeSans(sans) }]), ...extensions];
  const request = all.length === 0 ? [] : [attribute(extensionRequestType, encodeExtensions(all))];
  return der.constructed(0, ...request, ...attributes);
}

const rsaOids: Readonly<Record<TestHash, string>> = {
  md5: '1.2.840.113549.1.1.4',
  sha1: '1.2.840.113549.1.1.5',
  sha224: '1.2.840.113549.1.1.14',
  sha256: '1.2.840.113549.1.1.11',
  sha384: '1.2.840.113549.1.1.12',
  sha512: '1.2.840.113549.1.1.13',
};
const ecdsaOids: Readonly<Record<TestHash, string>> = {
  md5: '1.3.6.1.4.1.99999.1', // no such OID is registered
  sha1: '1.2.840.10045.4.1',
  sha224: '1.2.840.10045.4.3.1',
  sha256: '1.2.840.10045.4.3.2',
  sha384: '1.2.840.10045.4.3.3',
  sha512: '1.2.840.10045.4.3.4',
};
const hashOids: Readonly<Record<TestHash, string>> = {
  md5: '1.2.840.113549.2.5',
  sha1: '1.3.14.3.2.26',
  sha224: '2.16.840.1.101.3.4.2.4',
  sha256: '2.16.840.1.101.3.4.2.1',
  sha384: '2.16.840.1.101.3.4.2.2',
  sha512: '2.16.840.1.101.3.4.2.3',
};
const hashSizes: Readonly<Record<TestHash, number>> = {
  md5: 16,
  sha1: 20,
  sha224: 28,
  sha256: 32,
  sha384: 48,
  sha512: 64,
};

/** The AlgorithmIdentifier a well-behaved requester writes. */
export function signatureAlgorithm(
  kind: TestKeyKind,
  hash: TestHash,
  padding: 'pkcs1' | 'pss' = 'pkcs1',
  saltLength: number = hashSizes[hash],
): Buffer {
  if (kind === 'Ed25519') return der.sequence(der.oid('1.3.101.112'));
  if (kind === 'Ed448') return der.sequence(der.oid('1.3.101.113'));
  if (kind === 'DSA') return der.sequence(der.oid('2.16.840.1.101.3.4.3.2'));
  if (!kind.startsWith('RSA')) return der.sequence(der.oid(ecdsaOids[hash]));
  if (padding === 'pkcs1' && kind !== 'RSA-PSS-2048') return der.sequence(der.oid(rsaOids[hash]), der.nothing());
  return der.sequence(der.oid('1.2.840.113549.1.1.10'), pssParameters({ hash, saltLength }));
}

/** RSASSA-PSS-params (RFC 4055 §3.1); what is not given is as RFC 8017 recommends. */
export function pssParameters(spec: {
  readonly hash: TestHash;
  readonly mgfHash?: TestHash;
  readonly saltLength?: number;
  readonly trailer?: number;
}): Buffer {
  const hashIdentifier = (hash: TestHash): Buffer => der.sequence(der.oid(hashOids[hash]), der.nothing());
  const mgf = der.sequence(der.oid('1.2.840.113549.1.1.8'), hashIdentifier(spec.mgfHash ?? spec.hash));
  return der.sequence(
    der.constructed(0, hashIdentifier(spec.hash)),
    der.constructed(1, mgf),
    der.constructed(2, der.integer(spec.saltLength ?? hashSizes[spec.hash])),
    ...(spec.trailer === undefined ? [] : [der.constructed(3, der.integer(spec.trailer))]),
  );
}

function signatureOf(info: Uint8Array, key: TestKey, hash: TestHash, spec: RequestSpec): Buffer {
  if (key.kind === 'X25519') return Buffer.alloc(64); // cannot sign at all
  if (key.kind === 'Ed25519' || key.kind === 'Ed448') return sign(null, info, key.privateKey);
  if (spec.padding !== 'pss' && key.kind !== 'RSA-PSS-2048') return sign(hash, info, key.privateKey);
  const saltLength = spec.saltLength ?? hashSizes[hash];
  return sign(hash, info, { key: key.privateKey, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength });
}

function generate(kind: TestKeyKind): KeyObject {
  switch (kind) {
    case 'RSA-1024':
    case 'RSA-2048':
    case 'RSA-3072':
    case 'RSA-4096':
      return generateKeyPairSync('rsa', { modulusLength: Number(kind.slice(4)) }).privateKey;
    case 'RSA-PSS-2048':
      return generateKeyPairSync('rsa-pss', { modulusLength: 2048 }).privateKey;
    case 'P-224':
      return generateKeyPairSync('ec', { namedCurve: 'secp224r1' }).privateKey;
    case 'P-256':
    case 'P-384':
    case 'P-521':
    case 'secp256k1':
    case 'brainpoolP256r1':
      return generateKeyPairSync('ec', { namedCurve: kind }).privateKey;
    case 'Ed25519':
      return generateKeyPairSync('ed25519').privateKey;
    case 'Ed448':
      return generateKeyPairSync('ed448').privateKey;
    case 'X25519':
      return generateKeyPairSync('x25519').privateKey;
    case 'DSA':
      // The smallest: making the parameters of larger ones takes seconds, and nothing permits any.
      return generateKeyPairSync('dsa', { modulusLength: 1024, divisorLength: 160 }).privateKey;
  }
}
