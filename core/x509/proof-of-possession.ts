/**
 * Proof of possession: a request is signed with its own key (RFC 2986 §4.2). The algorithms and their forms are those
 * of Go's CheckSignature. A SHA-1 signature is verified here and refused by the profile, so that one refusal lists all
 * violations.
 */
import { constants, verify } from 'node:crypto';
import type { KeyObject, VerifyKeyObjectInput } from 'node:crypto';
import { childrenOf, contentOf, derTag, oidOf } from '../encoding/der-reader.ts';
import type { DerElement } from '../encoding/der-reader.ts';
import type { DecodedKey } from './public-key.ts';
import { malformed, violation } from '../outcome/outcome.ts';
import type { RefusalCode, Violations } from '../outcome/outcome.ts';
import { failure, success } from '../outcome/result.ts';
import type { Result } from '../outcome/result.ts';

interface Scheme {
  readonly family: DecodedKey['family'];
  /** node:crypto's name; `undefined` for Ed25519. */
  readonly digest: string | undefined;
  /** Present for RSASSA-PSS. */
  readonly saltLength?: number;
}

const pssOid = '1.2.840.113549.1.1.10';
const ed25519Oid = '1.3.101.112';
const mgf1Oid = '1.2.840.113549.1.1.8';

/** RFC 8017 §A.2.4, RFC 5758 §3.2. RSA with SHA-1 has two OIDs; the second is from ISO. */
const schemes: ReadonlyMap<string, Scheme> = new Map<string, Scheme>([
  ['1.2.840.113549.1.1.5', { family: 'RSA', digest: 'sha1' }],
  ['1.3.14.3.2.29', { family: 'RSA', digest: 'sha1' }],
  ['1.2.840.113549.1.1.11', { family: 'RSA', digest: 'sha256' }],
  ['1.2.840.113549.1.1.12', { family: 'RSA', digest: 'sha384' }],
  ['1.2.840.113549.1.1.13', { family: 'RSA', digest: 'sha512' }],
  ['1.2.840.10045.4.1', { family: 'ECDSA', digest: 'sha1' }],
  ['1.2.840.10045.4.3.2', { family: 'ECDSA', digest: 'sha256' }],
  ['1.2.840.10045.4.3.3', { family: 'ECDSA', digest: 'sha384' }],
  ['1.2.840.10045.4.3.4', { family: 'ECDSA', digest: 'sha512' }],
  [ed25519Oid, { family: 'Ed25519', digest: undefined }],
]);

/** Digests that are broken or rarely used. Such signatures are not verified. */
const refusedDigests: ReadonlyMap<string, string> = new Map([
  ['1.2.840.113549.1.1.2', 'MD2'],
  ['1.2.840.113549.1.1.4', 'MD5'],
  ['1.2.840.113549.1.1.14', 'SHA-224'],
  ['1.2.840.10045.4.3.1', 'SHA-224'],
]);

/** RSASSA-PSS by the OID of the hash. Each hash has one permitted salt length, as in Go. */
const pssHashes: ReadonlyMap<string, Scheme> = new Map<string, Scheme>([
  ['2.16.840.1.101.3.4.2.1', { family: 'RSA', digest: 'sha256', saltLength: 32 }],
  ['2.16.840.1.101.3.4.2.2', { family: 'RSA', digest: 'sha384', saltLength: 48 }],
  ['2.16.840.1.101.3.4.2.3', { family: 'RSA', digest: 'sha512', saltLength: 64 }],
]);

/**
 * The arguments are the parts of a CertificationRequest; `info` is DER. The value is the digest: `SHA-1`, `SHA-256` …;
 * `undefined` for Ed25519.
 */
export function verifySelfSignature(
  info: Uint8Array,
  algorithm: DerElement,
  signature: Uint8Array,
  key: DecodedKey,
): Result<string | undefined, Violations> {
  const scheme = decodeScheme(algorithm);
  if (!scheme.ok) return scheme;
  const { family, digest } = scheme.value;
  if (family !== key.family)
    return invalid(`the request is signed for ${family}, but its key is ${key.publicKey.description}`);
  if (!isSignedBy(info, scheme.value, signature, key))
    return invalid('the self-signature does not verify: the request is not signed with its own key');
  return success(digest?.replace('sha', 'SHA-'));
}

function invalid(message: string, code: RefusalCode = 'SignatureInvalid'): Result<never, Violations> {
  return failure([violation(code, message)]);
}

function decodeScheme(identifier: DerElement): Result<Scheme, Violations> {
  const [algorithm, parameters, ...rest] = childrenOf(identifier, derTag.sequence) ?? [];
  const oid = oidOf(algorithm);
  if (oid === undefined || rest.length > 0)
    return malformed('the signature algorithm is not an identifier with parameters');
  const refusedDigest = refusedDigests.get(oid);
  if (refusedDigest !== undefined)
    return invalid(`the request is signed with ${refusedDigest}: use SHA-256, SHA-384 or SHA-512`, 'KeyNotPermitted');
  if (oid === pssOid) return decodePss(parameters);
  const scheme = schemes.get(oid);
  if (scheme === undefined) return invalid(`signature algorithm ${oid} is not supported`);
  // NULL and absent parameters are both accepted, because programs write either. Ed25519 has no parameters (RFC 8410 §3).
  if (parameters !== undefined && (parameters.tag !== derTag.null || oid === ed25519Oid))
    return malformed('the signature algorithm has parameters it does not define');
  return success(scheme);
}

/**
 * RSASSA-PSS-params (RFC 4055 §3.1): all fields but the trailer must be present (the defaults mean SHA-1), MGF1 must use the
 * same hash, and the salt must be as long as the hash.
 */
function decodePss(parameters: DerElement | undefined): Result<Scheme, Violations> {
  const [hashField, mgfField, saltField, trailerField, ...rest] = childrenOf(parameters, derTag.sequence) ?? [];
  const hash = hashOid(childrenOf(hashField, 0xa0)?.[0]);
  const [mgf, mgfHash] = childrenOf(childrenOf(mgfField, 0xa1)?.[0], derTag.sequence) ?? [];
  const saltLength = smallInteger(childrenOf(saltField, 0xa2)?.[0]);
  const trailer = trailerField === undefined ? 1 : smallInteger(childrenOf(trailerField, 0xa3)?.[0]);
  const scheme = pssHashes.get(hash ?? '');
  return scheme === undefined ||
    oidOf(mgf) !== mgf1Oid ||
    hashOid(mgfHash) !== hash ||
    saltLength !== scheme.saltLength ||
    trailer !== 1 ||
    rest.length > 0
    ? invalid(
        'RSASSA-PSS is supported with SHA-256, SHA-384 or SHA-512, MGF1 with the same hash, and a salt as long as the hash',
      )
    : success(scheme);
}

/** AlgorithmIdentifier of a hash: parameters NULL or absent (RFC 4055 §2.1). */
function hashOid(identifier: DerElement | undefined): string | undefined {
  const [algorithm, parameters, ...rest] = childrenOf(identifier, derTag.sequence) ?? [];
  return (parameters === undefined || parameters.tag === derTag.null) && rest.length === 0
    ? oidOf(algorithm)
    : undefined;
}

function smallInteger(element: DerElement | undefined): number | undefined {
  if (element?.tag !== derTag.integer) return undefined;
  const content = contentOf(element);
  return content.length === 1 ? content[0] : undefined;
}

function isSignedBy(info: Uint8Array, { digest, saltLength }: Scheme, signature: Uint8Array, key: DecodedKey): boolean {
  // node:crypto's defaults are PKCS #1 v1.5 for RSA and DER for ECDSA, as the RFCs require.
  const input: KeyObject | VerifyKeyObjectInput =
    saltLength === undefined
      ? key.keyObject
      : { key: key.keyObject, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength };
  try {
    return verify(digest, info, input, signature);
  } catch {
    // OpenSSL throws if a key is too small for the scheme.
    return false;
  }
}
