/**
 * Writes certificates of any content: also those that no CA would issue. Nothing of the product uses it, and the product's own
 * writer is not used, so that a certificate is read by other code than wrote it.
 */
import { constants, createPublicKey, generateKeyPairSync, sign } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import * as der from './der-writer.ts';
import type { Bytes } from './der-writer.ts';

export const keyKinds = {
  'P-256': () => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey,
  'P-384': () => generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey,
  'P-521': () => generateKeyPairSync('ec', { namedCurve: 'P-521' }).privateKey,
  'P-224': () => generateKeyPairSync('ec', { namedCurve: 'P-224' }).privateKey,
  secp256k1: () => generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).privateKey,
  Ed25519: () => generateKeyPairSync('ed25519').privateKey,
  'RSA-2048': () => generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey,
  'RSA-1024': () => generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey,
} as const;
type KeyKind = keyof typeof keyKinds;

/** One key of each kind and name for the whole process: RSA keys take long to make. */
const made = new Map<string, KeyObject>();
export function keyOf(name: string, kind: KeyKind = 'P-256'): KeyObject {
  const found = made.get(`${kind} ${name}`) ?? keyKinds[kind]();
  made.set(`${kind} ${name}`, found);
  return found;
}

export const spkiOf = (key: KeyObject): Buffer => createPublicKey(key).export({ type: 'spki', format: 'der' });

/** `CN=…` unless given as `[type, value][]`. */
export function name(parts: string | readonly (readonly [type: string, value: string])[]): Buffer {
  const all = typeof parts === 'string' ? [['2.5.4.3', parts] as const] : parts;
  return der.sequence(...all.map(([type, value]) => der.set(der.sequence(der.oid(type), der.utf8(value)))));
}

interface SigningAlgorithm {
  readonly identifier: Buffer;
  readonly digest: string | undefined;
  readonly pss?: number;
}
const rsa = (oid: string, digest: string): SigningAlgorithm => ({
  identifier: der.sequence(der.oid(oid), der.nothing()),
  digest,
});
const ecdsa = (oid: string, digest: string): SigningAlgorithm => ({ identifier: der.sequence(der.oid(oid)), digest });

export const signingAlgorithms = {
  'RSA SHA-1': rsa('1.2.840.113549.1.1.5', 'sha1'),
  'RSA SHA-256': rsa('1.2.840.113549.1.1.11', 'sha256'),
  'RSA SHA-512': rsa('1.2.840.113549.1.1.13', 'sha512'),
  'ECDSA SHA-1': ecdsa('1.2.840.10045.4.1', 'sha1'),
  'ECDSA SHA-256': ecdsa('1.2.840.10045.4.3.2', 'sha256'),
  /** With NULL parameters, which RFC 5758 §3.2 forbids: roots of TPM manufacturers have it. */
  'ECDSA SHA-256 NULL': rsa('1.2.840.10045.4.3.2', 'sha256'),
  'ECDSA SHA-384': ecdsa('1.2.840.10045.4.3.3', 'sha384'),
  Ed25519: { identifier: der.sequence(der.oid('1.3.101.112')), digest: undefined },
  'PSS SHA-256': {
    identifier: der.sequence(
      der.oid('1.2.840.113549.1.1.10'),
      der.sequence(
        der.constructed(0, der.sequence(der.oid('2.16.840.1.101.3.4.2.1'), der.nothing())),
        der.constructed(
          1,
          der.sequence(der.oid('1.2.840.113549.1.1.8'), der.sequence(der.oid('2.16.840.1.101.3.4.2.1'), der.nothing())),
        ),
        der.constructed(2, der.integer(32)),
      ),
    ),
    digest: 'sha256',
    pss: 32,
  },
} as const satisfies Readonly<Record<string, SigningAlgorithm>>;
export type SigningAlgorithmName = keyof typeof signingAlgorithms;

export interface CertificateSpec {
  readonly subject: Bytes;
  readonly issuer: Bytes;
  readonly key: KeyObject;
  readonly signer: KeyObject;
  readonly notBefore: number;
  readonly notAfter: number;
  /** Each a whole Extension; absent: no extensions. */
  readonly extensions?: readonly Bytes[];
  /** Absent: the usual one of the signer's key. */
  readonly algorithm?: SigningAlgorithmName;
  /** In the signed part, instead of the same. */
  readonly innerAlgorithm?: SigningAlgorithmName;
  /** 2 is v3. */
  readonly version?: number;
  readonly serial?: bigint;
}

let serials = 0x4000n;

export function writeCertificate(spec: CertificateSpec): Buffer {
  const { subject, issuer, key, signer, notBefore, notAfter, extensions = [], version = 2 } = spec;
  const used = spec.algorithm ?? usualAlgorithm(signer);
  const algorithm: SigningAlgorithm = signingAlgorithms[used];
  const inner = signingAlgorithms[spec.innerAlgorithm ?? used];
  serials += 1n;
  const tbs = der.sequence(
    ...(version === 0 ? [] : [der.constructed(0, der.integer(version))]),
    der.integer(spec.serial ?? serials),
    inner.identifier,
    issuer,
    der.sequence(time(notBefore), time(notAfter)),
    subject,
    spkiOf(key),
    ...(extensions.length === 0 ? [] : [der.constructed(3, der.sequence(...extensions))]),
  );
  const padding =
    algorithm.pss === undefined ? {} : { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: algorithm.pss };
  const signature = sign(algorithm.digest, tbs, { key: signer, ...padding });
  return der.sequence(tbs, algorithm.identifier, der.bits(signature));
}

function usualAlgorithm({ asymmetricKeyType }: KeyObject): SigningAlgorithmName {
  if (asymmetricKeyType === 'rsa') return 'RSA SHA-256';
  return asymmetricKeyType === 'ed25519' ? 'Ed25519' : 'ECDSA SHA-256';
}

/** GeneralizedTime from 2050 on, as RFC 5280 §4.1.2.5 has it. */
function time(instant: number): Buffer {
  const text = new Date(instant).toISOString().replace(/[-:T]|\.\d{3}/g, '');
  return instant < Date.UTC(2050) ? der.tlv(0x17, Buffer.from(text.slice(2))) : der.tlv(0x18, Buffer.from(text));
}

// ── Extensions ──────────────────────────────────────────────────────────────────────────────────────────────────────

export function extension(oid: string, value: Bytes, critical = false): Buffer {
  return der.sequence(der.oid(oid), ...(critical ? [der.boolean(true)] : []), der.octets(value));
}

export function basicConstraints(isCa: boolean, pathLength?: number): Buffer {
  const length = pathLength === undefined ? [] : [der.integer(pathLength)];
  return extension('2.5.29.19', der.sequence(...(isCa ? [der.boolean(true)] : []), ...length), true);
}

/** Bits by their number (RFC 5280 §4.2.1.3), 0 to 7: 0 digitalSignature, 5 keyCertSign. */
export function keyUsage(...numbers: readonly number[]): Buffer {
  const octet = numbers.reduce((sum, bit) => sum | (0x80 >> bit), 0);
  const unused = Math.min(7, 7 - Math.max(...numbers));
  return extension('2.5.29.15', der.bits(Buffer.from([octet]), unused), true);
}

export const purposes = {
  clientAuth: '1.3.6.1.5.5.7.3.2',
  serverAuth: '1.3.6.1.5.5.7.3.1',
  any: '2.5.29.37.0',
} as const;

export function extKeyUsage(...oids: readonly string[]): Buffer {
  return extension('2.5.29.37', der.sequence(...oids.map(der.oid)));
}

export const general = {
  uri: (text: string) => der.primitive(6, Buffer.from(text)),
  dns: (text: string) => der.primitive(2, Buffer.from(text)),
  email: (text: string) => der.primitive(1, Buffer.from(text)),
  ip: (...octets: readonly number[]) => der.primitive(7, Buffer.from(octets)),
  directory: (text: string) => der.constructed(4, name(text)),
} as const;

export function subjectAltName(...names: readonly Bytes[]): Buffer {
  return extension('2.5.29.17', der.sequence(...names));
}

export function nameConstraints({
  permitted = [],
  excluded = [],
}: {
  readonly permitted?: readonly Bytes[];
  readonly excluded?: readonly Bytes[];
}): Buffer {
  const subtrees = (number: number, names: readonly Bytes[]) =>
    names.length === 0 ? [] : [der.constructed(number, ...names.map((one) => der.sequence(one)))];
  return extension('2.5.29.30', der.sequence(...subtrees(0, permitted), ...subtrees(1, excluded)), true);
}

export function keyIdentifiers(subjectKey: Bytes, issuerKey?: Bytes): readonly Buffer[] {
  return [
    extension('2.5.29.14', der.octets(subjectKey)),
    ...(issuerKey === undefined ? [] : [extension('2.5.29.35', der.sequence(der.primitive(0, issuerKey)))]),
  ];
}
