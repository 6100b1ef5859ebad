/**
 * Decodes the records of the attestation store; one store holds JSON, the other attributes. It throws for a record that this
 * program does not write: a guess could give one machine the identity of another.
 */
import type {
  AuditItem,
  DeviceState,
  IdentityRecord,
  LastDescription,
  MachineEntry,
  RecentUses,
  RestartSeen,
  Verdict,
} from '../../ports/attestation-store.ts';
import type { Lock } from '../../ports/locks.ts';
import { isObject } from '../../encoding/json-object.ts';
import {
  flag,
  integer,
  listOf,
  object,
  oneOf,
  optional,
  text,
  checkedBy,
  unreadable,
} from '../../encoding/stored-fields.ts';
import type { StoredFields, Reader } from '../../encoding/stored-fields.ts';
import { isRefusalCode } from '../../outcome/outcome.ts';
import type { Violation } from '../../outcome/outcome.ts';

/**
 * The most addresses of one machine, and so of one request. One transaction may retire one record and create another, each with
 * its addresses, and DynamoDB permits 100 items in a transaction.
 */
export const mostAddresses = 40;

/** The kind of the stored items that hold addresses; evidence must not have this kind. */
export const addressKind = 'address';

/** `aws#i-0123…` → `aws`, `i-0123…`. Without `#`: the whole text. */
export function providerAndName(text: string): readonly string[] {
  const at = text.indexOf('#');
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}

const annotations: Reader<Readonly<Record<string, string>>> = (value, name) => {
  if (!isObject(value)) throw unreadable(name);
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, text(each, name)]));
};

const eachViolation = listOf(object<Violation>({ code: checkedBy(isRefusalCode), message: text }));

const violations: Reader<Verdict['violations']> = (value, name) => {
  const [first, ...more] = eachViolation(value, name);
  if (first === undefined) throw unreadable(name);
  return [first, ...more];
};

/** The most addresses and DNS names of a stored description: with them the item of a record stays below 2 KB. */
export const mostDescribed = 16;

const anyDescription = object<LastDescription>({ at: integer, addresses: listOf(text), dnsNames: listOf(text) });

const lastDescription: Reader<LastDescription> = (value, name) => {
  const description = anyDescription(value, name);
  if (description.addresses.length + description.dnsNames.length > mostDescribed) throw unreadable(name);
  return description;
};

export const identityRecordFrom = object<IdentityRecord>({
  identity: text,
  nodeName: text,
  state: oneOf('active', 'retired'),
  spkiSha256: optional(text),
  previousSpkis: listOf(text),
  providerId: text,
  startedAt: optional(integer),
  unknownSince: optional(integer),
  retiredAt: optional(integer),
  nameFreeAt: optional(integer),
  restart: optional(object<RestartSeen>({ startedAt: integer, since: integer, spkiSha256: text, contested: flag })),
  addresses: listOf(text),
  firstSeen: integer,
  lastSeen: integer,
  renewals: integer,
  uses: integer,
  recent: optional(object<RecentUses>({ since: integer, uses: integer })),
  lastUid: optional(text),
  described: optional(lastDescription),
  device: optional(object<DeviceState>({ akName: text, resetCount: integer, clock: integer })),
  rev: integer,
});

const anyVerdict = object<Verdict>({
  uid: text,
  requestDigest: text,
  signerName: text,
  decision: oneOf('approve', 'deny', 'challenge'),
  violations: optional(violations),
  annotations,
  identity: optional(text),
  registeredAt: optional(integer),
  firstKey: optional(flag),
  nodeName: optional(text),
  mode: oneOf('enforce', 'audit'),
  decidedAt: integer,
  expiresAt: integer,
});

export function verdictFrom(fields: StoredFields): Verdict {
  const verdict = anyVerdict(fields);
  if ((verdict.decision === 'approve') !== (verdict.violations === undefined))
    throw new TypeError('a stored verdict has violations exactly when it is not an approval');
  return verdict;
}

export const auditItemFrom = object<AuditItem>({
  id: text,
  at: integer,
  by: text,
  action: oneOf('reset', 'adopt', 'retire', 'allow', 'remove', 'lock', 'unlock', 'revoke'),
  subject: text,
  nodeName: optional(text),
  reason: text,
  certificates: optional(integer),
  before: optional(identityRecordFrom),
});

/** Entries written before they had names have no such field. */
const textsOrNone: Reader<readonly string[]> = (value, name) => (value === undefined ? [] : listOf(text)(value, name));

export const machineEntryFrom = object<MachineEntry>({
  name: text,
  nodeName: optional(text),
  addresses: textsOrNone,
  dnsNames: textsOrNone,
  addedAt: integer,
  by: text,
  reason: text,
});

export const lockFrom = object<Lock>({
  id: text,
  nodeName: optional(text),
  identity: optional(text),
  spkiSha256: optional(text),
  at: integer,
  by: text,
  reason: text,
});
