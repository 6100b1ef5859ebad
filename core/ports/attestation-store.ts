/**
 * The records of attestation: the machine of each node name since its first use, the spent evidence, and the verdict about each
 * request. Attest writes them, sign reads them, operators change them with audited commands. `test/contract/` tests each
 * implementation against these comments.
 *
 * Every method is one conditional write, one transaction or one consistent read: atomic across processes, and durable
 * when it returns. The caller passes the time. A write that throws may have taken effect or not.
 *
 * Conditions of the writes. Both stores name each of them at the line that implements it:
 *
 *   condition         write             holds if
 *   no-verdict        claim             the UID has no verdict, or an expired one
 *   evidence-unspent  claim             each key of `once` is unspent, expired, or spent by the same request bytes
 *   machine-new       create, adopt     the identity has no record
 *   name-free         create, adopt     the node name has no holder, or one whose name is free by now (`nameFreeAt`), or its
 *                                       holder is the machine in `retire`, active or retired as the caller read it
 *   record-current    replace, observe  the stored record is active, has `rev - 1`, and the same `firstSeen` and node name
 *   name-own          replace, retire   the holder of the node name is this identity
 *   retired-current   retire            the stored record is active, has the same `rev`, `firstSeen` and node name
 *   entry-listed      claim             `entry` is on the list of machines, if the decision depends on it
 *   address-free      newAddresses      the address has no user, or its user is the machine in `retire`
 *   record-same       reset             the stored record, active or retired, has the same `rev`, `firstSeen` and node name
 */
import type { Instant } from './instant.ts';
import type { Lock, LockReader } from './locks.ts';
import type { Violations } from '../outcome/outcome.ts';

/**
 * The machine behind a node name. docs/attestation.md, Trust on first use.
 *
 *   (none) ──claim──► active ──another machine claims its node name──► retired
 *                     active ──its platform reports it as terminated, at two looks──► retired; the name is free after a grace
 *   active or retired ──reset──► (none): the record moves to the audit items
 */
export interface IdentityRecord {
  /** `aws#aws/123456789012/eu-central-1/i-0123456789abcdef0`, `insecure#<node name>`: provider, `#`, name within it. */
  readonly identity: string;
  readonly nodeName: string;
  readonly state: 'active' | 'retired';
  /** SHA-256 (hex) of the client key certified last; absent until an adopted machine sends its first evidence. */
  readonly spkiSha256?: string;
  /** SHA-256 of the previous client keys, newest first, at most four. */
  readonly previousSpkis: readonly string[];
  readonly providerId: string;
  /** When the machine was last started, as its provider reported at its last use. Never decreases. */
  readonly startedAt?: Instant;
  /**
   * When the platform first reported the machine as terminated or unknown (the first of two looks). The machine's next use erases
   * it, and a look that finds the machine.
   */
  readonly unknownSince?: Instant;
  /** Only of a retired machine; absent if it was retired before this field existed. */
  readonly retiredAt?: Instant;
  /** Only of a machine that was retired without a successor: from this instant on its node name has no holder. */
  readonly nameFreeAt?: Instant;
  /** A request for another key after a stop and start (the first of two looks). The machine's next use erases it. */
  readonly restart?: RestartSeen;
  /** Addresses in the operator's ranges that this machine used first, canonical text. At most `mostAddresses`. */
  readonly addresses: readonly string[];
  /** Never changes. With `rev` it distinguishes this record from a new one after a reset. */
  readonly firstSeen: Instant;
  readonly lastSeen: Instant;
  /** How often a new key replaced the previous one. */
  readonly renewals: number;
  readonly uses: number;
  /** Absent while an adopted machine has not been used. */
  readonly recent?: RecentUses;
  readonly lastUid?: string;
  /** How the platform described the machine last; absent if no request may be decided by it (last-description.ts). */
  readonly described?: LastDescription;
  /** Only of a machine that a TPM vouches for: what its TPM reported at its last use. */
  readonly device?: DeviceState;
  /** Counts the writes of this record, from 1: its optimistic lock. */
  readonly rev: number;
}

/** What a platform said about a running machine that its policy admits. Name and provider ID are those of the record. */
export interface LastDescription {
  /** When attest asked. */
  readonly at: Instant;
  /** Canonical text. With `dnsNames` at most `mostDescribed` (stored-records.ts). */
  readonly addresses: readonly string[];
  /** Lower case. */
  readonly dnsNames: readonly string[];
}

/** The attestation key of a TPM, and the two counters of its clock (TPM 2.0 Part 2, TPMS_CLOCK_INFO). Neither ever decreases. */
export interface DeviceState {
  /** Name of the attestation key (TPM 2.0 Part 1, Names), lower-case hex: it identifies the key and its attributes. */
  readonly akName: string;
  /** How often the TPM was reset or restarted since it was last cleared: 32 bits. */
  readonly resetCount: number;
  /** Milliseconds in which the TPM had power since it was last cleared. */
  readonly clock: number;
}

export interface RestartSeen {
  /** The start of the machine, as its platform reports it. */
  readonly startedAt: Instant;
  /** When the other key was first requested. */
  readonly since: Instant;
  readonly spkiSha256: string;
  /** A third key was requested after the same start, so neither key is accepted. */
  readonly contested: boolean;
}

/** The verdict of attest about one request; stored for 25 h, longer than a pending request lives. */
export interface Verdict {
  readonly uid: string;
  /** Of the request that was judged (request-digest.ts); the verdict applies to no other request. */
  readonly requestDigest: string;
  readonly signerName: string;
  readonly decision: 'approve' | 'deny' | 'challenge';
  /** Present exactly when the decision is not `approve`. */
  readonly violations?: Violations;
  readonly annotations: Readonly<Record<string, string>>;
  /** Only with `approve`: the identity whose record must still be active when the certificate is signed. */
  readonly identity?: string;
  /** Only with `approve`: `firstSeen` of that record. After a reset the verdict does not apply to the new record. */
  readonly registeredAt?: Instant;
  /** Only with `approve`: the requested key is the identity's first key, so it may have been certified before (freshKeys). */
  readonly firstKey?: boolean;
  readonly nodeName?: string;
  /** In `audit` mode a `deny` or `challenge` is only recorded: the request is approved. */
  readonly mode: 'enforce' | 'audit';
  readonly decidedAt: Instant;
  /** Expired from this instant on, whether or not the item still exists. */
  readonly expiresAt: Instant;
}

/** Identifies evidence that only one request may use, such as `{kind: 'sts', id: <X-Amz-Signature>}`. `address` is not a kind. */
export interface SingleUseKey {
  readonly kind: string;
  readonly id: string;
}

/** The items that one decision needs, all in one consistent read. */
export interface Lookup {
  readonly now: Instant;
  readonly identity?: string;
  readonly nodeName: string;
  readonly once: readonly SingleUseKey[];
  /** Requested addresses in the operator's ranges, canonical text. At most `mostAddresses`; the caller checks it. */
  readonly addresses: readonly string[];
  /** Names of the machine, such as `aws#i-0123…`: one of them must be on the list of machines. Empty: no list applies. */
  readonly machines: readonly string[];
}

export interface LookupResult {
  /** The record of `Lookup.identity`. */
  readonly identity?: IdentityRecord;
  /** The lock of that machine, if an operator locked it. */
  readonly lock?: Lock;
  /** The holder of the node name, if it is another identity; absent from `nameFreeAt` on. */
  readonly holder?: IdentityRecord;
  /** For each key of `Lookup.once`, SHA-256 of the spec.request that spent it; undefined: unspent or expired. */
  readonly once: readonly (string | undefined)[];
  /** For each address of `Lookup.addresses`, the identity that used it first. */
  readonly addresses: readonly (string | undefined)[];
  /** Whether one of `Lookup.machines` is on the list or matches a pattern of it. */
  readonly listed: boolean;
  /** The one of `Lookup.machines` with an entry of its own; absent if at most patterns match. */
  readonly entry?: string;
}

/** A verdict and all changes that it causes. `claim` throws if its parts contradict each other (claim-check.ts). */
export interface Claim {
  readonly verdict: Verdict;
  /** `requestSha256` of spec.request, hex: only the same request bytes may spend the evidence again. */
  readonly once: readonly (SingleUseKey & { readonly requestSha256: string; readonly expiresAt: Instant })[];
  readonly identity: IdentityWrite;
  /** Addresses that this identity uses for the first time. Condition: address-free. */
  readonly newAddresses: readonly string[];
  /**
   * The machine that loses its node name to this one, only with `create`: the holder as it was read. An active one is retired, and its
   * addresses become free or pass to this one (condition retired-current). A retired one, whose name is not free yet, stays as it
   * is. Condition: name-free.
   */
  readonly retire?: IdentityRecord;
  /**
   * The entry of the list of machines on which the decision depends: an exact name. Condition: entry-listed. A decision by a pattern
   * has no such condition: all patterns are one item, on which the claims of a fleet would conflict with each other.
   */
  readonly entry?: string | undefined;
  readonly audit: readonly AuditItem[];
}

export type IdentityWrite =
  /** Conditions: machine-new, name-free. `record.rev` is 1. */
  | { readonly kind: 'create'; readonly record: IdentityRecord }
  /** Conditions: record-current, name-own. */
  | { readonly kind: 'replace'; readonly record: IdentityRecord }
  /** After a refusal: only the verdict is written. */
  | { readonly kind: 'none' };

/** `verdict`: the UID already has a verdict. `changed`: another condition does not hold, so attest must decide again. */
export type ClaimResult =
  { readonly kind: 'written' } | { readonly kind: 'verdict'; readonly found: Verdict } | { readonly kind: 'changed' };

export interface Retirement {
  readonly nameFreeAt: Instant;
  readonly audit: AuditItem;
}

export interface AttestationStore extends LockReader {
  /** Expired verdicts are not returned. */
  findVerdict(uid: string, now: Instant): Promise<Verdict | undefined>;
  findIdentity(identity: string): Promise<IdentityRecord | undefined>;
  /**
   * The record of the machine that has the node name or, if it is retired, had it last: the caller compares `nameFreeAt` with the
   * time. Perhaps undefined from `nameFreeAt` on.
   */
  findNode(nodeName: string): Promise<IdentityRecord | undefined>;
  /** The verdict (unless expired) and the count of refusals in one call; they may be from different moments. */
  recall(uid: string, window: RefusalWindow, now: Instant): Promise<{ verdict?: Verdict; refusals: number }>;
  lookup(question: Lookup): Promise<LookupResult>;
  /**
   * The entry with exactly this name; undefined if the list has no such entry. An entry that is a pattern is not found: not by its
   * text, and not by a name that matches it.
   */
  findMachine(name: string): Promise<MachineEntry | undefined>;
  /**
   * Writes an observation about a machine, without a verdict. Condition: record-current. `false`: the record has changed
   * since it was read, perhaps by an earlier call with the same record whose answer was lost.
   */
  observe(record: IdentityRecord): Promise<boolean>;
  /**
   * Ends the record of a machine that no longer exists, at the time of `audit`: its addresses are free, and its node name from
   * `nameFreeAt` on. `record` is the active record as it was read. One transaction. Conditions: retired-current, name-own.
   */
  retire(record: IdentityRecord, retirement: Retirement): Promise<ChangeResult>;
  /** Adds one refusal. The count is stored until at least one hour after `window.from`. */
  countRefusal(window: RefusalWindow): Promise<void>;
  /** One transaction. Conditions: no-verdict, evidence-unspent, entry-listed, address-free, and those of the identity write. */
  claim(claim: Claim, now: Instant): Promise<ClaimResult>;
}

// ── For operators ───────────────────────────────────────────────────────────────────────────────────────────────────

/** Append-only. `id` is a ULID, which begins with the time, so items sort by time. */
export interface AuditItem {
  readonly id: string;
  readonly at: Instant;
  /** The caller's ARN or user name; `attest` for the changes of a claim. */
  readonly by: string;
  readonly action: 'reset' | 'adopt' | 'retire' | 'allow' | 'remove' | 'lock' | 'unlock' | 'revoke';
  /** The identity, the entry of the list of machines, the node name, `key#` and a key, or `serial#` and a serial number. */
  readonly subject: string;
  readonly nodeName?: string;
  readonly reason: string;
  /** Only of a revocation: how many certificates it matched that were not revoked before. */
  readonly certificates?: number;
  /** The record before the change. */
  readonly before?: IdentityRecord;
}

/**
 * A machine that may join, or a pattern of machines. For a machine without a cloud the entry is also the source of its names: no
 * other party knows them.
 */
export interface MachineEntry {
  /** `aws#i-0123456789abcdef0`, `tpm#<SHA-256 of the endorsement key's SPKI, hex>`; `*` matches any characters. */
  readonly name: string;
  /** The only node name that the machine may have; absent: the configuration decides. */
  readonly nodeName?: string;
  /** Addresses that its serving certificates may hold; canonical text as in SubjectAltNames.ip. */
  readonly addresses: readonly string[];
  /** DNS names that its serving certificates may hold, besides the node name; lower case. */
  readonly dnsNames: readonly string[];
  readonly addedAt: Instant;
  readonly by: string;
  readonly reason: string;
}

/** `missing`: the record does not exist. `changed`: it has changed since the caller read it; read and decide again. */
export interface ChangeResult {
  readonly kind: 'written' | 'missing' | 'changed';
}

/** The changes of `countersign tofu`, `machines` and `lock`. Each change writes its audit item in the same transaction. */
export interface AttestationAdmin {
  listIdentities(): AsyncIterable<IdentityRecord>;
  listVerdicts(now: Instant): AsyncIterable<Verdict>;
  /** Sorted by id. */
  listAudit(): AsyncIterable<AuditItem>;
  /** Sorted by name. */
  listMachines(): Promise<readonly MachineEntry[]>;
  /** Removes the record, its addresses, and its node name if no other machine holds it. Condition: record-same. */
  reset(record: IdentityRecord, audit: AuditItem): Promise<ChangeResult>;
  /** Writes a record without a key (rev 1), at the time of `audit`. Conditions: machine-new, name-free, address-free; else `changed`. */
  adopt(record: IdentityRecord, audit: AuditItem): Promise<ChangeResult>;
  /** Adds the entry, or replaces an existing one. */
  allowMachine(entry: MachineEntry, audit: AuditItem): Promise<ChangeResult>;
  removeMachine(name: string, audit: AuditItem): Promise<ChangeResult>;
  /** Oldest first; a lock of a machine and its node name is listed once. */
  listLocks(): Promise<readonly Lock[]>;
  /** Locks the machine, the node name or both, completely or not at all. `changed`: one of them is locked already. */
  lock(lock: Lock, audit: AuditItem): Promise<ChangeResult>;
  /** Removes the lock with this id from its machine and node name. `missing`: the lock does not exist. */
  unlock(lock: Lock, audit: AuditItem): Promise<ChangeResult>;
  /** Writes the item alone, about revocations, which are in another store. They are written behind it and have its id. */
  addAudit(audit: AuditItem): Promise<void>;
}

/** How often a machine was admitted since `since`. After `mostUses.milliseconds` a new count begins. */
export interface RecentUses {
  readonly since: Instant;
  readonly uses: number;
}

/** The time window in which refusals of one requester are counted. `from` is its start, a multiple of its length. */
export interface RefusalWindow {
  readonly requester: string;
  readonly from: Instant;
}
