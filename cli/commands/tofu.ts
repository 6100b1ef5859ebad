import { Option } from 'commander';
import type { AuditItem, IdentityRecord } from '../../core/ports/attestation-store.ts';
import { addAdopt } from './adopt.ts';
import type { CliCommand } from '../runtime/command.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { ExitCode } from '../runtime/exit.ts';
import type { Io, OpenRegister } from '../runtime/io.ts';
import { formatOutput } from '../output/output.ts';
import { auditItem, mandatoryReason, tryTwice } from '../runtime/reason.ts';
import { addRegisterOptions, announceChange, withRegister } from '../register/place.ts';
import type { ChangeFlags, RegisterFlags } from '../register/place.ts';
import { auditTable, fullText, recordsTable, recordText, shownAudit, shownRecord } from '../output/tofu-text.ts';

interface ListFlags extends RegisterFlags {
  readonly state?: string;
  readonly output: string;
}

interface MachineFlags extends RegisterFlags {
  readonly node?: string;
  readonly identity?: string;
  readonly output: string;
}

type ResetFlags = MachineFlags & ChangeFlags;

export function tofuCommands(program: CliCommand, io: Io): void {
  const tofu = program
    .command('tofu')
    .description('trust on first use: which machine each node name belongs to, and what operators changed');

  addRegisterOptions(tofu.command('list'))
    .description('list the machines on record')
    .addOption(new Option('--state <state>', 'only these').choices(['active', 'retired']))
    .formats('table', 'wide', 'json', 'yaml')
    .examples(
      'countersign tofu list --cluster prod',
      'countersign tofu list --cluster prod --state retired -o wide',
      'countersign tofu list --data ./data/demo -o json',
    )
    .runs((flags: ListFlags) => list(flags, io));

  addMachineOptions(tofu.command('show'))
    .description('show one machine, with all changes of it and of its node name; exit code 4: it is not on record')
    .formats('table', 'json', 'yaml')
    .examples(
      'countersign tofu show --cluster prod --node worker-3',
      'countersign tofu show --cluster prod --identity aws#aws/123456789012/eu-central-1/i-0123456789abcdef0 -o yaml',
    )
    .runs((flags: MachineFlags) => show(flags, io));

  addMachineOptions(tofu.command('reset'))
    .description('forget a machine: the next machine with its node name, or this machine again, is a first use')
    .addOption(mandatoryReason())
    .formats('table', 'json', 'yaml')
    .notes(
      'For a machine that was reinstalled, or one that will not come back. The audit item keeps its record.',
      'A reset neither locks a machine nor ends a lock: see countersign lock and unlock.',
    )
    .examples("countersign tofu reset --cluster prod --node worker-3 --reason 'reinstalled, ticket 4711'")
    .runs((flags: ResetFlags) => reset(flags, io));

  addAdopt(tofu, io);
}

function addMachineOptions(command: CliCommand): CliCommand {
  return addRegisterOptions(command)
    .option('--node <name>', 'the machine that has this node name')
    .option('--identity <id>', 'the machine itself, as tofu list shows it');
}

const sortKey = ({ nodeName, identity }: IdentityRecord): string => `${nodeName} ${identity}`;

async function list({ state, output, ...flags }: ListFlags, io: Io): Promise<void> {
  const records = await withRegister(flags, io, ({ register }) => Array.fromAsync(register.listIdentities()));
  const shown = records
    .filter((record) => state === undefined || record.state === state)
    .toSorted((a, b) => (sortKey(a) < sortKey(b) ? -1 : 1));
  io.out(formatOutput(output, shown.map(shownRecord), () => recordsTable(shown, output === 'wide')));
}

async function show(flags: MachineFlags, io: Io): Promise<ExitCode> {
  const wanted = wantedMachine(flags);
  const { record, history } = await withRegister(flags, io, async (open) => {
    const record = await find(wanted, open);
    const items = await Array.fromAsync(open.register.listAudit());
    return { record, history: items.filter((item) => isAbout(item, wanted, record)) };
  });
  if (record === undefined && history.length === 0) throw missing(wanted);
  const about = { record: record && shownRecord(record), history: history.map(shownAudit) };
  const parts = [
    ...(record === undefined ? [] : [recordText(record)]),
    ...(history.length === 0 ? [] : [auditTable(history)]),
  ];
  io.out(formatOutput(flags.output, about, () => parts.join('\n')));
  if (record !== undefined) return exitCodes.ok;
  io.err(`countersign: ${missing(wanted).message} any more\n`);
  return exitCodes.notFound;
}

async function reset(flags: ResetFlags, io: Io): Promise<void> {
  const wanted = wantedMachine(flags);
  const { record, audit } = await withRegister(flags, io, async (open) => {
    const author = await announceChange(open, flags, io);
    return tryTwice(async () => {
      const record = await find(wanted, open);
      if (record === undefined) throw missing(wanted);
      const about = { action: 'reset', subject: record.identity, nodeName: record.nodeName, before: record } as const;
      const audit = auditItem(about, author, io);
      const write = await open.register.reset(record, audit);
      return write.kind === 'written' ? { record, audit } : 'changed';
    }, nameOf(wanted));
  });
  const resetText = () =>
    `reset: node ${fullText(record.nodeName)}, ${fullText(record.identity)} (audit item ${audit.id}, by ${fullText(audit.by)})\n`;
  io.out(formatOutput(flags.output, shownAudit(audit), resetText));
}

type Wanted = { readonly node: string } | { readonly identity: string };

function wantedMachine({ node, identity }: MachineFlags): Wanted {
  if (node !== undefined && identity === undefined) return { node };
  if (identity !== undefined && node === undefined) return { identity };
  throw new CommandFailure(exitCodes.usage, 'which machine? name it by --node or by --identity, not both');
}

function find(wanted: Wanted, { store }: OpenRegister): Promise<IdentityRecord | undefined> {
  return 'node' in wanted ? store.findNode(wanted.node) : store.findIdentity(wanted.identity);
}

/** Whether an audit item concerns the node name or the machine. */
function isAbout({ subject, nodeName }: AuditItem, wanted: Wanted, record: IdentityRecord | undefined): boolean {
  return 'node' in wanted ? nodeName === wanted.node || subject === record?.identity : subject === wanted.identity;
}

function nameOf(wanted: Wanted): string {
  return 'node' in wanted ? `node ${fullText(wanted.node)}` : fullText(wanted.identity);
}

function missing(wanted: Wanted): CommandFailure {
  return new CommandFailure(
    exitCodes.notFound,
    'node' in wanted ? `no machine has the node name ${fullText(wanted.node)}` : `${nameOf(wanted)} is not on record`,
    'countersign tofu list shows all records',
  );
}
