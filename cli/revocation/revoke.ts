/** `countersign cert revoke`: locks, audit item, records, CRL, in this order. Each step is done once, however often the command runs. */
import { counted } from '../../core/outcome/counted.ts';
import { lockOfKey, lockOfMachine, lockOfNode } from '../../core/attestation/records/lock-subjects.ts';
import type { LockSubject } from '../../core/ports/locks.ts';
import type { Revocation, RevocationReason } from '../../core/ports/revocations.ts';
import { lockedText, writeLock } from '../commands/lock.ts';
import { formatOutput } from '../output/output.ts';
import { fullText, instantText } from '../output/tofu-text.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { Io, IssuedCrl, OpenRevocations } from '../runtime/io.ts';
import { placeText, withRevocations } from './place.ts';
import type { PlaceFlags } from './place.ts';
import { namedSubjects, recordRevocations, shownRevocation } from './record.ts';
import type { Recorded } from './record.ts';
import { selectCertificates } from './select.ts';
import type { IssuedEntry, Selector } from './select.ts';

export interface RevokeFlags extends PlaceFlags {
  readonly serial?: string;
  readonly node?: string;
  readonly identity?: string;
  readonly key?: string;
  readonly reason: RevocationReason;
  readonly note: string;
  readonly days: number;
  readonly output: string;
}

const day = 86_400_000;

function selectorOf({ serial, node, identity, key }: RevokeFlags): Selector {
  if (serial !== undefined) return { kind: 'serial', serial };
  if (node !== undefined) return { kind: 'node', nodeName: node };
  if (identity !== undefined) return { kind: 'identity', identity };
  if (key !== undefined) return { kind: 'key', spkiSha256: key };
  throw new CommandFailure(exitCodes.usage, 'which certificates? --serial, --node, --identity or --key');
}

/** As many as one call of the ca function takes. */
const serialsEach = 1_000;

export async function revoke(flags: RevokeFlags, io: Io): Promise<void> {
  const wanted = selectorOf(flags);
  const { reason, note } = flags;
  const done = await withRevocations(flags, io, async (open) => {
    const by = await open.register.by();
    io.err(`countersign: ${[placeText(flags, io), `as ${by}`].map(fullText).join(', ')}\n`);
    const now = io.now();
    const range = { now, until: now + flags.days * day };
    // A node, machine or key is barred before its certificates are searched: one that it gets meanwhile would be missed.
    const named = reason === 'superseded' ? [] : namedSubjects(wanted);
    const bars = await bar(named, { by, reason: note }, open, io);
    const entries = await selectCertificates(wanted, open.reads, range);
    const others = subjectsOfCertificates(entries, reason).filter((each) => !named.includes(each));
    bars.push(...(await bar(others, { by, reason: note }, open, io)));
    const recorded = await recordRevocations(entries, wanted, { reason, note, by, now }, open, io);
    const crls = await issueFor(recorded.revocations, open);
    return { bars, crls, ...recorded };
  });
  const shown = {
    locked: done.bars,
    auditItem: done.audit?.id,
    certificates: done.revocations.map((each) => shownRevocation(each)),
    crls: done.crls.map(({ name, signed, number, entries, nextUpdate }) => ({
      name,
      signed,
      number,
      entries,
      ...(signed ? { nextUpdate: instantText(nextUpdate) } : {}),
    })),
  };
  io.out(formatOutput(flags.output, shown, () => revokedText(done, flags)));
}

/** The nodes and machines of the certificates, and their keys if these are compromised. */
function subjectsOfCertificates(entries: readonly IssuedEntry[], reason: RevocationReason): readonly LockSubject[] {
  if (reason === 'superseded') return [];
  const subjects = entries.flatMap(({ nodeName, identity, publicKeySha256 }): LockSubject[] => [
    ...(identity === undefined ? [] : [lockOfMachine(identity)]),
    ...(nodeName === undefined ? [] : [lockOfNode(nodeName)]),
    ...(reason === 'keyCompromise' ? [lockOfKey(publicKeySha256)] : []),
  ]);
  return [...new Set(subjects)];
}

/** Texts of the locks that this call wrote. */
async function bar(
  subjects: readonly LockSubject[],
  author: { readonly by: string; readonly reason: string },
  { register }: OpenRevocations,
  io: Io,
): Promise<string[]> {
  const written: string[] = [];
  for (const subject of subjects) {
    const lock = await writeLock(subject, author, register, io);
    if (!('already' in lock)) written.push(lockedText(lock));
  }
  return written;
}

/** Throws if a CRL lacks one of them: the revocations are recorded, and the command can be run again. */
export async function issueFor(
  revocations: readonly Revocation[],
  open: OpenRevocations,
): Promise<readonly IssuedCrl[]> {
  const serials = revocations.map(({ serial }) => serial);
  const listed = new Set<string>();
  let crls: readonly IssuedCrl[] = [];
  for (let from = 0; from < serials.length; from += serialsEach) {
    crls = await open.issueCrls(serials.slice(from, from + serialsEach));
    for (const crl of crls) for (const serial of crl.serials) listed.add(serial);
  }
  const missing = serials.filter((serial) => !listed.has(serial));
  if (missing.length > 0)
    throw new CommandFailure(
      exitCodes.temporary,
      `the revocations are recorded, but no CRL has ${missing.length} of them: ${missing.slice(0, 3).join(', ')}`,
      'run the command again; the ca function also issues CRLs on its schedule, unless their CA is not in force',
    );
  return crls;
}

function crlText({ name, signed, number, entries, nextUpdate }: IssuedCrl): string {
  if (signed) return `CRL of ${name}: number ${number}, ${entries} entries, until ${instantText(nextUpdate)}`;
  return `CRL of ${name}: none, since its certificate lacks the key usage cRLSign; the relays' list has ${entries} entries`;
}

interface Done extends Recorded {
  readonly bars: readonly string[];
  readonly crls: readonly IssuedCrl[];
}

function revokedText({ bars, revocations, audit, crls }: Done, { reason }: RevokeFlags): string {
  const isNew = revocations.filter(({ auditId }) => auditId === audit?.id).length;
  const lines = [
    bars.length > 0
      ? `locked: ${bars.join('; ')}`
      : `locked: nothing${reason === 'superseded' ? '' : ' that was not locked already'}`,
    `revoked: ${counted(isNew, 'certificate')} now, ${revocations.length - isNew} before${audit === undefined ? '' : ` (audit item ${audit.id}, by ${fullText(audit.by)})`}`,
    ...revocations.map(({ serial, notAfter }) => `  ${serial}, expires ${instantText(notAfter)}`),
    ...crls.map(crlText),
  ];
  const next =
    revocations.length === 0
      ? ''
      : '\nkube-apiserver reads no CRL. Next: countersign cert revoked --authorization writes what it obeys (docs/ca/revocation.md),\nand cert revoked --check shows that it does. Connections that are open stay open.\n';
  return `${lines.join('\n')}\n${next}`;
}
