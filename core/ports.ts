/**
 * The outside world as the rules see it: few small interfaces whose comments are their contracts.
 * `test/contract/` holds each implementation to them. A method that throws says "temporary: try again"; it may have
 * taken effect or not, and callers must be right in both cases.
 */
import type { BusyWhy, IgnoredWhy, RefusalCode, Violations } from './outcome.ts';

/** Milliseconds since 1970-01-01T00:00:00Z. */
export type Instant = number;

/**
 * A CA key that signs, wherever it lies. It never leaves.
 *
 * `sign` takes the DER of a TBSCertificate (or TBSCertList), hashes it as its algorithm says, and gives the bytes for
 * the signatureValue BIT STRING: DER `Ecdsa-Sig-Value` (RFC 3279 §2.2.3) or the RSA block (RFC 8017).
 * One call is at most one signature: an implementation retries nothing itself.
 */
export interface Signer {
  /** Names the key for good: a KMS key ARN, or `embedded:<sha256 of the SPKI>`. Recorded with every intent. */
  readonly keyId: string;
  readonly algorithm: SignatureAlgorithm;
  sign(tbs: Uint8Array): Promise<Signature>;
}

export interface Signature {
  readonly bytes: Uint8Array;
  /** What the log of whoever holds the key calls this signature: CloudTrail's `requestID`. Absent without such a log. */
  readonly requestId?: string;
}

/** What a CA key signs with; fixed when the CA is made. RFC 5758, RFC 8017. */
export type SignatureAlgorithm =
  | 'ECDSA_SHA_256'
  | 'ECDSA_SHA_384'
  | 'ECDSA_SHA_512'
  | 'RSASSA_PKCS1_V1_5_SHA_256'
  | 'RSASSA_PKCS1_V1_5_SHA_384'
  | 'RSASSA_PKCS1_V1_5_SHA_512'
  | 'RSASSA_PSS_SHA_256'
  | 'RSASSA_PSS_SHA_384'
  | 'RSASSA_PSS_SHA_512';

/**
 * What is known of one request UID. One per (cluster, uid) for good; each cluster has a ledger of its own.
 *
 *   (none) ──open──► intent ──complete──► issued      `tbs`, `requestDigest`, `caKeyId` never change after open
 *                      │  ▲ takeOver (lease over)
 *                      └──────expire────► expired
 */
export interface IssuingRecord {
  readonly uid: string;
  /** Lower-case hex of the request digest (request-digest.ts): which request this UID stood for first. */
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
  /** Which machine the certificate is for, as attested. Absent where none was asked for. Never changes after open. */
  readonly identity?: string;
  /** DER, present exactly when `issued`. */
  readonly certificate?: Uint8Array;
  /** The signature in this certificate, as KMS and CloudTrail name it; only when `issued`, absent for other keys. */
  readonly kmsRequestId?: string;
}

export type Intent = Omit<IssuingRecord, 'state' | 'attempt' | 'certificate' | 'kmsRequestId'>;

/** The write was done, or the record stood otherwise, in which case that record is given (same call, no second read). */
export type LedgerWrite = { readonly written: true } | { readonly written: false; readonly found: IssuingRecord };

/**
 * A key that must not have been certified before. The first intent that brings one leaves a mark of it for good.
 *
 * It may come again with the very same bytes, and for the same machine as long as its caller allows: until the machine
 * renews, an answer that it lost leaves it nothing but that key to ask with.
 */
export interface FreshKey {
  /** Of the key asked for, lower-case hex. */
  readonly spkiSha256: string;
  /** Of spec.request, lower-case hex. */
  readonly requestSha256: string;
  /** The key is this machine's first: its own mark does not stand in the way. Else absent. */
  readonly identity?: string;
}

/** `keyUsed`: another request brought this key, and none of the exceptions holds. No intent was written. */
export type OpenWrite = LedgerWrite | { readonly written: false; readonly why: 'keyUsed' };

/**
 * Remembers what was begun and what was issued. Every method is one conditional write or one consistent read, atomic
 * across processes, and durable when it returns. Time is never the store's own: callers pass it.
 */
export interface CertificateLedger {
  /** Read-after-write consistent. */
  find(uid: string): Promise<IssuingRecord | undefined>;
  /** Writes an intent (attempt 1) only if the UID has no record. */
  open(intent: Intent): Promise<LedgerWrite>;
  /** The same, and in the same write the mark of its key. A UID that has a record is told as above, used key or not. */
  open(intent: Intent, freshKey: FreshKey | undefined): Promise<OpenWrite>;
  /** intent → intent with attempt+1 and a new lease, only if the record is still an intent of exactly this attempt. */
  takeOver(uid: string, attempt: number, leaseUntil: Instant): Promise<LedgerWrite>;
  /** Ends the lease early so that the next try need not wait, only for an intent of this attempt; otherwise nothing. */
  release(uid: string, attempt: number): Promise<void>;
  /** intent → issued, only if the record is an intent. Any attempt may: all sign the same bytes, the first one wins. */
  complete(uid: string, certificate: Uint8Array, kmsRequestId?: string): Promise<LedgerWrite>;
  /** intent → expired, only if the record is an intent of exactly this attempt. */
  expire(uid: string, attempt: number): Promise<LedgerWrite>;
}

/** Thrown by adapters when the far side asks to slow down; anything else thrown counts as unavailable. */
export class ThrottledError extends Error {
  override readonly name = 'ThrottledError';
}

/**
 * Thrown where nothing is wrong and it is only too early: for a second look, or for one more request of the same machine
 * or requester. It says nothing of what others may ask.
 */
export class LaterError extends Error {
  override readonly name = 'LaterError';
  readonly why: 'SecondLook' | 'Limited';
  readonly afterMilliseconds: number;
  constructor(why: LaterError['why'], message: string, afterMilliseconds: number) {
    super(message);
    this.why = why;
    this.afterMilliseconds = afterMilliseconds;
  }
}

/**
 * Thrown by adapters when the far side says no and will say so until an operator changes something: a key that is
 * disabled, a permission that is missing, a table that is gone. To a client it is temporary like the rest.
 */
export class MisconfigurationError extends Error {
  override readonly name = 'MisconfigurationError';
}

/** Something of ours or the CA's is broken: no certificate leaves, an alarm is raised, the request stays retryable. */
export class CertificateDefectError extends Error {
  override readonly name = 'CertificateDefectError';
}

/** Any JSON object, as received: fields we do not know are kept and sent back. */
export type JsonObject = Readonly<Record<string, unknown>>;

/**
 * A definite "no" of the API server. Whatever leaves open what happened (a broken connection, a timeout, a 5xx, an
 * answer that cannot be read) is thrown, and so is ThrottledError.
 */
export type ApiRefusal =
  | 'Unauthorized' // 401: about the caller, never about the object
  | 'Forbidden' // 403: likewise
  | 'NotFound'
  | 'Conflict' // another resourceVersion or UID than the one sent; of a create: it exists
  | 'Expired' // 410: the resourceVersion or continue token is too old to go on from: list anew
  | 'Invalid' // 400, 422 and the other 4xx: this will not be accepted however often it is sent
  | 'TooLarge'; // more than the API server or etcd stores, a URL carries or the caller's side holds

export type ApiAnswer<T> =
  { readonly ok: true; readonly value: T } | { readonly ok: false; readonly why: ApiRefusal; readonly message: string };

export interface RequestPage {
  /** Each with apiVersion and kind, which the API server leaves out of list items. */
  readonly items: readonly JsonObject[];
  /** The same on all pages of one list: the state that all of them show, and where a watch goes on from. */
  readonly resourceVersion: string;
  /** Present when there are more pages. */
  readonly continue?: string;
}

export type WatchEvent =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: JsonObject; readonly bytes: number }
  | { readonly type: 'BOOKMARK'; readonly resourceVersion: string }
  /** The last one of its watch. */
  | { readonly type: 'ERROR'; readonly why: ApiRefusal | 'Unavailable'; readonly message: string }
  /** A line that was too long to hold: an object changed, unknown which. Requesters can make such objects. */
  | { readonly type: 'OVERSIZED'; readonly bytes: number }
  /** A line that could not be read: something changed, unknown what. */
  | { readonly type: 'UNREADABLE'; readonly message: string };

/**
 * The CertificateSigningRequests of one cluster, certificates.k8s.io/v1. Every call ends in bounded time, `signal`
 * or not; a write that throws may have taken effect.
 */
export interface RequestApi {
  /**
   * One page. Without `continue` it begins a list of the newest state (a consistent read); with it the same list goes on.
   * `each`, where given, may get the objects one by one as they come in, with the bytes of their JSON where these are
   * known, instead of the page: so nobody holds all of it. It may have had some when the page comes to nothing after all.
   */
  list(
    query: { readonly signerName: string; readonly limit: number; readonly continue?: string },
    signal: AbortSignal,
    each?: (object: JsonObject, bytes?: number) => void,
  ): Promise<ApiAnswer<RequestPage>>;
  /**
   * Every change after `resourceVersion`, in order, each once, with bookmarks where the server gives them. The
   * iteration ends when the server ends it (about `timeoutSeconds`), and throws when the connection breaks.
   */
  watch(
    query: { readonly signerName: string; readonly resourceVersion: string; readonly timeoutSeconds: number },
    signal: AbortSignal,
  ): Promise<ApiAnswer<AsyncIterable<WatchEvent>>>;
  get(name: string, signal: AbortSignal): Promise<ApiAnswer<JsonObject>>;
  /** Replaces `status`, only if the object still has this UID and resourceVersion. Gives the object as stored. */
  updateStatus(object: JsonObject, signal: AbortSignal): Promise<ApiAnswer<JsonObject>>;
  /** Likewise the decisions among the conditions, and metadata.annotations in the same write. The rest stays as it is. */
  updateApproval(object: JsonObject, signal: AbortSignal): Promise<ApiAnswer<JsonObject>>;
  /** Whether the cluster's own authorization lets somebody do something. Nothing is written by asking. */
  reviewAccess(question: AccessQuestion, signal: AbortSignal): Promise<ApiAnswer<boolean>>;
  /** An Event of events.k8s.io/v1 in namespace `default`, where those about cluster-wide objects live. */
  createEvent(event: JsonObject, signal: AbortSignal): Promise<ApiAnswer<JsonObject>>;
}

/** The spec of a SubjectAccessReview (authorization.k8s.io/v1) about a cluster-wide resource. */
export interface AccessQuestion {
  readonly user: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  /** What authenticators said besides; passed on unread, since authorizers may look at it. */
  readonly extra: Readonly<Record<string, readonly string[]>>;
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource: string;
}

/**
 * The sign and attest functions of one cluster as their clients see them. A call gives what the far side said, and
 * throws when it said nothing: no connection, no whole answer in time. It asks once; the far side may have issued or
 * decided without our hearing it, and answers a repetition with the same certificate or verdict.
 */
export interface SigningEndpoint {
  sign(object: JsonObject, signal: AbortSignal): Promise<SignAnswer>;
  /** May this request, approved or not, be approved? `context` only narrows: the far side believes none of it. */
  attest(object: JsonObject, context: JsonObject | undefined, signal: AbortSignal): Promise<AttestAnswer>;
}

/** Why no answer of the far side's own came, or not now. None of them is ever final for a request. */
export type NoAnswer =
  /** Why, as the function says; whoever stands before it says nothing, and means that it is asked too often. */
  | { readonly kind: 'busy'; readonly why?: BusyWhy; readonly retryAfterSeconds?: number }
  /** 401, 403, or no credentials to ask with: about the caller. */
  | { readonly kind: 'unauthorized'; readonly message: string }
  /** Anything else, from whoever answered: a proxy, a front door, a newer version. */
  | { readonly kind: 'unexpected'; readonly status: number; readonly message: string };

export type SignAnswer =
  /** Nothing is checked yet but that it is text. */
  | { readonly kind: 'issued'; readonly certificatePem: string }
  /** Ours without doubt: our header, a Status, and every cause with a code of the list. */
  | { readonly kind: 'refused'; readonly violations: Violations }
  | { readonly kind: 'ignored' }
  | { readonly kind: 'invalid' }
  | NoAnswer;

export type AttestAnswer =
  /** Ours without doubt: our header, a decision we know, and a reason that goes with it. */
  | { readonly kind: 'verdict'; readonly verdict: AttestVerdict }
  /** Too large to be read. */
  | { readonly kind: 'refused'; readonly violations: Violations }
  | { readonly kind: 'invalid' }
  | NoAnswer;

/** `annotations` belong on the object, beside whatever is decided. Only names of this project's own. */
export type AttestVerdict =
  | {
      readonly decision: 'approve';
      readonly message: string;
      readonly annotations: Readonly<Record<string, string>>;
    }
  | {
      readonly decision: 'deny' | 'challenge';
      /** Of the first rule broken; the message holds them all. */
      readonly reason: RefusalCode;
      readonly message: string;
      readonly annotations: Readonly<Record<string, string>>;
    }
  | { readonly decision: 'ignore'; readonly reason: IgnoredWhy };
