import type { Instant } from './instant.ts';

/**
 * The record of one request UID: one per (cluster, uid), never deleted; each cluster has its own ledger.
 *
 *   (none) ──open──► intent ──complete──► issued      `tbs`, `requestDigest`, `caKeyId` never change after open
 *                      │  ▲ takeOver (lease over)
 *                      └──────expire────► expired
 */
export interface IssuingRecord {
  readonly uid: string;
  /** Lower-case hex of the request digest (request-digest.ts): the first request with this UID. */
  readonly requestDigest: string;
  readonly state: 'intent' | 'issued' | 'expired';
  readonly caKeyId: string;
  /** Exactly what is, or is about to be, signed: a retry signs these bytes again, never others. */
  readonly tbs: Uint8Array;
  /** Lower-case hex, no leading zeros beyond a whole octet, as in the certificate. */
  readonly serial: string;
  readonly notAfter: Instant;
  readonly openedAt: Instant;
  /** Counts the workers that have held the lease, from 1; the optimistic lock of takeOver and release. */
  readonly attempt: number;
  readonly leaseUntil: Instant;
  /** The attested machine; absent without attestation. Never changes after open. */
  readonly identity?: string;
  /** DER, present exactly when `issued`. */
  readonly certificate?: Uint8Array;
  /** The signature in this certificate, as KMS and CloudTrail name it; only when `issued`, absent for other keys. */
  readonly kmsRequestId?: string;
}

export type Intent = Omit<IssuingRecord, 'state' | 'attempt' | 'certificate' | 'kmsRequestId'>;

/** `found`: the stored record did not meet the condition; it comes with the same call, without a second read. */
export type LedgerWrite = { readonly kind: 'written' } | { readonly kind: 'found'; readonly found: IssuingRecord };

/**
 * A key that must not have been certified before. The first intent with it leaves a permanent mark. The same request bytes may
 * bring it again, and so may the same machine until it renews: after a lost answer it has no other key.
 */
export interface FreshKey {
  /** Of the key asked for, lower-case hex. */
  readonly spkiSha256: string;
  /** Of spec.request, lower-case hex. */
  readonly requestSha256: string;
  /** The machine whose first key it is: its own mark does not count. Otherwise absent. */
  readonly identity?: string;
}

/** `keyUsed`: another request had this key, and no exception holds. No intent was written. */
export type OpenWrite = LedgerWrite | { readonly kind: 'keyUsed' };

/**
 * The records of begun and issued certificates. Every method is one conditional write or one consistent read, atomic
 * across processes, and durable when it returns. The caller passes the time.
 */
export interface CertificateLedger {
  /** Read-after-write consistent. */
  find(uid: string): Promise<IssuingRecord | undefined>;
  /** Writes an intent (attempt 1) only if the UID has no record. */
  open(intent: Intent): Promise<LedgerWrite>;
  /** In the same write, the mark of its key. For a UID that has a record the answer is `found`, even if the key was used. */
  open(intent: Intent, freshKey: FreshKey | undefined): Promise<OpenWrite>;
  /** intent → intent with attempt+1 and a new lease, only if the record is still an intent of exactly this attempt. */
  takeOver(uid: string, attempt: number, leaseUntil: Instant): Promise<LedgerWrite>;
  /** Ends the lease early so that the next delivery does not wait; only for an intent of this attempt. */
  release(uid: string, attempt: number): Promise<void>;
  /** intent → issued, only if the record is an intent. Any attempt may: all sign the same bytes, the first one wins. */
  complete(uid: string, certificate: Uint8Array, kmsRequestId?: string): Promise<LedgerWrite>;
  /** intent → expired, only if the record is an intent of exactly this attempt. */
  expire(uid: string, attempt: number): Promise<LedgerWrite>;
}
