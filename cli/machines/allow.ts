/** `countersign machines allow`: writes entries of the list of machines, each in one transaction with its audit item. */
import { isDeepStrictEqual } from 'node:util';
import type { MachineEntry } from '../../core/ports/attestation-store.ts';
import { readText } from '../cluster/cluster-choice.ts';
import { fullText } from '../output/tofu-text.ts';
import { announceChange, withRegister } from '../register/place.ts';
import type { ChangeFlags } from '../register/place.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { Io, OpenRegister } from '../runtime/io.ts';
import { auditItem } from '../runtime/reason.ts';
import type { Author } from '../runtime/reason.ts';
import { readEntry } from './entry.ts';
import type { ListedMachine } from './entry.ts';
import { readListFile } from './list-file.ts';
import type { ListedLine } from './list-file.ts';

export interface AllowFlags extends ChangeFlags {
  readonly from?: string;
  readonly node?: string;
  readonly address?: readonly string[];
  readonly dns?: readonly string[];
}

/** So many lines are written between two lines of progress. */
const progressLines = 100;

export async function allow(name: string | undefined, flags: AllowFlags, io: Io): Promise<void> {
  const { from, node, address: addresses = [], dns = [] } = flags;
  if ((name === undefined) === (from === undefined))
    throw new CommandFailure(
      exitCodes.usage,
      'which machine? name it as the argument, or a file with --from, not both',
    );
  if (from !== undefined) {
    if (node !== undefined || addresses.length > 0 || dns.length > 0)
      throw new CommandFailure(exitCodes.usage, 'with --from each line of the file has the names of its machine');
    await allowFile(from, flags, io);
    return;
  }
  const entry = readEntry({ name: name ?? '', node, addresses, dns });
  if (!entry.ok) throw new CommandFailure(exitCodes.usage, entry.problem);
  await withRegister(flags, io, async (open) => {
    const author = await announceChange(open, flags, io);
    const id = await write(entry.value, open, author, io);
    io.out(`allowed: ${entry.value.name} (audit item ${id}, by ${fullText(author.by)})\n`);
  });
}

/** Nothing is written unless every line is correct. Entries that stand as their line says are left alone. */
async function allowFile(file: string, flags: AllowFlags, io: Io): Promise<void> {
  const lines = readListFile(await readText(file, io));
  if (!lines.ok)
    throw new CommandFailure(exitCodes.configuration, lines.problem.map((each) => `${file}:${each}`).join('\n'));
  await withRegister(flags, io, async (open) => {
    const author = await announceChange(open, flags, io);
    const count = lines.value.length;
    let written = 0;
    for (const [index, line] of lines.value.entries()) {
      if (index > 0 && index % progressLines === 0) io.err(`countersign: ${index} of ${count} machines\n`);
      written += await allowLine(line, open, author, io).catch((error: unknown) => {
        io.err(`countersign: ${file}:${line.line}: it ended here, after ${index} of ${count} machines; run it again\n`);
        throw error;
      });
    }
    const unchanged = count - written;
    io.out(`allowed: ${written} of ${count} machines, ${unchanged} unchanged (by ${fullText(author.by)})\n`);
  });
}

async function allowLine({ machine }: ListedLine, open: OpenRegister, author: Author, io: Io): Promise<0 | 1> {
  const found = await open.store.findMachine(machine.name);
  if (found !== undefined && isSame(found, machine)) return 0;
  await write(machine, open, author, io);
  return 1;
}

function isSame(found: MachineEntry, machine: ListedMachine): boolean {
  return found.nodeName === machine.nodeName && isDeepStrictEqual({ ...found, ...machine }, found);
}

/** The id of the audit item. */
async function write(machine: ListedMachine, open: OpenRegister, author: Author, io: Io): Promise<string> {
  const { name, nodeName } = machine;
  const audit = auditItem(
    { action: 'allow', subject: name, ...(nodeName === undefined ? {} : { nodeName }) },
    author,
    io,
  );
  const { kind } = await open.register.allowMachine({ ...machine, addedAt: audit.at, ...author }, audit);
  if (kind === 'written') return audit.id;
  throw new CommandFailure(exitCodes.conflict, `another command changed ${name} at the same time`, 'try again');
}
