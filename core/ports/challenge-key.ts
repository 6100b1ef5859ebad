/** The secret key behind attestation challenges. On AWS it is a KMS key that only attest may use; embedded, a row of the store. */
export interface ChallengeKey {
  /** HMAC-SHA-256 (32 bytes). `message` has at most 4096 bytes. Throws if the failure is temporary. */
  mac(message: Uint8Array): Promise<Uint8Array>;
}
