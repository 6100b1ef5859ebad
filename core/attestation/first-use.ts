/**
 * Trust on first use: may this machine, with this key, be this node, given what is on record? The table of
 * docs/attestation.md, row by row. Pure: what it decides on was read before, and the claim that follows holds only if
 * all of it still stands.
 */
import type { IdentityRecord } from '../ports/attestation-store.ts';
import { violation } from '../outcome/outcome.ts';
import type { Violation } from '../outcome/outcome.ts';
import type { Instant } from '../ports/instant.ts';
import { countUse } from './request-limits.ts';
import { quoted } from '../outcome/printable-text.ts';
import { nameTaken } from './second-look.ts';

/** Older first uses are forgotten by no one: these many keys before the current one are kept for auditors. */
const keptKeys = 4;

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

/** What attest says of a retired machine, until an operator resets it. */
export const machineRetired = violation('Revoked', 'this machine was retired: its node name passed to another machine');

export function decideFirstUse(question: FirstUseQuestion): FirstUse | Violation {
  const { record, holder } = question;
  if (record === undefined) {
    if (holder === undefined) return { kind: 'first' };
    if (holder.state === 'active') return { kind: 'takeover', holder };
    // A machine loses its name in the transaction that retires it. One that has it was edited into the table.
    return nameTaken(holder);
  }
  switch (record.state) {
    case 'retired':
      return machineRetired;
    case 'active':
      return again(question, record);
  }
}

function again(question: FirstUseQuestion, record: IdentityRecord): FirstUse | Violation {
  const { nodeName, spkiSha256, byNodeItself, secure, allowRestart, holder } = question;
  if (record.nodeName !== nodeName)
    return violation('TofuNodeMismatch', `this machine is registered as node ${quoted(record.nodeName)}`);
  // Both records are written in one transaction, so this is somebody's work on the table, and no reason to sign.
  if (holder !== undefined) return nameTaken(holder);
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
    recent: countUse(undefined, now),
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
  const used = { ...seenRecord(record, { startedAt, uid, now }), providerId };
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

/** A use that leaves the client key as it is: a serving certificate. What was seen once and waits is seen no more. */
export function seenRecord(
  record: IdentityRecord,
  { startedAt, uid, now }: Pick<Use, 'startedAt' | 'uid' | 'now'>,
): IdentityRecord {
  const { unknownSince: _, restart: __, ...kept } = record;
  return {
    ...kept,
    ...(startedAt === undefined ? {} : { startedAt: Math.max(startedAt, record.startedAt ?? startedAt) }),
    lastSeen: Math.max(record.lastSeen, now),
    uses: record.uses + 1,
    recent: countUse(record.recent, now),
    lastUid: uid,
    rev: record.rev + 1,
  };
}
