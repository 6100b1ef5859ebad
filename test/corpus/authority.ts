/**
 * CAs for the corpus, made without any code under test: the reference signer and ours are given the same key and
 * certificate. A derived key is the same in every run, so that recorded certificates can be made again from their
 * requests alone and no private key lies in the repository.
 */
import { createECDH, createHash, createPrivateKey, createPublicKey, generateKeyPairSync, sign } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import * as der from '../harness/x509/der-writer.ts';
import { encodeSubject, pemBlock } from '../harness/x509/requests.ts';
import type { SubjectSpec } from '../harness/x509/requests.ts';

export interface CorpusAuthority {
  readonly key: KeyObject;
  /** PKCS #8. */
  readonly keyPem: string;
  readonly certificate: Buffer;
  readonly certificatePem: string;
}

export interface AuthoritySpec {
  readonly key: KeyObject;
  readonly subject: SubjectSpec;
  readonly notBefore: Date;
  readonly notAfter: Date;
  /** Without one, leaves have no authorityKeyIdentifier. */
  readonly subjectKeyIdentifier?: boolean;
}

const curves = {
  'P-256': { name: 'prime256v1', hash: 'sha256', octets: 32, oid: '1.2.840.10045.4.3.2' },
  'P-384': { name: 'secp384r1', hash: 'sha384', octets: 48, oid: '1.2.840.10045.4.3.3' },
  'P-521': { name: 'secp521r1', hash: 'sha512', octets: 66, oid: '1.2.840.10045.4.3.4' },
} as const;

/** Every reader of this repository can make this key: it must never be trusted. */
export function derivedKey(curve: keyof typeof curves, label: string): KeyObject {
  const { name, octets } = curves[curve];
  const secret = createHash('shake256', { outputLength: octets }).update(label).digest();
  secret[0] = 0; // below the order of the curve
  const pair = createECDH(name);
  pair.setPrivateKey(secret);
  const point = pair.getPublicKey();
  const coordinate = (from: number): string => point.subarray(from, from + octets).toString('base64url');
  const jwk = { kty: 'EC', crv: curve, d: secret.toString('base64url'), x: coordinate(1), y: coordinate(1 + octets) };
  return createPrivateKey({ key: jwk, format: 'jwk' });
}

export function newRsaKey(): KeyObject {
  return generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
}

/** A self-signed CA certificate as kubeadm makes it. */
export function makeAuthority(spec: AuthoritySpec): CorpusAuthority {
  const { key } = spec;
  const spki = createPublicKey(key).export({ type: 'spki', format: 'der' });
  const { hash, algorithm } = signing(key);
  const name = encodeSubject(spec.subject);
  const tbs = der.sequence(
    der.constructed(0, der.integer(2)),
    der.integer(1),
    algorithm,
    name,
    der.sequence(time(spec.notBefore), time(spec.notAfter)),
    name,
    spki,
    der.constructed(3, der.sequence(...extensions(spki, spec.subjectKeyIdentifier ?? true))),
  );
  const certificate = der.sequence(tbs, algorithm, der.bits(sign(hash, tbs, key)));
  return {
    key,
    keyPem: key.export({ type: 'pkcs8', format: 'pem' }).toString(),
    certificate,
    certificatePem: pemBlock('CERTIFICATE', certificate),
  };
}

function signing(key: KeyObject): { hash: string; algorithm: Buffer } {
  if (key.asymmetricKeyType === 'rsa')
    return { hash: 'sha256', algorithm: der.sequence(der.oid('1.2.840.113549.1.1.11'), der.nothing()) };
  const curve = Object.values(curves).find(({ name }) => name === key.asymmetricKeyDetails?.namedCurve);
  if (curve === undefined) throw new Error('no CA of the corpus has such a key');
  return { hash: curve.hash, algorithm: der.sequence(der.oid(curve.oid)) };
}

function extensions(spki: Buffer, withKeyIdentifier: boolean): Buffer[] {
  const critical = (oid: string, value: Buffer): Buffer =>
    der.sequence(der.oid(oid), der.boolean(true), der.octets(value));
  return [
    critical('2.5.29.15', der.bits(Buffer.from([0x06]), 1)), // keyCertSign, cRLSign
    critical('2.5.29.19', der.sequence(der.boolean(true))),
    ...(withKeyIdentifier
      ? [der.sequence(der.oid('2.5.29.14'), der.octets(der.octets(createHash('sha1').update(spki).digest())))]
      : []),
  ];
}

/** RFC 5280 §4.1.2.5: two digits for the year up to 2049. */
function time(date: Date): Buffer {
  const digits = `${date.toISOString().replaceAll(/\D/g, '').slice(0, 14)}Z`;
  return date.getUTCFullYear() < 2050
    ? der.tlv(0x17, Buffer.from(digits.slice(2), 'latin1'))
    : der.tlv(0x18, Buffer.from(digits, 'latin1'));
}
