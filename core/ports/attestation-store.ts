/**
 * The records of attestation: the machine of each node name since its first use, the spent evidence, and the verdict about each
 * request. Attest writes them, sign reads them, operators change them with audited commands. `test/contract/` tests each
 * implementation against these comments.
 *
 * Every method is one conditional write (or one transaction) or one consistent read, atomic across processes and durable
 * when it returns. The caller passes the time. A method that throws may have taken effect or not.
 *
 * Both stores name these conditions at the line that implements them:
 *
 *   condition         write             holds if
 *   no-verdict        claim             the UID has no verdict, or an expired one
 *   evidence-unspent  claim             each of `once` has no item, an expired one, or one of the same request bytes
 *   machine-new       create, adopt     the identity has no record
 *   name-free         create, adopt     the node name has no holder; with `retire`, its holder is that machine (name-passes)
 *   record-current    replace, observe  the stored record is active, has `rev - 1`, and the same `firstSeen` and node name
 *   name-own          replace           the holder of the node name is this identity
 *   retired-current   retire            the stored record is active, has the same `rev`, `firstSeen` and node name
 *   address-free      newAddresses      the address has no user; with `retire`, its user may be that machine
 *   record-same       reset             the stored record has the same `rev`, `firstSeen` and node name, in any state
 */
import type { Instant } from './instant.ts';
import type { Lock, LockReader } from './locks.ts';
import type { Violations } from '../outcome/outcome.ts';

/**
 * The machine behind a node name. docs/attestation.md, Trust on first use.
 *
 *   (none) ──claim──► active ──claim of another machine──► retired
 *                       reset, from either: the record moves to the audit items, (none) again
 */
export interface IdentityRecord {
  /** `aws#aws/123456789012/eu-central-1/i-0123456789abcdef0`, `insecure#<node name>`: provider, `#`, its own name. */
  readonly identity: string;
  readonly nodeName: string;
  readonly state: 'active' | 'retired';
  /** Of the client key certified last, hex; absent until an adopted machine has sent its first evidence. */
  readonly spkiSha256?: string;
  /** The keys before it, newest first, at most four. */
  readonly previousSpkis: readonly string[];
  readonly providerId: string;
  /** The machine's last start as of its last use, if its provider reports it: moves on stop and start, never back. */
  readonly startedAt?: Instant;
  /** When its platform first reported the machine as unknown: the first of two looks. Its next use erases it. */
  readonly unknownSince?: Instant;
  /** Another key was requested after a stop and start: the first of two looks. Its next use erases it. */
  readonly restart?: RestartSeen;
  /** Addresses out of operator ranges that this machine used first, canonical text. At most `mostAddresses`. */
  readonly addresses: readonly string[];
  /** Never changes: together with `rev` it distinguishes a record from the next one after a reset. */
  readonly firstSeen: Instant;
  readonly lastSeen: Instant;
  /** How often a new key replaced the one before. */
  readonly renewals: number;
  readonly uses: number;
  /** Absent while an adopted machine has not been used. */
  readonly recent?: RecentUses;
  readonly lastUid?: string;
  /** Counts the writes of this record, from 1: its optimistic lock. */
  readonly rev: number;
}

export interface RestartSeen {
  /** The start of the machine, as its platform reports it. */
  readonly startedAt: Instant;
  /** When that key was requested first. */
  readonly since: Instant;
  readonly spkiSha256: string;
  /** A third key was requested after the same start: neither is accepted. */
  readonly contested: boolean;
}

/** The verdict of attest about one request; stored for 25 h, longer than a pending request lives. */
export interface Verdict {
  readonly uid: string;
  /** request-digest.ts: a verdict is about these very bytes and nothing else. */
  readonly requestDigest: string;
  readonly signerName: string;
  readonly decision: 'approve' | 'deny' | 'challenge';
  /** Present exactly when the decision is not `approve`. */
  readonly violations?: Violations;
  readonly annotations: Readonly<Record<string, string>>;
  /** Of an approval: the identity whose record must still be active when the certificate is made. */
  readonly identity?: string;
  /** Of an approval: `firstSeen` of that record. The verdict does not count for a later record, after a reset. */
  readonly registeredAt?: Instant;
  /** Of an approval: the key asked for is the identity's first, so it may have been certified before (freshKeys). */
  readonly firstKey?: boolean;
  readonly nodeName?: string;
  /** In `audit` mode the verdict refused nothing: it records what would have been refused. */
  readonly mode: 'enforce' | 'audit';
  readonly decidedAt: Instant;
  /** Expired from this instant on, whether or not the item still exists. */
  readonly expiresAt: Instant;
}

/** Evidence that may be used for one request only, such as `{kind: 'sts', id: <X-Amz-Signature>}`; never of kind `address`. */
export interface OnceKey {
  readonly kind: string;
  readonly id: string;
}

/** The items that one decision needs, all in one consistent read. */
export interface Lookup {
  readonly now: Instant;
  readonly identity?: string;
  readonly nodeName: string;
  readonly once: readonly OnceKey[];
  /** Requested range addresses, canonical text. At most `mostAddresses`: the caller refuses more before. */
  readonly addresses: readonly string[];
  /** Names under which the machine must be on the list of machines: `aws#i-0123…`; empty = no list applies. */
  readonly machines: readonly string[];
}

export interface LookupResult {
  /** Of `Lookup.identity`. */
  readonly identity?: IdentityRecord;
  /** The lock of that machine, if an operator locked it. */
  readonly lock?: Lock;
  /** The holder of the node name, if it is another identity. */
  readonly holder?: IdentityRecord;
  /** SHA-256 of the spec.request that spent each evidence, in the order of the question; undefined = unspent or expired. */
  readonly once: readonly (string | undefined)[];
  /** The identity that used each address first, in the order of the question. */
  readonly addresses: readonly (string | undefined)[];
  /** Whether one of `Lookup.machines` is on the list, by itself or by a pattern. */
  readonly listed: boolean;
}

/** Everything one verdict writes, completely or not at all. Throws if its parts contradict each other (claim-check.ts). */
export interface Claim {
  readonly verdict: Verdict;
  /** `requestSha256`: hex of spec.request: the same bytes may spend the evidence again, others may not. */
  readonly once: readonly (OnceKey & { readonly requestSha256: string; readonly expiresAt: Instant })[];
  readonly identity: IdentityWrite;
  /** Range addresses that become this identity's: address-free. Addresses that it has already are not listed. */
  readonly newAddresses: readonly string[];
  /**
   * Another machine's record that ends with a first use (`create`): its name passes to this one, its addresses become
   * free or this one's. Conditions: retired-current, name-free.
   */
  readonly retire?: IdentityRecord;
  readonly audit: readonly AuditItem[];
}

export type IdentityWrite =
  /** Conditions: machine-new, name-free. `record.rev` is 1. */
  | { readonly kind: 'create'; readonly record: IdentityRecord }
  /** Conditions: record-current, name-own. */
  | { readonly kind: 'replace'; readonly record: IdentityRecord }
  /** The request has no attested identity (a refusal, audit mode): only the verdict is written. */
  | { readonly kind: 'none' };

/** `verdict`: the UID has one already. `changed`: another condition does not hold, so the decision must be taken again. */
export type ClaimWrite =
  { readonly kind: 'written' } | { readonly kind: 'verdict'; readonly found: Verdict } | { readonly kind: 'changed' };

export interface AttestationStore extends LockReader {
  /** Without expired ones. */
  findVerdict(uid: string, now: Instant): Promise<Verdict | undefined>;
  findIdentity(identity: string): Promise<IdentityRecord | undefined>;
  /** The record of the holder of a node name, active or not. */
  findNode(nodeName: string): Promise<IdentityRecord | undefined>;
  /** The reads before a request is judged, in one call, without expired verdicts. The two need not be of one moment. */
  recall(uid: string, count: RefusalCount, now: Instant): Promise<{ verdict?: Verdict; refusals: number }>;
  lookup(question: Lookup): Promise<LookupResult>;
  /**
   * Writes an observation about a machine, without a verdict. Condition: record-current. `false`: the record changed since
   * it was read, or this very call was made before and its answer was lost.
   */
  observe(record: IdentityRecord): Promise<boolean>;
  /** Adds one. The count is stored until at least one hour after `count.from`. */
  countRefusal(count: RefusalCount): Promise<void>;
  /** One transaction. Conditions: no-verdict, evidence-unspent, address-free, and those of the identity write. */
  claim(claim: Claim, now: Instant): Promise<ClaimWrite>;
}

// ── For operators ───────────────────────────────────────────────────────────────────────────────────────────────────

/** Append-only. `id` is a ULID: time first, so that items sort as they happened. */
export interface AuditItem {
  readonly id: string;
  readonly at: Instant;
  /** The caller's ARN or user name; `attest` for the changes of a claim. */
  readonly by: string;
  readonly action: 'reset' | 'adopt' | 'retire' | 'allow' | 'remove' | 'lock' | 'unlock';
  /** The identity, the entry of the list of machines, or the node name of a lock that bars only a name. */
  readonly subject: string;
  readonly nodeName?: string;
  readonly reason: string;
  /** The record before the change. */
  readonly before?: IdentityRecord;
}

export interface MachineEntry {
  /** `aws#i-0123456789abcdef0`, or with `*`: any run of characters. */
  readonly name: string;
  readonly addedAt: Instant;
  readonly by: string;
  readonly reason: string;
}

/** `missing`: no such record. `changed`: it changed since it was read: read and decide again. */
export interface ChangeWrite {
  readonly kind: 'written' | 'missing' | 'changed';
}

/** The changes of `countersign tofu`, `machines` and `lock`. Each writes its audit item in the same transaction. */
export interface AttestationAdmin {
  listIdentities(): AsyncIterable<IdentityRecord>;
  listVerdicts(now: Instant): AsyncIterable<Verdict>;
  /** In the order of their ids. */
  listAudit(): AsyncIterable<AuditItem>;
  /** By name. */
  listMachines(): Promise<readonly MachineEntry[]>;
  /** Removes the record, its node name (unless another machine holds it by now) and its addresses. Condition: record-same. */
  reset(record: IdentityRecord, audit: AuditItem): Promise<ChangeWrite>;
  /** Writes a record without a key (rev 1). Conditions: machine-new, name-free, address-free; else `changed`. */
  adopt(record: IdentityRecord, audit: AuditItem): Promise<ChangeWrite>;
  /** Replaces an existing entry. */
  allowMachine(entry: MachineEntry, audit: AuditItem): Promise<ChangeWrite>;
  removeMachine(name: string, audit: AuditItem): Promise<ChangeWrite>;
  /** Oldest first; a lock of a machine and its node name is listed once. */
  listLocks(): Promise<readonly Lock[]>;
  /** Locks the machine, the node name or both, completely or not at all. `changed`: one of them is locked already. */
  lock(lock: Lock, audit: AuditItem): Promise<ChangeWrite>;
  /** Removes the lock with this id from everything that it bars. `missing`: there is no such lock (any more). */
  unlock(lock: Lock, audit: AuditItem): Promise<ChangeWrite>;
}

/** How often a machine was admitted since `since`; starts over after `mostUses.milliseconds`. */
export interface RecentUses {
  readonly since: Instant;
  readonly uses: number;
}

/** The refusals of one requester in one time window, which begins at `from`, a multiple of its length. */
export interface RefusalCount {
  readonly requester: string;
  readonly from: Instant;
}
