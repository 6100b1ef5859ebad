/** Text and JSON of machine records. Names and reasons are untrusted text that must not control a terminal. */
import type { AuditItem, IdentityRecord } from '../../core/ports/attestation-store.ts';
import { printable } from '../../core/outcome/printable-text.ts';
import { table } from './output.ts';

/** The value for JSON and YAML. Instants are RFC 3339 text, and fields have the names of the table's columns. */
export function shownRecord(record: IdentityRecord): object {
  const { nodeName: node, identity, state, firstSeen, lastSeen, startedAt, spkiSha256, previousSpkis } = record;
  const { uses, renewals, providerId, addresses, lastUid, device, rev, retiredAt, nameFreeAt } = record;
  return {
    node,
    identity,
    state,
    since: instantText(firstSeen),
    lastSeen: instantText(lastSeen),
    ...(startedAt === undefined ? {} : { startedAt: instantText(startedAt) }),
    ...(retiredAt === undefined ? {} : { retiredAt: instantText(retiredAt) }),
    ...(nameFreeAt === undefined ? {} : { nameFreeAt: instantText(nameFreeAt) }),
    uses,
    renewals,
    providerId,
    ...(spkiSha256 === undefined ? {} : { keySha256: spkiSha256 }),
    previousKeysSha256: previousSpkis,
    addresses,
    ...(lastUid === undefined ? {} : { lastUid }),
    ...(device === undefined
      ? {}
      : { attestationKey: device.akName, resetCount: device.resetCount, clockMilliseconds: device.clock }),
    rev,
  };
}

export function shownAudit({ at, before, ...item }: AuditItem): object {
  return { ...item, at: instantText(at), ...(before === undefined ? {} : { before: shownRecord(before) }) };
}

export function recordsTable(records: readonly IdentityRecord[], wide: boolean): string {
  const head = ['NODE', 'IDENTITY', 'STATE', 'SINCE', 'LAST SEEN', 'USES', 'RENEWALS'];
  return table([
    wide ? [...head, 'PROVIDER ID', 'KEY', 'ATTESTATION KEY', 'RESETS'] : head,
    ...records.map((record) => {
      const { nodeName, identity, state, firstSeen, lastSeen, uses, renewals, providerId, spkiSha256, device } = record;
      const cells = [
        printable(nodeName),
        fullText(identity),
        state,
        instantText(firstSeen),
        instantText(lastSeen),
        String(uses),
        String(renewals),
      ];
      if (!wide) return cells;
      const ofTpm = [dash(device?.akName ?? ''), dash(String(device?.resetCount ?? ''))];
      return [...cells, dash(printable(providerId)), spkiSha256 ?? 'none yet', ...ofTpm];
    }),
  ]);
}

export function recordText(record: IdentityRecord): string {
  const { nodeName, identity, state, firstSeen, lastSeen, startedAt, uses, renewals, providerId, device } = record;
  return table([
    ['node', printable(nodeName)],
    ['identity', fullText(identity)],
    ['state', state],
    ...(record.retiredAt === undefined ? [] : [['retired', instantText(record.retiredAt)]]),
    ...(record.nameFreeAt === undefined ? [] : [['name free from', instantText(record.nameFreeAt)]]),
    ['since', instantText(firstSeen)],
    ['last seen', instantText(lastSeen)],
    ['started', startedAt === undefined ? '-' : instantText(startedAt)],
    ['uses', `${uses}, of these ${renewals} renewals`],
    ['provider id', dash(printable(providerId))],
    ['key', record.spkiSha256 ?? 'not known yet: the machine was adopted and has not sent evidence'],
    ...record.previousSpkis.map((key) => ['before it', key]),
    ['addresses', dash(record.addresses.map(printable).join(', '))],
    ...(device === undefined
      ? []
      : [
          ['attestation key', fullText(device.akName)],
          ['TPM', `${device.resetCount} resets, ${Math.floor(device.clock / 1_000)} s with power`],
        ]),
    ['last request', dash(printable(record.lastUid ?? ''))],
  ]);
}

export function auditTable(items: readonly AuditItem[]): string {
  return table([
    ['WHEN', 'ACTION', 'SUBJECT', 'NODE', 'BY', 'REASON'],
    ...items.map(({ at, action, subject, nodeName, by, reason }) => [
      instantText(at),
      action,
      fullText(subject),
      dash(printable(nodeName ?? '')),
      fullText(by),
      fullText(reason),
    ]),
  ]);
}

/** RFC 3339 without milliseconds, as in logs. */
export function instantText(instant: number): string {
  return new Date(instant).toISOString().replace(/\.\d+Z$/, 'Z');
}

/** Unlike `printable`, it does not shorten the text, since operators copy it into the next command. */
export function fullText(text: string): string {
  return (text.match(/[^]{1,40}/gu) ?? []).map(printable).join('');
}

export function dash(text: string): string {
  return text === '' ? '-' : text;
}
