/**
 * A CA key that signs. The private key never leaves its store.
 *
 * `sign` takes the DER of a TBSCertificate (or TBSCertList), hashes it with the digest of `algorithm`, and returns the bytes
 * of the signatureValue BIT STRING: DER `Ecdsa-Sig-Value` (RFC 3279 §2.2.3) or the RSA signature (RFC 8017).
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
  /** CloudTrail's `requestID` of the call. Absent if the key is not in KMS. */
  readonly requestId?: string;
}

/** The digest of each signature algorithm (RFC 5758, RFC 8017). The algorithm of a CA never changes. */
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

/** The signature algorithms of each kind of key; the first is the default. KMS offers one digest for each curve. */
export const algorithmsOfKey = {
  'P-256': ['ECDSA_SHA_256'],
  'P-384': ['ECDSA_SHA_384'],
  'P-521': ['ECDSA_SHA_512'],
  'RSA-2048': rsaAlgorithms,
  'RSA-3072': rsaAlgorithms,
  'RSA-4096': rsaAlgorithms,
} as const satisfies Readonly<Record<string, readonly SignatureAlgorithm[]>>;
