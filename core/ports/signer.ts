/**
 * A CA key that signs. The private key never leaves its store.
 *
 * `sign` takes the DER of a TBSCertificate (or TBSCertList), hashes it with the digest of its algorithm, and returns the bytes
 * of the signatureValue BIT STRING: DER `Ecdsa-Sig-Value` (RFC 3279 §2.2.3) or the RSA block (RFC 8017).
 * One call makes at most one signature: an implementation never retries.
 */
export interface Signer {
  /** A permanent name: a KMS key ARN, or `embedded:<sha256 of the SPKI>`. Recorded with every intent. */
  readonly keyId: string;
  readonly algorithm: SignatureAlgorithm;
  sign(tbs: Uint8Array): Promise<Signature>;
}

export interface Signature {
  readonly bytes: Uint8Array;
  /** The id of this signature in the log of the key store: CloudTrail's `requestID`. Absent without such a log. */
  readonly requestId?: string;
}

/** What a CA key signs with (RFC 5758, RFC 8017), and the digest of it. Fixed when the CA is made. */
export const signatureDigests = {
  ECDSA_SHA_256: 'sha256',
  ECDSA_SHA_384: 'sha384',
  ECDSA_SHA_512: 'sha512',
  RSASSA_PKCS1_V1_5_SHA_256: 'sha256',
  RSASSA_PKCS1_V1_5_SHA_384: 'sha384',
  RSASSA_PKCS1_V1_5_SHA_512: 'sha512',
  RSASSA_PSS_SHA_256: 'sha256',
  RSASSA_PSS_SHA_384: 'sha384',
  RSASSA_PSS_SHA_512: 'sha512',
} as const;

export type SignatureAlgorithm = keyof typeof signatureDigests;

const rsaAlgorithms = [
  'RSASSA_PKCS1_V1_5_SHA_256',
  'RSASSA_PKCS1_V1_5_SHA_384',
  'RSASSA_PKCS1_V1_5_SHA_512',
  'RSASSA_PSS_SHA_256',
  'RSASSA_PSS_SHA_384',
  'RSASSA_PSS_SHA_512',
] as const;

/** By kind of key; the first is the default. A curve goes with one digest: the only pairs KMS offers. */
export const algorithmsOfKey = {
  'P-256': ['ECDSA_SHA_256'],
  'P-384': ['ECDSA_SHA_384'],
  'P-521': ['ECDSA_SHA_512'],
  'RSA-2048': rsaAlgorithms,
  'RSA-3072': rsaAlgorithms,
  'RSA-4096': rsaAlgorithms,
} as const satisfies Readonly<Record<string, readonly SignatureAlgorithm[]>>;
