/** Locks a node or a machine, so that it gets no certificate, and unlocks it. docs/lock.md */
import { InvalidArgumentError } from 'commander';
import { lockOfKey, lockOfMachine, lockOfNode, subjectsOf } from '../../core/attestation/records/lock-subjects.ts';
import type { Locked } from '../../core/attestation/records/lock-subjects.ts';
import type { Lock, LockSubject } from '../../core/ports/locks.ts';
import type { CliCommand } from '../runtime/command.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { Io, OpenRegister } from '../runtime/io.ts';
import { printable } from '../../core/outcome/printable-text.ts';
import { formatOutput, table } from '../output/output.ts';
import { auditItem, mandatoryReason, tryTwice } from '../runtime/reason.ts';
import type { Author } from '../runtime/reason.ts';
import { addRegisterOptions, announceChange, withRegister } from '../register/place.ts';
import type { ChangeFlags, RegisterFlags } from '../register/place.ts';
import { instantText, fullText, shownAudit } from '../output/tofu-text.ts';

interface LockFlags extends ChangeFlags {
  readonly output: string;
}

export function lockCommands(program: CliCommand, io: Io): void {
  addSubject(program.command('lock'))
    .page('lock.md')
    .description(
      'refuse every certificate to a node or machine, or for a key, from now on; exit code 6: it is already locked',
    )
    .notes(
      'Locks the node name, and the machine that has it if one is on record. For every signer, attest and sign refuse requests of',
      'the node, requests of pods on it, and requests for a certificate with its name. Certificates that it already has stay',
      'valid until they expire: the command prints what to do about them, and docs/lock.md has the details.',
      'A key is named by the SHA-256 of its SubjectPublicKeyInfo, as cert show prints it.',
    )
    .examples(
      "countersign lock worker-3 --cluster prod --reason 'stolen, ticket 4711'",
      "countersign lock aws#aws/123456789012/eu-central-1/i-0123456789abcdef0 --cluster prod --reason 'disk copied'",
      'countersign lock worker-3 --data ./data/demo --reason test -o json',
    )
    .runs((wanted: LockSubject, flags: LockFlags) => lock(wanted, flags, io));

  addSubject(program.command('unlock'))
    .description('end a lock; exit code 4: it is not locked')
    .notes(
      'Ends the whole lock: of the node name and of its machine, if one command locked both. Requests that were refused',
      'meanwhile stay refused; the node creates new ones.',
    )
    .examples("countersign unlock worker-3 --cluster prod --reason 'reinstalled, ticket 4711'")
    .runs((wanted: LockSubject, flags: LockFlags) => unlock(wanted, flags, io));

  addRegisterOptions(program.command('locks'))
    .description('list what is locked')
    .formats('table', 'wide', 'json', 'yaml')
    .examples('countersign locks --cluster prod', 'countersign locks --data ./data/demo -o json')
    .runs(async ({ output, ...flags }: RegisterFlags & { readonly output: string }) => {
      const locks = await withRegister(flags, io, ({ register }) => register.listLocks());
      io.out(formatOutput(output, locks.map(shownLock), () => locksTable(locks, output === 'wide')));
    });
}

function addSubject(command: CliCommand): CliCommand {
  return addRegisterOptions(command)
    .argument(
      '<node|machine|key>',
      'a node name, a machine as tofu list shows it (with a #), or key# and a SHA-256',
      subject,
    )
    .addOption(mandatoryReason())
    .formats('table', 'json', 'yaml');
}

const listHint = 'countersign locks lists all';

/** Refuses a text that matches no request, since its lock would have no effect. */
function subject(text: string): LockSubject {
  if (text.startsWith('key#')) {
    if (/^key#[0-9a-f]{64}$/.test(text)) return lockOfKey(text.slice('key#'.length));
    throw new InvalidArgumentError('A key is key# and 64 hexadecimal digits in lower case, as cert show prints them.');
  }
  if (text.includes('#')) {
    if (/^[a-z][a-z0-9-]*#[\x21-\x7e]{1,500}$/.test(text)) return lockOfMachine(text);
    throw new InvalidArgumentError('A machine looks like aws#aws/123456789012/eu-central-1/i-0123456789abcdef0.');
  }
  if (/^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/.test(text)) return lockOfNode(text);
  throw new InvalidArgumentError('A node name has lower-case letters, digits, "-" and "."; without system:node:.');
}

/** Locks the node name and the machine that has it. `already`: both are locked. */
export function writeLock(
  wanted: LockSubject,
  author: Author,
  open: OpenRegister,
  io: Io,
): Promise<Lock | { readonly already: Lock | undefined }> {
  return tryTwice(async () => {
    const pair = await lookUpPair(wanted, open);
    const found = await Promise.all(subjectsOf(pair).map((each) => open.store.findLock(each)));
    if (found.every((each) => each !== undefined)) return { already: found[0] };
    // If another lock already covers a subject, the new lock leaves it out, since unlock ends one lock at a time.
    const free = new Set(subjectsOf(pair).filter((_, index) => found[index] === undefined));
    const about = {
      ...(pair.nodeName !== undefined && free.has(lockOfNode(pair.nodeName)) ? { nodeName: pair.nodeName } : {}),
      ...(pair.identity !== undefined && free.has(lockOfMachine(pair.identity)) ? { identity: pair.identity } : {}),
      ...(pair.spkiSha256 === undefined ? {} : { spkiSha256: pair.spkiSha256 }),
    };
    const { spkiSha256: _, ...inAudit } = about;
    const audit = auditItem({ ...inAudit, action: 'lock', subject: subjectIn(about) }, author, io);
    const newLock: Lock = { ...about, id: audit.id, at: audit.at, ...author };
    return (await open.register.lock(newLock, audit)).kind === 'written' ? newLock : 'changed';
  }, subjectText(wanted));
}

async function lock(wanted: LockSubject, flags: LockFlags, io: Io): Promise<void> {
  const done = await withRegister(flags, io, async (open) => {
    const author = await announceChange(open, flags, io);
    const locked = await writeLock(wanted, author, open, io);
    if ('already' in locked) throw lockedAlready(wanted, locked.already);
    return locked;
  });
  const text = () =>
    `locked: ${lockedText(done)} (audit item ${done.id}, by ${fullText(done.by)})\n\n${afterLockText(done)}`;
  io.out(formatOutput(flags.output, shownLock(done), text));
  const isKey = done.spkiSha256 !== undefined;
  if (!isKey && (done.nodeName === undefined || done.identity === undefined))
    io.err(`countersign: ${partialLockText(done)}\n`);
}

async function unlock(wanted: LockSubject, flags: LockFlags, io: Io): Promise<void> {
  const { ended, audit, remaining } = await withRegister(flags, io, async (open) => {
    const author = await announceChange(open, flags, io);
    const pair = await lookUpPair(wanted, open);
    const done = await tryTwice(async () => {
      const found = await open.store.findLock(wanted);
      if (found === undefined)
        throw new CommandFailure(exitCodes.notFound, `${subjectText(wanted)} is not locked`, listHint);
      const { nodeName } = found;
      const about = nodeName === undefined ? {} : { nodeName };
      const item = auditItem({ ...about, action: 'unlock', subject: subjectIn(found) }, author, io);
      return (await open.register.unlock(found, item)).kind === 'written' ? { ended: found, audit: item } : 'changed';
    }, subjectText(wanted));
    const others = subjectsOf(pair).filter((each) => !subjectsOf(done.ended).includes(each));
    const locks = await Promise.all(others.map((each) => open.store.findLock(each)));
    return { ...done, remaining: others.filter((_, index) => locks[index] !== undefined) };
  });
  const text = () => `unlocked: ${lockedText(ended)} (audit item ${audit.id}, by ${fullText(audit.by)})\n`;
  io.out(formatOutput(flags.output, shownAudit(audit), text));
  for (const each of remaining) io.err(`countersign: ${subjectText(each)} is still locked, by another lock\n`);
}

/** In the audit item: the machine, the node name, or `key#` and the key. */
function subjectIn({ nodeName, identity, spkiSha256 }: Locked): string {
  return identity ?? nodeName ?? `key#${spkiSha256}`;
}

/** The node name and the machine that has it, as far as a record links them; or the key. */
async function lookUpPair(wanted: LockSubject, { store }: OpenRegister): Promise<Locked> {
  if (wanted.startsWith('key#')) return { spkiSha256: wanted.slice('key#'.length) };
  if (wanted.startsWith('node#')) {
    const nodeName = wanted.slice('node#'.length);
    const record = await store.findNode(nodeName);
    return { nodeName, ...(record === undefined ? {} : { identity: record.identity }) };
  }
  const identity = wanted.slice('id#'.length);
  const record = await store.findIdentity(identity);
  // The name of a retired machine may belong to another machine by now.
  return { identity, ...(record === undefined || record.state === 'retired' ? {} : { nodeName: record.nodeName }) };
}

function lockedAlready(wanted: LockSubject, found: Lock | undefined): CommandFailure {
  const lockedBy = found === undefined ? '' : ` by ${fullText(found.by)}: ${fullText(found.reason)}`;
  return new CommandFailure(exitCodes.conflict, `${subjectText(wanted)} is already locked${lockedBy}`);
}

export function lockedText(lock: Lock): string {
  return subjectsOf(lock).map(subjectText).join(', ');
}

function partialLockText({ nodeName }: Lock): string {
  return nodeName === undefined
    ? 'no node name was locked: the machine is not on record with a node name, or the name is already locked'
    : 'no machine was locked: no machine is on record under this node name, or it is already locked';
}

function subjectText(subject: LockSubject): string {
  if (subject.startsWith('key#')) return `key ${subject.slice('key#'.length)}`;
  return subject.startsWith('node#')
    ? `node ${fullText(subject.slice('node#'.length))}`
    : `machine ${fullText(subject.slice('id#'.length))}`;
}

function shownLock({ id, nodeName, identity, spkiSha256, at, by, reason }: Lock): object {
  return { id, node: nodeName, identity, keySha256: spkiSha256, at: instantText(at), by, reason };
}

function locksTable(locks: readonly Lock[], wide: boolean): string {
  return table([
    ['NODE', 'MACHINE', 'KEY', 'SINCE', 'BY', 'REASON', ...(wide ? ['ID'] : [])],
    ...locks.map(({ id, nodeName, identity, spkiSha256, at, by, reason }) => [
      nodeName === undefined ? '-' : printable(nodeName),
      identity === undefined ? '-' : fullText(identity),
      spkiSha256 ?? '-',
      instantText(at),
      fullText(by),
      fullText(reason),
      ...(wide ? [id] : []),
    ]),
  ]);
}

/** What the operator does about certificates that were issued before, which a lock does not revoke. */
function afterLockText({ nodeName, spkiSha256 }: Lock): string {
  if (spkiSha256 !== undefined)
    return `No new certificate for this key: attest and sign refuse its requests. To revoke its certificates:
  countersign cert revoke --key ${spkiSha256}
`;
  const node = nodeName === undefined ? '<its node name>' : fullText(nodeName);
  return `No new certificate: attest and sign refuse its requests. A signature under way may still end, within 25 seconds.

Certificates that it has stay valid until they expire, since the API server reads no revocation lists. With them it can
read the Secrets and ConfigMaps of the pods bound to it, get tokens for their service accounts, write its own Node and
their status, and serve logs and exec. To end that:
  1. stop the machine, or cut its network to the API servers
  2. kubectl delete node ${node}     (its pods move; a kubelet that still runs registers again)
  3. kubectl get csr | grep ${node}  (do not approve these; delete them)
  4. countersign cert revoke --node ${node}: the API server can refuse its certificates without a restart
  5. replace the Secrets that its pods could read
Each step with its commands: docs/lock.md
`;
}
