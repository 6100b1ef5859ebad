/**
 * What attestation remembers: which machine a node name belongs to since its first use, which proofs were spent, and
 * what was concluded about each request. The attest function writes it, the sign function reads it, operators change it
 * through audited commands only. `test/contract/` holds each implementation to these comments.
 *
 * Every method is one conditional write (or one transaction) or one consistent read, atomic across processes and durable
 * when it returns. Time is never the store's own. A method that throws may have taken effect or not.
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
  /** Of the client key certified last, hex; absent while an adopted machine has not proved itself yet. */
  readonly spkiSha256?: string;
  /** The keys before it, newest first, at most four. */
  readonly previousSpkis: readonly string[];
  readonly providerId: string;
  /** When the machine was started, as of its last use, where its provider tells: moves on stop and start, never back. */
  readonly startedAt?: Instant;
  /** Its platform was asked then, and did not know the machine: the first of two looks. Gone with its next use. */
  readonly unknownSince?: Instant;
  /** Another key asked since the machine was started anew: the first of two looks. Gone with its next use. */
  readonly restart?: RestartSeen;
  /** Addresses out of operator ranges that this machine used first, canonical text. At most `mostAddresses`. */
  readonly addresses: readonly string[];
  /** Never changes: with `rev` it tells one record of an identity from the next one after a reset. */
  readonly firstSeen: Instant;
  readonly lastSeen: Instant;
  /** How often a new key took the place of the first one. */
  readonly renewals: number;
  readonly uses: number;
  /** Absent while an adopted machine has not been used. */
  readonly recent?: RecentUses;
  readonly lastUid?: string;
  /** Counts the writes of this record, from 1: its optimistic lock. */
  readonly rev: number;
}

export interface RestartSeen {
  /** Which start of the machine, as its platform says. */
  readonly startedAt: Instant;
  /** When that key asked first. */
  readonly since: Instant;
  readonly spkiSha256: string;
  /** A third key asked after the same start: neither is taken. */
  readonly contested: boolean;
}

/** What attest concluded about one request; kept 25 h, longer than a pending request lives. */
export interface Verdict {
  readonly uid: string;
  /** request-digest.ts: a verdict speaks about these very bytes and nothing else. */
  readonly requestDigest: string;
  readonly signerName: string;
  readonly decision: 'approve' | 'deny' | 'challenge';
  /** Present exactly when the decision is not `approve`. */
  readonly violations?: Violations;
  readonly annotations: Readonly<Record<string, string>>;
  /** Of an approval: the identity whose record must still be active when the certificate is made. */
  readonly identity?: string;
  /** Of an approval: `firstSeen` of that record; another one, after a reset, is nothing that this verdict speaks of. */
  readonly registeredAt?: Instant;
  /** Of an approval: the key asked for is the identity's first, so it may have been certified before (freshKeys). */
  readonly firstKey?: boolean;
  readonly nodeName?: string;
  /** Under `audit` nothing was refused for it: it says what would have been. */
  readonly mode: 'enforce' | 'audit';
  readonly decidedAt: Instant;
  /** Over when this instant is reached, whether or not the item is gone. */
  readonly expiresAt: Instant;
}

/** A proof that may be used for one request only, such as `{kind: 'sts', id: <X-Amz-Signature>}`; never of kind `address`. */
export interface OnceKey {
  readonly kind: string;
  readonly id: string;
}

/** Which items a decision about one request looks at, all in one consistent read. */
export interface Lookup {
  readonly now: Instant;
  readonly identity?: string;
  readonly nodeName: string;
  readonly once: readonly OnceKey[];
  /** Range addresses asked for, canonical text. At most `mostAddresses`: the caller refuses more before it looks. */
  readonly addresses: readonly string[];
  /** Names under which the machine must be on the list of machines: `aws#i-0123…`; empty = no list is asked. */
  readonly machines: readonly string[];
}

export interface LookupResult {
  /** Of `Lookup.identity`. */
  readonly identity?: IdentityRecord;
  /** Of `Lookup.identity`, too: whether an operator locked that machine. */
  readonly lock?: Lock;
  /** Whoever holds the node name, when that is another identity. */
  readonly holder?: IdentityRecord;
  /** SHA-256 of the spec.request that spent the proof, in the order asked; undefined = unspent or expired. */
  readonly once: readonly (string | undefined)[];
  /** The identity that used the address first, in the order asked. */
  readonly addresses: readonly (string | undefined)[];
  /** Whether one of `Lookup.machines` is on the list, by itself or by a pattern. */
  readonly listed: boolean;
}

/** Everything one approval writes. All of it or nothing. One whose parts do not fit together (claim-check.ts) throws. */
export interface Claim {
  readonly verdict: Verdict;
  /** `requestSha256` hex of spec.request: the same bytes may spend the proof again, others may not. */
  readonly once: readonly (OnceKey & { readonly requestSha256: string; readonly expiresAt: Instant })[];
  readonly identity: IdentityWrite;
  /** Range addresses that become this identity's, nobody's or `retire`'s until now; those it has already are not listed. */
  readonly newAddresses: readonly string[];
  /**
   * Another machine's record that ends with a first use (`create`): its name passes to this one, its addresses become
   * nobody's or this one's. Holds only for that very `rev`, and if it is active and has the name.
   */
  readonly retire?: IdentityRecord;
  readonly audit: readonly AuditItem[];
}

export type IdentityWrite =
  /** Holds only if neither the identity nor the node name (unless of `retire`) has a record. `record.rev` is 1. */
  | { readonly kind: 'create'; readonly record: IdentityRecord }
  /** Holds only if the record is active and of `record.rev - 1`, and the node name is its own. */
  | { readonly kind: 'replace'; readonly record: IdentityRecord }
  /** No identity stands behind it (a refusal, audit mode, unattested): nothing is written but the verdict. */
  | { readonly kind: 'none' };

/**
 * `verdict`: the UID has one already (which is given); otherwise something this claim depends on changed since the look,
 * and the decision must be taken anew.
 */
export type ClaimWrite =
  | { readonly written: true }
  | { readonly written: false; readonly why: 'verdict'; readonly found: Verdict }
  | { readonly written: false; readonly why: 'changed' };

export interface Recalled {
  /** Nothing for an expired one. */
  readonly verdict?: Verdict;
  readonly refusals: number;
}

export interface AttestationStore extends LockReader {
  /** Nothing for an expired one. */
  findVerdict(uid: string, now: Instant): Promise<Verdict | undefined>;
  findIdentity(identity: string): Promise<IdentityRecord | undefined>;
  /** The record behind a node name, active or not. */
  findNode(nodeName: string): Promise<IdentityRecord | undefined>;
  /** What is read before a request is judged, in one call; the two need not be of one moment. */
  recall(uid: string, count: RefusalCount, now: Instant): Promise<Recalled>;
  lookup(question: Lookup): Promise<LookupResult>;
  /**
   * What was seen of a machine, with no conclusion about any request. Holds only if the record is active and of
   * `record.rev - 1`. `false`: it changed since it was read, or this very call was made before and its answer was lost.
   */
  observe(record: IdentityRecord): Promise<boolean>;
  /** One more. What is counted is kept for an hour after `count.from` at least. */
  countRefusal(count: RefusalCount): Promise<void>;
  /** One transaction. An expired verdict or once-item counts as none. */
  claim(claim: Claim, now: Instant): Promise<ClaimWrite>;
}

// ── For operators ───────────────────────────────────────────────────────────────────────────────────────────────────

/** Append-only. `id` is a ULID: time first, so that items sort as they happened. */
export interface AuditItem {
  readonly id: string;
  readonly at: Instant;
  /** Who did it: the caller's ARN or user name; `attest` for what a claim did by itself. */
  readonly by: string;
  readonly action: 'reset' | 'adopt' | 'retire' | 'allow' | 'remove' | 'lock' | 'unlock';
  /** The identity, the entry of the list of machines, or of a lock on a node name alone that name. */
  readonly subject: string;
  readonly nodeName?: string;
  readonly reason: string;
  /** What stood there before. */
  readonly before?: IdentityRecord;
}

export interface MachineEntry {
  /** `aws#i-0123456789abcdef0`, or with `*`: any run of characters. */
  readonly name: string;
  readonly addedAt: Instant;
  readonly by: string;
  readonly reason: string;
}

/** `missing`: no such record. `changed`: it changed since it was read: look again, then decide again. */
export type ChangeWrite = { readonly written: true } | { readonly written: false; readonly why: 'missing' | 'changed' };

/** What `countersign tofu` and `countersign machines` do. Each change writes its audit item in the same transaction. */
export interface AttestationAdmin {
  listIdentities(): AsyncIterable<IdentityRecord>;
  listVerdicts(now: Instant): AsyncIterable<Verdict>;
  /** In the order of their ids. */
  listAudit(): AsyncIterable<AuditItem>;
  /** By name. */
  listMachines(): Promise<readonly MachineEntry[]>;
  /** Removes the record, its node name (unless that is another's by now) and its addresses, only if it is still of `record.rev`. */
  reset(record: IdentityRecord, audit: AuditItem): Promise<ChangeWrite>;
  /** Writes a record without a key (rev 1), only if neither identity nor node name has one: else `changed`. */
  adopt(record: IdentityRecord, audit: AuditItem): Promise<ChangeWrite>;
  /** An entry that is there already is replaced. */
  allowMachine(entry: MachineEntry, audit: AuditItem): Promise<ChangeWrite>;
  removeMachine(name: string, audit: AuditItem): Promise<ChangeWrite>;
  /** Oldest first, each once, also one that bars a machine and its node name. */
  listLocks(): Promise<readonly Lock[]>;
  /** Bars what it names, all of it or nothing. `changed`: some of it is locked already. */
  lock(lock: Lock, audit: AuditItem): Promise<ChangeWrite>;
  /** Ends that very lock, known by its id, for all that it bars. `missing`: it is not there (any more). */
  unlock(lock: Lock, audit: AuditItem): Promise<ChangeWrite>;
}

/** How often a machine was let in since `since`; begins anew after `mostUses.milliseconds`. */
export interface RecentUses {
  readonly since: Instant;
  readonly uses: number;
}

/** The refusals of one requester in one stretch of time. `from` is where it begins: a multiple of its length. */
export interface RefusalCount {
  readonly requester: string;
  readonly from: Instant;
}
