/**
 * What the attestation store keeps, read back: both stores hold records as plain values (JSON in one, attributes in the
 * other) and read them through here. A record that is not what this program writes is a fault and throws: a guess here
 * would decide who somebody is.
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

export type Plain = Readonly<Record<string, unknown>>;

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

/** Absent stays absent; present it must be of its type. */
function optional<Name extends string, T>(
  name: Name,
  read: (plain: Plain, name: string) => T,
  plain: Plain,
): { readonly [each in Name]?: T } {
  return (plain[name] === undefined ? {} : { [name]: read(plain, name) }) as { readonly [each in Name]?: T };
}

function oneOf<const T extends string>(plain: Plain, name: string, values: readonly T[]): T {
  const found = values.find((value) => value === plain[name]);
  if (found === undefined) throw unreadable(name);
  return found;
}

function text(plain: Plain, name: string): string {
  const value = plain[name];
  if (typeof value !== 'string') throw unreadable(name);
  return value;
}

function texts(plain: Plain, name: string): readonly string[] {
  const values = list(plain, name);
  if (!values.every((value) => typeof value === 'string')) throw unreadable(name);
  return values;
}

function integer(plain: Plain, name: string): number {
  const value = plain[name];
  if (typeof value !== 'number' || !Number.isSafeInteger(value)) throw unreadable(name);
  return value;
}

function flag(plain: Plain, name: string): boolean {
  const value = plain[name];
  if (typeof value !== 'boolean') throw unreadable(name);
  return value;
}

function list(plain: Plain, name: string): readonly unknown[] {
  const value = plain[name];
  if (!Array.isArray(value)) throw unreadable(name);
  return value as readonly unknown[];
}

function object(value: unknown, name: string): Plain {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw unreadable(name);
  return value as Plain;
}

function unreadable(name: string): TypeError {
  return new TypeError(`the stored ${name} cannot be read`);
}
