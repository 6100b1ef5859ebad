/** Algorithms by their TPM_ALG_ID (TPM 2.0 Part 2, §6.3) and curves by their TPM_ECC_CURVE (§6.4): those that are accepted. */
import type { StructureReader } from './structure-reader.ts';

export const algorithm = {
  rsa: 0x0001,
  aes: 0x0006,
  null: 0x0010,
  rsassa: 0x0014,
  rsapss: 0x0016,
  ecdsa: 0x0018,
  ecc: 0x0023,
  cfb: 0x0043,
} as const;

export type HashName = 'sha256' | 'sha384' | 'sha512';
export type CurveName = 'P-256' | 'P-384';

/** No SHA-1: a collision of two public areas or attestations would have one name or one signature. */
const hashes: Readonly<Record<HashName, { readonly id: number; readonly bytes: number }>> = {
  sha256: { id: 0x000b, bytes: 32 },
  sha384: { id: 0x000c, bytes: 48 },
  sha512: { id: 0x000d, bytes: 64 },
};
const curves: Readonly<Record<CurveName, { readonly id: number; readonly bytes: number }>> = {
  'P-256': { id: 0x0003, bytes: 32 },
  'P-384': { id: 0x0004, bytes: 48 },
};

/** Bytes of the largest TPMT_HA (§10.3.2), an identifier with its digest: the limit of names and of extraData. */
export const mostNameBytes = 66;
export const mostDigestBytes = 64;
/** An RSA key of 4096 bits. */
export const mostRsaBytes = 512;
export const mostCoordinateBytes = 48;

export function hashId(name: HashName): number {
  return hashes[name].id;
}

export function digestBytes(name: HashName): number {
  return hashes[name].bytes;
}

export function curveId(name: CurveName): number {
  return curves[name].id;
}

export function coordinateBytes(name: CurveName): number {
  return curves[name].bytes;
}

/** TPMI_ALG_HASH (§9.27). */
export function readHash(reader: StructureReader): HashName {
  const id = reader.uint16();
  const found = (['sha256', 'sha384', 'sha512'] as const).find((name) => hashes[name].id === id);
  return found ?? reader.refuse('names a hash that is not SHA-256, SHA-384 or SHA-512');
}

/** TPMI_ECC_CURVE (§11.2.5.5). */
export function readCurve(reader: StructureReader): CurveName {
  const id = reader.uint16();
  const found = (['P-256', 'P-384'] as const).find((name) => curves[name].id === id);
  return found ?? reader.refuse('names a curve that is not P-256 or P-384');
}
