/**
 * The public area of a TPM object (TPMT_PUBLIC, TPM 2.0 Part 2, §12.2.4): an RSA or elliptic-curve key with its attributes.
 *
 * The name of an object is a digest of these bytes (TPM 2.0 Part 1, §16 "Names"), so every field is decoded, and each has one encoding:
 * `encodePublicArea` of the decoded area returns the bytes that were sent.
 */
import { hash } from 'node:crypto';
import type { Result } from '../../../outcome/result.ts';
import {
  algorithm,
  coordinateBytes,
  curveId,
  digestBytes,
  hashId,
  mostCoordinateBytes,
  mostDigestBytes,
  mostRsaBytes,
  readCurve,
  readHash,
} from './algorithms.ts';
import type { CurveName, HashName } from './algorithms.ts';
import { decodeStructure } from './structure-reader.ts';
import type { StructureReader } from './structure-reader.ts';

/** TPMA_OBJECT (§8.3). */
export const attribute = {
  fixedTpm: 1 << 1,
  stClear: 1 << 2,
  fixedParent: 1 << 4,
  sensitiveDataOrigin: 1 << 5,
  userWithAuth: 1 << 6,
  adminWithPolicy: 1 << 7,
  noDa: 1 << 10,
  encryptedDuplication: 1 << 11,
  restricted: 1 << 16,
  decrypt: 1 << 17,
  sign: 1 << 18,
  x509Sign: 1 << 19,
} as const;

const knownAttributes = Object.values(attribute).reduce((all, bit) => all | bit);

export interface PublicArea {
  readonly nameAlg: HashName;
  /** Bits of `attribute`. */
  readonly attributes: number;
  /** Empty, or a digest of `nameAlg`. */
  readonly authPolicy: Uint8Array;
  /** AES in CFB mode, with which a storage key protects its children. Absent: TPM_ALG_NULL. */
  readonly symmetric?: { readonly bits: 128 | 256 } | undefined;
  /** Absent: TPM_ALG_NULL. */
  readonly scheme?: SignatureScheme | undefined;
  readonly key: RsaKey | EccKey;
}

export interface SignatureScheme {
  readonly name: 'rsassa' | 'rsapss' | 'ecdsa';
  readonly hash: HashName;
}

export interface RsaKey {
  readonly kind: 'rsa';
  readonly modulus: Uint8Array;
  /** As encoded: 0 means 65537 (§12.2.3.5). */
  readonly exponent: 0 | 65537;
}

/** The coordinates as encoded: the GKE dialect strips leading zero bytes, TPMs do not. */
export interface EccKey {
  readonly kind: 'ecc';
  readonly curve: CurveName;
  readonly x: Uint8Array;
  readonly y: Uint8Array;
}

/** An RSA key of 4096 bits with a policy of SHA-512. */
const mostBytes = 700;

/** The problem completes `the public area …`. */
export function decodePublicArea(bytes: Uint8Array): Result<PublicArea, string> {
  return decodeStructure(bytes, mostBytes, (reader): PublicArea => {
    const type = reader.uint16();
    if (type !== algorithm.rsa && type !== algorithm.ecc) return reader.refuse('is not of an RSA or ECC key');
    const nameAlg = readHash(reader);
    const attributes = reader.uint32();
    if ((attributes & ~knownAttributes) !== 0) return reader.refuse('has a reserved attribute');
    const authPolicy = reader.sized(mostDigestBytes, 'a policy');
    if (authPolicy.length !== 0 && authPolicy.length !== digestBytes(nameAlg))
      return reader.refuse('has a policy that is no digest of its hash');
    const symmetric = readSymmetric(reader);
    const scheme = readScheme(reader, type);
    const key = type === algorithm.rsa ? readRsa(reader) : readEcc(reader);
    return { nameAlg, attributes, authPolicy, symmetric, scheme, key };
  });
}

/** TPMT_SYM_DEF_OBJECT (§11.1.7). */
function readSymmetric(reader: StructureReader): PublicArea['symmetric'] {
  const id = reader.uint16();
  if (id === algorithm.null) return undefined;
  if (id !== algorithm.aes) return reader.refuse('names a cipher that is not AES');
  const bits = reader.uint16();
  if (bits !== 128 && bits !== 256) return reader.refuse('names an AES key that is not of 128 or 256 bits');
  if (reader.uint16() !== algorithm.cfb) return reader.refuse('names a cipher mode that is not CFB');
  return { bits };
}

/** TPMT_RSA_SCHEME (§11.2.4.2), TPMT_ECC_SCHEME (§11.2.5.6). */
function readScheme(reader: StructureReader, type: number): SignatureScheme | undefined {
  const id = reader.uint16();
  if (id === algorithm.null) return undefined;
  const name = schemeName(id);
  if (name === undefined || (name === 'ecdsa') !== (type === algorithm.ecc))
    return reader.refuse('names a scheme that is not RSASSA, RSAPSS or ECDSA for its key');
  return { name, hash: readHash(reader) };
}

/** TPMI_ALG_SIG_SCHEME (§9.35). */
export function schemeName(id: number): SignatureScheme['name'] | undefined {
  return (['rsassa', 'rsapss', 'ecdsa'] as const).find((name) => algorithm[name] === id);
}

/** TPMS_RSA_PARMS (§12.2.3.5) without symmetric and scheme, then TPM2B_PUBLIC_KEY_RSA (§11.2.4.5). */
function readRsa(reader: StructureReader): RsaKey {
  const bits = reader.uint16();
  const exponent = reader.uint32();
  if (exponent !== 0 && exponent !== 65537) return reader.refuse('has an RSA exponent that is not 65537');
  const modulus = reader.sized(mostRsaBytes, 'a modulus');
  // The modulus, not the field, says how strong the key is.
  if (modulus.length * 8 !== bits || (modulus[0] ?? 0) < 0x80) return reader.refuse('has a modulus of another length');
  return { kind: 'rsa', modulus, exponent };
}

/** TPMS_ECC_PARMS (§12.2.3.6) without symmetric and scheme, then TPMS_ECC_POINT (§11.2.5.2). */
function readEcc(reader: StructureReader): EccKey {
  const curve = readCurve(reader);
  // §12.2.3.6: no command uses this key derivation, so it shall be TPM_ALG_NULL.
  if (reader.uint16() !== algorithm.null) return reader.refuse('names a key derivation');
  const x = reader.sized(mostCoordinateBytes, 'a coordinate');
  const y = reader.sized(mostCoordinateBytes, 'a coordinate');
  const most = coordinateBytes(curve);
  if (x.length > most || y.length > most) return reader.refuse(`has a coordinate that is too long for ${curve}`);
  return { kind: 'ecc', curve, x, y };
}

export function encodePublicArea(area: PublicArea): Uint8Array {
  const { nameAlg, attributes, authPolicy, symmetric, scheme, key } = area;
  return Buffer.concat([
    uint16(key.kind === 'rsa' ? algorithm.rsa : algorithm.ecc),
    uint16(hashId(nameAlg)),
    uint32(attributes),
    sized(authPolicy),
    ...(symmetric === undefined ? [algorithm.null] : [algorithm.aes, symmetric.bits, algorithm.cfb]).map(uint16),
    ...(scheme === undefined ? [algorithm.null] : [algorithm[scheme.name], hashId(scheme.hash)]).map(uint16),
    ...(key.kind === 'rsa'
      ? [uint16(key.modulus.length * 8), uint32(key.exponent), sized(key.modulus)]
      : [uint16(curveId(key.curve)), uint16(algorithm.null), sized(key.x), sized(key.y)]),
  ]);
}

function uint16(value: number): Uint8Array {
  return Uint8Array.of(value >> 8, value & 0xff);
}

function uint32(value: number): Uint8Array {
  return Uint8Array.of(value >>> 24, (value >> 16) & 0xff, (value >> 8) & 0xff, value & 0xff);
}

/** A TPM2B (§10.4): the bytes behind their size. */
export function sized(bytes: Uint8Array): Uint8Array {
  return Buffer.concat([uint16(bytes.length), bytes]);
}

/** The name of an object (TPM 2.0 Part 1, §16): its nameAlg, then the digest of its public area, `encoded` as it was sent. */
export function objectName(nameAlg: HashName, encoded: Uint8Array): Uint8Array {
  return Buffer.concat([uint16(hashId(nameAlg)), hash(nameAlg, encoded, 'buffer')]);
}
