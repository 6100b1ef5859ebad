/**
 * Decodes the public key of a request (SubjectPublicKeyInfo, RFC 5280 §4.1.2.7): its kind, and a KeyObject to verify with.
 * Only one encoding of each key is accepted, because the certificate contains these bytes unchanged.
 */
import { createPublicKey } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import type { KeyKind, PublicKey } from './model.ts';
import { bitsOf, childrenOf, contentOf, derTag, encodingOf, oidOf, readDer } from '../encoding/der-reader.ts';
import type { DerElement } from '../encoding/der-reader.ts';
import { malformed, violation } from '../outcome/outcome.ts';
import type { Violations } from '../outcome/outcome.ts';
import { failure, success } from '../outcome/result.ts';
import type { Result } from '../outcome/result.ts';
import { toPem } from '../encoding/pem.ts';

export interface DecodedKey {
  readonly publicKey: PublicKey;
  readonly family: 'RSA' | 'ECDSA' | 'Ed25519';
  readonly keyObject: KeyObject;
}

/** The time to verify grows steeply with the modulus, so an attacker could use a larger key to exhaust CPU time. */
const maxRsaBits = 8192;

interface Curve {
  readonly name: string;
  /** Absent if keys of this curve are never certified. They are still verified, so that one refusal lists all violations. */
  readonly kind?: KeyKind;
  readonly bits: number;
}

/** Named curves by OID (RFC 5480 §2.1.1.1): those that the in-tree signer supports. */
const curves: ReadonlyMap<string, Curve> = new Map<string, Curve>([
  ['1.2.840.10045.3.1.7', { name: 'P-256', kind: 'P-256', bits: 256 }],
  ['1.3.132.0.34', { name: 'P-384', kind: 'P-384', bits: 384 }],
  ['1.3.132.0.35', { name: 'P-521', kind: 'P-521', bits: 521 }],
  ['1.3.132.0.33', { name: 'P-224', bits: 224 }],
]);

/** Names of unsupported algorithms, for messages. */
const otherAlgorithms: ReadonlyMap<string, string> = new Map([
  ['1.2.840.113549.1.1.10', 'RSASSA-PSS-only'],
  ['1.2.840.10040.4.1', 'DSA'],
  ['1.3.101.110', 'X25519'],
  ['1.3.101.111', 'X448'],
  ['1.3.101.113', 'Ed448'],
  ['1.3.132.0.10', 'secp256k1'],
]);

type Decoded = Result<DecodedKey, Violations>;

/** `spki`: DER that holds nothing else. */
export function decodeSpki(spki: Uint8Array): Decoded {
  const info = readDer(spki);
  return info.ok ? decodePublicKey(info.value) : undecodable(`is not DER: it ${info.problem}`);
}

export function decodePublicKey(info: DerElement): Decoded {
  const [identifier, subjectPublicKey, ...rest] = childrenOf(info, derTag.sequence) ?? [];
  const [algorithm, parameters, ...restOfIdentifier] = childrenOf(identifier, derTag.sequence) ?? [];
  const oid = oidOf(algorithm);
  const bits = bitsOf(subjectPublicKey);
  if (oid === undefined || bits === undefined || rest.length > 0 || restOfIdentifier.length > 0)
    return undecodable('is not an algorithm and a key');
  const spki = encodingOf(info);
  switch (oid) {
    case '1.2.840.113549.1.1.1':
      return decodeRsa(spki, parameters, bits);
    case '1.2.840.10045.2.1':
      return decodeEc(spki, parameters, bits);
    case '1.3.101.112':
      return decodeEd25519(spki, parameters, bits);
    default:
      return notPermitted(`${otherAlgorithms.get(oid) ?? `algorithm ${oid}`} keys are not supported`);
  }
}

function undecodable(what: string): Result<never, Violations> {
  return malformed(`the public key ${what}`);
}

function notPermitted(what: string): Result<never, Violations> {
  return failure([violation('KeyNotPermitted', `${what}: use RSA, ECDSA on P-256, P-384 or P-521, or Ed25519`)]);
}

/** RFC 3279 §2.3.1: NULL parameters; the key is a SEQUENCE of modulus and exponent. */
function decodeRsa(spki: Uint8Array, parameters: DerElement | undefined, bits: Uint8Array): Decoded {
  if (parameters?.tag !== derTag.null) return undecodable('lacks the NULL parameters of an RSA key');
  const key = readDer(bits);
  if (!key.ok) return undecodable(`is not DER: it ${key.problem}`);
  const [modulus, exponent, ...rest] = childrenOf(key.value, derTag.sequence) ?? [];
  const n = positiveInteger(modulus);
  const e = positiveInteger(exponent);
  if (n === undefined || e === undefined || rest.length > 0) return undecodable('is not an RSA modulus and exponent');
  const modulusBits = n.length * 8 - Math.clz32(n[0] ?? 0) + 24;
  if (modulusBits > maxRsaBits) return notPermitted(`RSA keys above ${maxRsaBits} bits are not supported`);
  // An even modulus or exponent is invalid, with e = 1 signatures can be forged, and Go limits e to 31 bits.
  if (
    !isOdd(n) ||
    !isOdd(e) ||
    e.length > 4 ||
    (e.length === 4 && (e[0] ?? 0) >= 0x80) ||
    (e.length === 1 && e[0] === 1)
  )
    return notPermitted('an RSA key needs an odd modulus and an odd exponent from 3 to 2147483647');
  const publicKey: PublicKey = { kind: 'RSA', description: `RSA ${modulusBits}`, bits: modulusBits, spki };
  return withKeyObject(publicKey, 'RSA');
}

/** Big-endian magnitude without a leading zero; `undefined` for zero, negative numbers and other elements. */
function positiveInteger(element: DerElement | undefined): Uint8Array | undefined {
  if (element?.tag !== derTag.integer) return undefined;
  const content = contentOf(element);
  const first = content[0] ?? 0;
  if (first >= 0x80 || (first === 0 && content.length === 1)) return undefined;
  return first === 0 ? content.subarray(1) : content;
}

function isOdd(magnitude: Uint8Array): boolean {
  return ((magnitude.at(-1) ?? 0) & 1) === 1;
}

/** RFC 5480: a named curve and an uncompressed point. node:crypto refuses a point that is not on the curve. */
function decodeEc(spki: Uint8Array, parameters: DerElement | undefined, point: Uint8Array): Decoded {
  const curveOid = oidOf(parameters);
  if (curveOid === undefined) return undecodable('names no curve: explicit curve parameters are not supported');
  const curve = curves.get(curveOid);
  if (curve === undefined)
    return notPermitted(`keys on ${otherAlgorithms.get(curveOid) ?? `curve ${curveOid}`} are not supported`);
  const { name, kind, bits } = curve;
  // Compressed and hybrid points are second encodings of the same key.
  if (point[0] !== 4 || point.length !== 1 + 2 * Math.ceil(bits / 8))
    return undecodable(`is not an uncompressed point on ${name}`);
  return withKeyObject({ kind, description: `ECDSA ${name}`, bits, spki }, 'ECDSA');
}

/** RFC 8410 §3, §4: no parameters, 32 octets. */
function decodeEd25519(spki: Uint8Array, parameters: DerElement | undefined, key: Uint8Array): Decoded {
  if (parameters !== undefined || key.length !== 32) return undecodable('is not an Ed25519 key of 32 octets');
  return withKeyObject({ kind: 'Ed25519', description: 'Ed25519', bits: 256, spki }, 'Ed25519');
}

function withKeyObject(publicKey: PublicKey, family: DecodedKey['family']): Decoded {
  try {
    // PEM, because Node reads a DER key more slowly: it first creates and drops an error.
    return success({ publicKey, family, keyObject: createPublicKey(toPem('PUBLIC KEY', publicKey.spki)) });
  } catch {
    // OpenSSL throws for a point that is not on its curve.
    return undecodable(`is no valid ${publicKey.description} key`);
  }
}
