import type { Instant } from './instant.ts';

/**
 * One use of a CA key by the ca function: for a CA certificate, a request for one, a CRL, or a certificate for an operator. It is
 * written before the key signs and again, with the KMS request, behind it. A record without it explains a signature whose answer was lost.
 */
export interface SignatureRecord {
  /** ULID. */
  readonly id: string;
  /** `Signer.keyId`. */
  readonly caKeyId: string;
  /** The name of the CA. */
  readonly ca: string;
  /** Of the ca function: `crl`, `csr`, `init` …, or `deploy` by CloudFormation. */
  readonly action: string;
  /** SHA-256 of the signed bytes, lower-case hex: of a CRL its TBSCertList. */
  readonly tbsSha256: string;
  /** Before the key signed. */
  readonly at: Instant;
  /** CloudTrail's `requestID`. Absent while the answer of KMS is not known. */
  readonly kmsRequestId?: string;
}

export interface SignatureLog {
  /** Writes the record, or the record with the KMS request in its place. Durable when it returns. */
  put(record: SignatureRecord): Promise<void>;
}

export interface SignatureReads {
  /** The records with `from <= at < to`, by day. May lack those of the last seconds. */
  list(range: { readonly from: Instant; readonly to: Instant }): AsyncIterable<SignatureRecord>;
}
