/**
 * Trust on first use: do the records let this machine, with this key, be this node? Follows the table in docs/attestation.md.
 * The caller has read the records; the store writes the claim only if they are unchanged.
 */
import type { DeviceState, IdentityRecord, LastDescription } from '../ports/attestation-store.ts';
import { violation } from '../outcome/outcome.ts';
import type { Violation } from '../outcome/outcome.ts';
import type { Instant } from '../ports/instant.ts';
import { refuse } from './declined.ts';
import type { Refused } from './declined.ts';
import { countUse } from './records/request-limits.ts';
import { quoted } from '../outcome/printable-text.ts';

/** Number of previous keys kept per machine, for auditors. */
const keptKeys = 4;

export interface FirstUseQuestion {
  readonly identity: string;
  readonly nodeName: string;
  readonly spkiSha256: string;
  /** The requester is `system:node:<nodeName>`, so it has the previously certified key. */
  readonly byNodeItself: boolean;
  readonly secure: boolean;
  readonly allowRestart: boolean;
  /** The evidence proves the hardware (AttestationProvider.provesHardware). */
  readonly provesHardware?: true;
  readonly now: Instant;
  /** The record of this identity. */
  readonly record: IdentityRecord | undefined;
  /** The record of another machine that has the node name. */
  readonly holder: IdentityRecord | undefined;
}

export type FirstUse =
  | { readonly kind: 'first' }
  /** The same machine, node and key again: a retry. */
  | { readonly kind: 'repeat'; readonly record: IdentityRecord }
  | { readonly kind: 'renewal'; readonly record: IdentityRecord }
  /** Allowed only if the machine was stopped and started since it was recorded. */
  | { readonly kind: 'restart'; readonly record: IdentityRecord }
  /** Allowed only if the holder's machine is gone. */
  | { readonly kind: 'takeover'; readonly holder: IdentityRecord };

/** The refusal of a retired machine, until an operator resets it. */
export const machineRetired = violation(
  'Revoked',
  'this machine was retired: it was reported as terminated, or its node name passed to another machine',
);

export function decideFirstUse(question: FirstUseQuestion): FirstUse | Refused {
  const { record, holder } = question;
  if (record === undefined) {
    if (holder === undefined) return { kind: 'first' };
    // The holder keeps its name until the grace after its retirement is over; the platform is asked about it again.
    if (holder.state === 'active' || holder.nameFreeAt !== undefined) return { kind: 'takeover', holder };
    // A machine that was retired by its successor has no name any more, so the table was edited.
    return refuse(nameTaken(holder));
  }
  switch (record.state) {
    case 'retired':
      return refuse(machineRetired);
    case 'active':
      return decideNextUse(question, record);
  }
}

function decideNextUse(question: FirstUseQuestion, record: IdentityRecord): FirstUse | Refused {
  const { nodeName, spkiSha256, byNodeItself, secure, allowRestart, provesHardware, holder } = question;
  if (record.nodeName !== nodeName)
    return refuse(violation('TofuNodeMismatch', `this machine is registered as node ${quoted(record.nodeName)}`));
  // Record and node name are written in one transaction: if they disagree, the table was edited.
  if (holder !== undefined) return refuse(nameTaken(holder));
  if (record.spkiSha256 === spkiSha256) return { kind: 'repeat', record };
  if (!secure)
    return refuse(
      violation('TofuReuse', 'this node is registered with another key, and its provider cannot prove a renewal'),
    );
  if (byNodeItself || provesHardware === true) return { kind: 'renewal', record };
  if (allowRestart && record.spkiSha256 !== undefined) return { kind: 'restart', record };
  return refuse(
    violation(
      'TofuReuse',
      'this machine is registered with another key; only the node itself can renew it, or an operator reset it',
    ),
  );
}

export function nameTaken({ nodeName, identity }: IdentityRecord): Violation {
  return violation('TofuNodeTaken', `node name ${quoted(nodeName)} belongs to another machine (${identity})`);
}

/** Whether the requested key is the first key of the machine and was never replaced. */
export function isFirstKey(firstUse: FirstUse): boolean {
  switch (firstUse.kind) {
    case 'first':
    case 'takeover':
      return true;
    case 'repeat':
      return firstUse.record.renewals === 0;
    case 'renewal':
    case 'restart':
      return false;
  }
}

export interface Use {
  readonly identity: string;
  readonly nodeName: string;
  readonly spkiSha256: string;
  readonly providerId: string;
  readonly startedAt: Instant | undefined;
  readonly described?: LastDescription | undefined;
  readonly device?: DeviceState;
  readonly uid: string;
  readonly now: Instant;
}

/** A record has no field that is undefined. */
function fieldOf(described: LastDescription | undefined): Pick<IdentityRecord, 'described'> {
  return described === undefined ? {} : { described };
}

/** The first record of a machine. */
export function firstRecord({ startedAt, described, device, uid, now, ...use }: Use): IdentityRecord {
  return {
    ...use,
    state: 'active',
    previousSpkis: [],
    ...(startedAt === undefined ? {} : { startedAt }),
    ...fieldOf(described),
    ...(device === undefined ? {} : { device }),
    addresses: [],
    recent: countUse(undefined, now),
    firstSeen: now,
    lastSeen: now,
    renewals: 0,
    uses: 1,
    lastUid: uid,
    rev: 1,
  };
}

/** The record after one more use; a new key replaces the current one. */
export function usedRecord(record: IdentityRecord, { spkiSha256, providerId, ...use }: Use): IdentityRecord {
  const used = { ...seenRecord(record, use), providerId };
  const before = record.spkiSha256;
  if (before === spkiSha256) return used;
  return {
    ...used,
    spkiSha256,
    previousSpkis: before === undefined ? [] : [before, ...record.previousSpkis].slice(0, keptKeys),
    // The first key of an adopted machine is not a renewal.
    renewals: before === undefined ? record.renewals : record.renewals + 1,
  };
}

/**
 * The record after a use that keeps the client key, such as a serving certificate. A use erases first observations. The description
 * is replaced or removed with each use: an older one must not be found beside what its platform said later.
 */
export function seenRecord(
  record: IdentityRecord,
  { startedAt, described, device, uid, now }: Pick<Use, 'startedAt' | 'described' | 'device' | 'uid' | 'now'>,
): IdentityRecord {
  const { unknownSince: _, restart: __, described: ___, ...kept } = record;
  return {
    ...kept,
    ...(startedAt === undefined ? {} : { startedAt: Math.max(startedAt, record.startedAt ?? startedAt) }),
    ...fieldOf(described),
    ...(device === undefined ? {} : { device }),
    lastSeen: Math.max(record.lastSeen, now),
    uses: record.uses + 1,
    recent: countUse(record.recent, now),
    lastUid: uid,
    rev: record.rev + 1,
  };
}
