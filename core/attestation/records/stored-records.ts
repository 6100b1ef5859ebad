/**
 * Decodes what the attestation stores keep as plain values (JSON in one, attributes in the other). A record that this program
 * did not write throws: a guess here would decide which machine is which.
 */
import type {
  AuditItem,
  IdentityRecord,
  MachineEntry,
  RestartSeen,
  Verdict,
  RecentUses,
} from '../../ports/attestation-store.ts';
import type { Lock } from '../../ports/locks.ts';
import { isRefusalCode } from '../../outcome/outcome.ts';
import type { Violation, Violations } from '../../outcome/outcome.ts';
import { flag, integer, list, object, oneOf, optional, text, texts, unreadable } from '../../encoding/stored-fields.ts';
import type { Plain } from '../../encoding/stored-fields.ts';

/**
 * Addresses that one machine may hold at most, and so be asked for in one request. A claim may end one record and begin
 * another, each with its addresses, in one transaction, and those of DynamoDB end at 100 items.
 */
export const mostAddresses = 40;

/** The kind under which addresses lie among the once-items: no proof may be of it. */
export const addressKind = 'address';

/** `aws#i-0123…` → `aws`, `i-0123…`: of identities and names of machines only what follows the provider needs escaping. */
export function providerAndName(text: string): readonly string[] {
  const at = text.indexOf('#');
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}

export function identityRecordFrom(plain: Plain): IdentityRecord {
  return {
    identity: text(plain, 'identity'),
    nodeName: text(plain, 'nodeName'),
    state: oneOf(plain, 'state', ['active', 'retired']),
    ...optional('spkiSha256', text, plain),
    previousSpkis: texts(plain, 'previousSpkis'),
    providerId: text(plain, 'providerId'),
    ...optional('startedAt', integer, plain),
    ...optional('unknownSince', integer, plain),
    ...optional('restart', restartSeen, plain),
    addresses: texts(plain, 'addresses'),
    firstSeen: integer(plain, 'firstSeen'),
    lastSeen: integer(plain, 'lastSeen'),
    renewals: integer(plain, 'renewals'),
    uses: integer(plain, 'uses'),
    ...optional('recent', recentUses, plain),
    ...optional('lastUid', text, plain),
    rev: integer(plain, 'rev'),
  };
}

export function verdictFrom(plain: Plain): Verdict {
  const decision = oneOf(plain, 'decision', ['approve', 'deny', 'challenge']);
  if ((decision === 'approve') !== (plain['violations'] === undefined))
    throw new TypeError('a stored verdict has violations exactly when it is no approval');
  return {
    uid: text(plain, 'uid'),
    requestDigest: text(plain, 'requestDigest'),
    signerName: text(plain, 'signerName'),
    decision,
    ...optional('violations', violations, plain),
    annotations: annotations(plain, 'annotations'),
    ...optional('identity', text, plain),
    ...optional('registeredAt', integer, plain),
    ...optional('firstKey', flag, plain),
    ...optional('nodeName', text, plain),
    mode: oneOf(plain, 'mode', ['enforce', 'audit']),
    decidedAt: integer(plain, 'decidedAt'),
    expiresAt: integer(plain, 'expiresAt'),
  };
}

export function auditItemFrom(plain: Plain): AuditItem {
  return {
    id: text(plain, 'id'),
    at: integer(plain, 'at'),
    by: text(plain, 'by'),
    action: oneOf(plain, 'action', ['reset', 'adopt', 'retire', 'allow', 'remove', 'lock', 'unlock']),
    subject: text(plain, 'subject'),
    ...optional('nodeName', text, plain),
    reason: text(plain, 'reason'),
    ...optional('before', (from, name) => identityRecordFrom(object(from[name], name)), plain),
  };
}

export function machineEntryFrom(plain: Plain): MachineEntry {
  return {
    name: text(plain, 'name'),
    addedAt: integer(plain, 'addedAt'),
    by: text(plain, 'by'),
    reason: text(plain, 'reason'),
  };
}

function restartSeen(plain: Plain, name: string): RestartSeen {
  const seen = object(plain[name], name);
  return {
    startedAt: integer(seen, 'startedAt'),
    since: integer(seen, 'since'),
    spkiSha256: text(seen, 'spkiSha256'),
    contested: flag(seen, 'contested'),
  };
}

function recentUses(plain: Plain, name: string): RecentUses {
  const recent = object(plain[name], name);
  return { since: integer(recent, 'since'), uses: integer(recent, 'uses') };
}

export function lockFrom(plain: Plain): Lock {
  return {
    id: text(plain, 'id'),
    ...optional('nodeName', text, plain),
    ...optional('identity', text, plain),
    at: integer(plain, 'at'),
    by: text(plain, 'by'),
    reason: text(plain, 'reason'),
  };
}

function violations(plain: Plain, name: string): Violations {
  const [first, ...more] = list(plain, name).map((each): Violation => {
    const { code, message } = object(each, name);
    if (!isRefusalCode(code) || typeof message !== 'string') throw unreadable(name);
    return { code, message };
  });
  if (first === undefined) throw unreadable(name);
  return [first, ...more];
}

function annotations(plain: Plain, name: string): Readonly<Record<string, string>> {
  const entries = Object.entries(object(plain[name], name));
  return Object.fromEntries(
    entries.map(([key, value]) => {
      if (typeof value !== 'string') throw unreadable(name);
      return [key, value];
    }),
  );
}
