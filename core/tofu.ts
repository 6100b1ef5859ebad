/**
 * Trust on first use: may this machine, with this key, be this node, given what is on record? The table of
 * docs/attestation.md, row by row. Pure: what it decides on was read before, and the claim that follows holds only if
 * all of it still stands.
 */
import type { IdentityRecord } from './attestation-store.ts';
import type { MachineState } from './attestation/provider.ts';
import { violation } from './outcome.ts';
import type { Violation } from './outcome.ts';
import type { Instant } from './ports.ts';
import { quoted } from './quoted.ts';

/** Older first uses are forgotten by no one: these many keys before the current one are kept for auditors. */
const keptKeys = 4;
/** A platform that has not known a machine for that long after it was last seen will not know it again (§6.4). */
const unknownForMilliseconds = 3_600_000;

export interface FirstUseQuestion {
  readonly identity: string;
  readonly nodeName: string;
  readonly spkiSha256: string;
  /** Asked by `system:node:<nodeName>` itself, so with the key certified before. */
  readonly byNodeItself: boolean;
  readonly secure: boolean;
  readonly allowRestart: boolean;
  readonly now: Instant;
  /** Of this identity. */
  readonly record: IdentityRecord | undefined;
  /** Whoever else has the node name. */
  readonly holder: IdentityRecord | undefined;
}

export type FirstUse =
  | { readonly kind: 'first' }
  /** The same machine, node and key again: a retry. */
  | { readonly kind: 'repeat'; readonly record: IdentityRecord }
  | { readonly kind: 'renewal'; readonly record: IdentityRecord }
  /** Allowed only if the machine was started anew since it was recorded. */
  | { readonly kind: 'restart'; readonly record: IdentityRecord }
  /** Allowed only if the holder's machine is gone. */
  | { readonly kind: 'takeover'; readonly holder: IdentityRecord };

export function decideFirstUse(question: FirstUseQuestion): FirstUse | Violation {
  const { record, holder, nodeName } = question;
  if (record === undefined) {
    if (holder === undefined) return { kind: 'first' };
    if (holder.state === 'active') return { kind: 'takeover', holder };
    // A revoked machine's name stays with it: giving it on is an operator's decision (tofu reset).
    return taken(nodeName, holder);
  }
  switch (record.state) {
    case 'revoked':
      return violation('Revoked', 'this machine was revoked; an operator can reset it (countersign tofu reset)');
    case 'retired':
      return violation('Revoked', 'this machine was retired: its node name passed to another machine');
    case 'active':
      return again(question, record);
  }
}

function again(question: FirstUseQuestion, record: IdentityRecord): FirstUse | Violation {
  const { nodeName, spkiSha256, byNodeItself, secure, allowRestart, holder } = question;
  if (record.nodeName !== nodeName)
    return violation('TofuNodeMismatch', `this machine is registered as node ${quoted(record.nodeName)}`);
  // Both records are written in one transaction, so this is somebody's work on the table, and no reason to sign.
  if (holder !== undefined) return taken(nodeName, holder);
  if (record.spkiSha256 === spkiSha256) return { kind: 'repeat', record };
  if (!secure)
    return violation('TofuReuse', 'this node is registered with another key, and its provider cannot prove a renewal');
  if (byNodeItself) return { kind: 'renewal', record };
  if (allowRestart && record.spkiSha256 !== undefined) return { kind: 'restart', record };
  return violation(
    'TofuReuse',
    'this machine is registered with another key; only the node itself can renew it, or an operator reset it',
  );
}

function taken(nodeName: string, { identity }: IdentityRecord): Violation {
  return violation('TofuNodeTaken', `node name ${quoted(nodeName)} belongs to another machine (${identity})`);
}

/** May the name pass on? An error of the platform is thrown by whoever asks it, and never gets here. */
export function checkHolderGone(holder: IdentityRecord, state: MachineState, now: Instant): Violation | undefined {
  switch (state.kind) {
    case 'gone':
      return undefined;
    case 'unknown':
      // Platforms forget terminated machines after about an hour, and know new ones only after a while.
      return now - holder.lastSeen > unknownForMilliseconds ? undefined : taken(holder.nodeName, holder);
    case 'running':
    case 'stopped':
      return taken(holder.nodeName, holder);
  }
}

/** A machine that was only rebooted has its key still; one that was stopped and started may have a new disk. */
export function checkRestarted(record: IdentityRecord, startedAt: Instant | undefined): Violation | undefined {
  if (startedAt !== undefined && record.startedAt !== undefined && startedAt > record.startedAt) return undefined;
  return violation('TofuReuse', 'this machine is registered with another key and was not started anew since');
}

export interface Use {
  readonly identity: string;
  readonly nodeName: string;
  readonly spkiSha256: string;
  readonly providerId: string;
  readonly startedAt: Instant | undefined;
  readonly uid: string;
  readonly now: Instant;
}

/** The record of a machine that was not known before. */
export function firstRecord({ startedAt, uid, now, ...use }: Use): IdentityRecord {
  return {
    ...use,
    state: 'active',
    previousSpkis: [],
    ...(startedAt === undefined ? {} : { startedAt }),
    addresses: [],
    firstSeen: now,
    lastSeen: now,
    renewals: 0,
    uses: 1,
    lastUid: uid,
    rev: 1,
  };
}

/** The record after one more use; another key takes the place of the one before. */
export function usedRecord(
  record: IdentityRecord,
  { spkiSha256, providerId, startedAt, uid, now }: Use,
): IdentityRecord {
  const used = {
    ...seenRecord(record, uid, now),
    providerId,
    ...(startedAt === undefined ? {} : { startedAt }),
  };
  const before = record.spkiSha256;
  if (before === spkiSha256) return used;
  return {
    ...used,
    spkiSha256,
    previousSpkis: before === undefined ? [] : [before, ...record.previousSpkis].slice(0, keptKeys),
    // An adopted machine's first key is its first, not a renewal.
    renewals: before === undefined ? record.renewals : record.renewals + 1,
  };
}

/** A use that leaves the client key as it is: a serving certificate. */
export function seenRecord(record: IdentityRecord, uid: string, now: Instant): IdentityRecord {
  return {
    ...record,
    lastSeen: Math.max(record.lastSeen, now),
    uses: record.uses + 1,
    lastUid: uid,
    rev: record.rev + 1,
  };
}
