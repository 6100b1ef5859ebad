import type { Instant } from './instant.ts';

/**
 * The reasons of an operator, with their codes (RFC 5280 §5.3.1). Without `unspecified`, which an entry should leave out, and
 * without `certificateHold` and `removeFromCRL`: a revocation is final.
 */
export const reasonCodes = {
  keyCompromise: 1,
  cACompromise: 2,
  affiliationChanged: 3,
  superseded: 4,
  cessationOfOperation: 5,
  privilegeWithdrawn: 9,
} as const;

export type RevocationReason = keyof typeof reasonCodes;

/** The part of a revocation that is published. */
export interface ListedRevocation {
  /** Lower-case hex, as in the ledger. */
  readonly serial: string;
  /** SHA-256 of the certificate's DER, lower-case hex: the API server's `X509SHA256=…`. */
  readonly fingerprint: string;
  readonly notAfter: Instant;
  readonly reason: RevocationReason;
  readonly at: Instant;
}

/** One revoked certificate. It never changes and is never deleted. */
export interface Revocation extends ListedRevocation {
  /** `Signer.keyId` of the CA that signed the certificate, as in the ledger. */
  readonly caKeyId: string;
  /** The operator's ARN or user name. */
  readonly by: string;
  /** For operators; not published. */
  readonly note: string;
  /** What the command named: `node#worker-3`, `id#` and a machine, `key#` and a key, `serial#` and a serial number. */
  readonly matchedBy: string;
  /** The audit item of the command. */
  readonly auditId: string;
  /** The request that the certificate answered. */
  readonly uid: string;
  /** The attested machine; absent without attestation. */
  readonly identity?: string;
  /** The node of a node's certificate. */
  readonly nodeName?: string;
}

/** The revocations of one cluster. Each write is durable when it returns. */
export interface RevocationStore {
  /** Read-after-write consistent. */
  find(caKeyId: string, serial: string): Promise<Revocation | undefined>;
  /** Writes the revocation only if the certificate is not revoked yet; otherwise it returns the stored revocation. */
  add(revocation: Revocation): Promise<Revocation>;
  /** Those whose certificates expire after `now`, by notAfter. May lack one of the last seconds. */
  list(caKeyId: string, now: Instant): AsyncIterable<Revocation>;
}

/** The latest CRL of one CA, with the revocations in it. A CA that may not sign CRLs has the list of revocations alone. */
export interface StoredCrl {
  readonly caKeyId: string;
  readonly number: number;
  readonly thisUpdate: Instant;
  readonly nextUpdate: Instant;
  /** DER CertificateList. Absent if the certificate of the CA does not permit CRLs. */
  readonly der?: Uint8Array;
  readonly revoked: readonly ListedRevocation[];
  /** The KMS request that made the signature. Absent if the key is not in KMS. */
  readonly kmsRequestId?: string;
}

/** A CRL without its two larger fields. */
export type CrlHead = Omit<StoredCrl, 'der' | 'revoked'>;

export interface CrlStore {
  /** Read-after-write consistent. Throws if a write of another CRL overtakes the read too often. */
  findCrl(caKeyId: string): Promise<StoredCrl | undefined>;
  /** Without its contents. Read-after-write consistent. */
  findHead(caKeyId: string): Promise<CrlHead | undefined>;
  /** Replaces the CRL with the number before; `false`: another one was stored meanwhile. */
  putCrl(crl: StoredCrl): Promise<boolean>;
}
