/** What `countersign cert revoke` records: an audit item about the command, and one revocation for each certificate. */
import { lockOfKey, lockOfMachine, lockOfNode } from '../../core/attestation/records/lock-subjects.ts';
import type { AuditItem } from '../../core/ports/attestation-store.ts';
import type { LockSubject } from '../../core/ports/locks.ts';
import type { Revocation, RevocationReason } from '../../core/ports/revocations.ts';
import { instantText } from '../output/tofu-text.ts';
import type { Io, OpenRevocations } from '../runtime/io.ts';
import { auditItem } from '../runtime/reason.ts';
import type { IssuedEntry, Selector } from './select.ts';

/** What the command names and a lock can cover. */
export function namedSubjects(wanted: Selector): readonly LockSubject[] {
  switch (wanted.kind) {
    case 'node':
      return [lockOfNode(wanted.nodeName)];
    case 'identity':
      return [lockOfMachine(wanted.identity)];
    case 'key':
      return [lockOfKey(wanted.spkiSha256)];
    case 'serial':
      return [];
  }
}

export interface Decision {
  readonly reason: RevocationReason;
  readonly note: string;
  readonly by: string;
  readonly now: number;
}

export interface Recorded {
  /** Of all certificates, also of those that were revoked before. */
  readonly revocations: readonly Revocation[];
  /** Absent if all were revoked before. */
  readonly audit?: AuditItem;
}

/** The audit item is written first, so that no revocation lacks it. After a crash the item may tell of more certificates than have its id. */
export async function recordRevocations(
  entries: readonly IssuedEntry[],
  wanted: Selector,
  decision: Decision,
  { register: { register }, revocations }: OpenRevocations,
  io: Io,
): Promise<Recorded> {
  const found = await inTurn(entries, ({ caKeyId, serial }) => revocations.find(caKeyId, serial));
  const certificates = found.filter((each) => each === undefined).length;
  if (certificates === 0) return { revocations: found.filter((each) => each !== undefined) };
  const { reason, note, by } = decision;
  const audit = auditItem(
    { ...auditSubject(wanted, entries), certificates, action: 'revoke' },
    { by, reason: `${reason}: ${note}` },
    io,
  );
  await register.addAudit(audit);
  const about = { ...decision, matchedBy: selectorText(wanted), auditId: audit.id };
  return { audit, revocations: await inTurn(entries, (entry) => revocations.add(revocationOf(entry, about))) };
}

async function inTurn<T, R>(all: readonly T[], work: (each: T) => Promise<R>): Promise<readonly R[]> {
  const done: R[] = [];
  for (const each of all) done.push(await work(each));
  return done;
}

function selectorText(wanted: Selector): string {
  return wanted.kind === 'serial' ? `serial#${wanted.serial}` : (namedSubjects(wanted)[0] ?? '');
}

/** As the audit items of locks name nodes and machines, so that `tofu show` and `trace` find it. */
function auditSubject(wanted: Selector, [first]: readonly IssuedEntry[]): Pick<AuditItem, 'subject' | 'nodeName'> {
  switch (wanted.kind) {
    case 'node':
      return { subject: wanted.nodeName, nodeName: wanted.nodeName };
    case 'identity':
      return { subject: wanted.identity };
    case 'serial':
      return { subject: selectorText(wanted), ...(first?.nodeName === undefined ? {} : { nodeName: first.nodeName }) };
    case 'key':
      return { subject: selectorText(wanted) };
  }
}

function revocationOf(
  entry: IssuedEntry,
  { reason, note, by, now, matchedBy, auditId }: Decision & Pick<Revocation, 'matchedBy' | 'auditId'>,
): Revocation {
  const { caKeyId, serial, fingerprintSha256: fingerprint, notAfter, uid, identity, nodeName } = entry;
  return {
    caKeyId,
    serial,
    fingerprint,
    notAfter,
    reason,
    at: now,
    by,
    note,
    matchedBy,
    auditId,
    uid,
    ...(identity === undefined ? {} : { identity }),
    ...(nodeName === undefined ? {} : { nodeName }),
  };
}

export function shownRevocation({ at, notAfter, nodeName, ...others }: Revocation): object {
  return { ...others, node: nodeName, at: instantText(at), notAfter: instantText(notAfter) };
}
