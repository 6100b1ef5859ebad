import type { Instant } from './instant.ts';

/**
 * The UIDs of certificates of kubeadm's control plane begin so. No request of a cluster has a UID with a slash, so the sign function cannot
 * reach their records.
 */
export const kubeadmUidPrefix = 'kubeadm/';

/**
 * The record of one request UID. It is never deleted. Each cluster has its own ledger.
 *
 *   (none) ──open──► intent ──complete──► issued      `tbs`, `requestDigest`, `caKeyId` never change after open
 *                      │  ▲ takeOver (lease expired)
 *                      └──────expire────► expired
 */
export interface IssuingRecord {
  readonly uid: string;
  /** Of the first request with this UID (request-digest.ts), lower-case hex. */
  readonly requestDigest: string;
  readonly state: 'intent' | 'issued' | 'expired';
  readonly caKeyId: string;
  /** The bytes that the key signs; a retry signs the same bytes. */
  readonly tbs: Uint8Array;
  /** Lower-case hex of the serial number, two digits for each octet. */
  readonly serial: string;
  readonly notAfter: Instant;
  readonly openedAt: Instant;
  /** How many deliveries have held the lease, from 1. takeOver, release and expire require the current value. */
  readonly attempt: number;
  readonly leaseUntil: Instant;
  /** The Lambda invocation that got the lease last. Absent if the delivery did not come through Lambda. */
  readonly lambdaRequestId?: string;
  /** The attested machine; absent without attestation. Never changes after open. */
  readonly identity?: string;
  /** Never changes after open. Absent in records of versions that did not keep it. */
  readonly request?: RequestFacts;
  /** DER, present exactly when `issued`. */
  readonly certificate?: Uint8Array;
  /** The KMS request (CloudTrail `requestID`) that made the signature. Only when `issued`; absent if the key is not in KMS. */
  readonly kmsRequestId?: string;
}

/**
 * What is kept of a request object beside its certificate. A text or list above the limit (request-facts.ts) is absent as a whole,
 * since half a list of groups would be another requester.
 */
export interface RequestFacts {
  /** spec.signerName, or the default of v1beta1. */
  readonly signerName: string;
  /** spec.username. */
  readonly requester?: string;
  readonly groups?: readonly string[];
  readonly usages?: readonly string[];
  readonly expirationSeconds?: number;
}

export type Intent = Omit<IssuingRecord, 'state' | 'attempt' | 'certificate' | 'kmsRequestId'>;

/** `found`: the condition does not hold; the stored record is returned. */
export type LedgerResult = { readonly kind: 'written' } | { readonly kind: 'found'; readonly found: IssuingRecord };

/**
 * A key that must not have been certified before. The first intent with this key marks it permanently as used. The same
 * request bytes may use it again. The machine may use its first key again until it renews: after a lost answer it has no other.
 */
export interface FreshKey {
  /** Of the requested key, lower-case hex. */
  readonly spkiSha256: string;
  /** Of spec.request, lower-case hex. */
  readonly requestSha256: string;
  /** The machine whose first key it is; a mark by the same machine does not count. Absent for any other key. */
  readonly identity?: string;
}

/** `keyUsed`: another request used this key, and no exception of FreshKey applies. No intent was written. */
export type OpenResult = LedgerResult | { readonly kind: 'keyUsed' };

/**
 * The records of begun and issued certificates. Every method is one conditional write or one consistent read, atomic
 * across processes, and durable when it returns. The caller passes the time.
 */
export interface CertificateLedger {
  /** Read-after-write consistent. */
  find(uid: string): Promise<IssuingRecord | undefined>;
  /** Writes an intent (attempt 1) only if the UID has no record. */
  open(intent: Intent): Promise<LedgerResult>;
  /** Also marks the key, in the same write. If the UID has a record, the answer is `found`, even if the key was used. */
  open(intent: Intent, freshKey: FreshKey | undefined): Promise<OpenResult>;
  /**
   * intent → intent with attempt+1, a new lease and its invocation, only if the record is still an intent of exactly this
   * attempt. Without `lambdaRequestId` the record names no invocation.
   */
  takeOver(uid: string, attempt: number, leaseUntil: Instant, lambdaRequestId?: string): Promise<LedgerResult>;
  /** Ends the lease so that the next delivery need not wait, only if the record is still an intent of this attempt. */
  release(uid: string, attempt: number): Promise<void>;
  /** intent → issued, from any attempt, because all sign the same bytes. The first certificate is kept. */
  complete(uid: string, certificate: Uint8Array, kmsRequestId?: string): Promise<LedgerResult>;
  /** intent → expired, only if the record is an intent of exactly this attempt. */
  expire(uid: string, attempt: number): Promise<LedgerResult>;
}
