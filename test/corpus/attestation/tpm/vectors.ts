/**
 * Structures of a real TPM 2.0 implementation: swtpm 0.7.1 made them, tpm2-tools 5.4 wrote them to files, and named each key.
 * `name` is lower-case hex; all other texts are base64. A quote is over sha256:0-7 (all zero) with `extraData` of 32 bytes 0xab.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface KeyVector {
  /** TPMT_PUBLIC. */
  readonly public: string;
  readonly name: string;
  readonly spki: string;
}

export interface SignedVector {
  /** TPMS_ATTEST. */
  readonly attest: string;
  /** TPMT_SIGNATURE. */
  readonly signature: string;
}

interface Vectors {
  /** Endorsement keys, a storage key, a key that signs what it is given, and a key that OpenSSL made. */
  readonly keys: Readonly<
    Record<'ek-rsa' | 'ek-p256' | 'ek-p384' | 'storage' | 'unrestricted' | 'software', KeyVector>
  >;
  /** By attestation keys of four kinds. */
  readonly quotes: Readonly<Record<QuoteVector, KeyVector & SignedVector>>;
  /** Of keys of `keys`, `by` an attestation key of `quotes`. */
  readonly certifications: Readonly<Record<'unrestricted' | 'software', SignedVector & { readonly by: QuoteVector }>>;
}

export type QuoteVector = 'rsassa' | 'rsapss' | 'p256' | 'p384';

export const vectors = JSON.parse(readFileSync(join(import.meta.dirname, 'vectors.json'), 'utf8')) as Vectors;

export function bytesOf(base64: string): Buffer {
  return Buffer.from(base64, 'base64');
}
