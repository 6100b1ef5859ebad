import { InvalidArgumentError } from 'commander';
import type { MachineEntry } from '../../core/ports/attestation-store.ts';
import { printable } from '../../core/outcome/printable-text.ts';
import type { CliCommand } from '../runtime/command.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { Io } from '../runtime/io.ts';
import { formatOutput, table } from '../output/output.ts';
import { auditItem, mandatoryReason } from '../runtime/reason.ts';
import { addRegisterOptions, announceChange, withRegister } from '../register/place.ts';
import type { ChangeFlags, RegisterFlags } from '../register/place.ts';
import { instantText, fullText } from '../output/tofu-text.ts';

export function machinesCommands(program: CliCommand, io: Io): void {
  const machines = program
    .command('machines')
    .description('the list of machines that may join, where attestation.aws.machines is "listed"');

  addRegisterOptions(machines.command('list'))
    .description('list the entries')
    .formats('table', 'json', 'yaml')
    .examples('countersign machines list --cluster prod')
    .runs(async ({ output, ...flags }: RegisterFlags & { output: string }) => {
      const entries = await withRegister(flags, io, ({ register }) => register.listMachines());
      io.out(formatOutput(output, entries.map(shown), () => entriesTable(entries)));
    });

  addRegisterOptions(machines.command('allow'))
    .description('put a machine, or a pattern of machines, on the list; an existing entry is replaced')
    .argument('<entry>', 'such as aws#i-0123456789abcdef0', entryName)
    .addOption(mandatoryReason())
    .notes(`An entry is a provider, "#", and the machine's name there; * stands for any run of characters.`)
    .examples(
      "countersign machines allow aws#i-0123456789abcdef0 --cluster prod --reason 'rack 7, ticket 4711'",
      "countersign machines allow 'aws#i-0123*' --cluster prod --reason 'the batch of May'",
    )
    .runs((name: string, flags: ChangeFlags) => allow(name, flags, io));

  addRegisterOptions(machines.command('remove'))
    .description('take an entry off the list; exit code 4: there is no such entry')
    .argument('<entry>', 'such as aws#i-0123456789abcdef0', entryName)
    .addOption(mandatoryReason())
    .notes(
      'A machine that has joined stays on record, but its evidence no longer passes. countersign lock refuses its requests at once.',
    )
    .examples("countersign machines remove aws#i-0123456789abcdef0 --cluster prod --reason 'returned'")
    .runs((name: string, flags: ChangeFlags) => remove(name, flags, io));
}

/** Accepts names of any provider. Refuses an entry that no machine can match. */
function entryName(text: string): string {
  if (/^i-[0-9a-f]*$/.test(text)) throw new InvalidArgumentError(`It begins with its provider: aws#${text}`);
  if (!/^[a-z][a-z0-9-]*#[\x21-\x7e]{1,200}$/.test(text))
    throw new InvalidArgumentError('It looks like aws#i-0123456789abcdef0.');
  if (text.startsWith('aws#') && !text.includes('*') && !/^aws#i-(?:[0-9a-f]{8}|[0-9a-f]{17})$/.test(text))
    throw new InvalidArgumentError('Instance ids are i- and 8 or 17 hexadecimal digits.');
  return text;
}

async function allow(name: string, flags: ChangeFlags, io: Io): Promise<void> {
  await withRegister(flags, io, async (open) => {
    const author = await announceChange(open, flags, io);
    const audit = auditItem({ action: 'allow', subject: name }, author, io);
    const write = await open.register.allowMachine({ name, addedAt: audit.at, ...author }, audit);
    if (write.kind !== 'written')
      throw new CommandFailure(exitCodes.conflict, `another command changed ${name} at the same time`, 'try again');
    io.out(`allowed: ${name} (audit item ${audit.id}, by ${fullText(author.by)})\n`);
  });
}

async function remove(name: string, flags: ChangeFlags, io: Io): Promise<void> {
  await withRegister(flags, io, async (open) => {
    const author = await announceChange(open, flags, io);
    const audit = auditItem({ action: 'remove', subject: name }, author, io);
    const write = await open.register.removeMachine(name, audit);
    if (write.kind !== 'written')
      throw new CommandFailure(exitCodes.notFound, `${name} is not on the list`, 'countersign machines list shows it');
    io.out(`removed: ${name} (audit item ${audit.id}, by ${fullText(author.by)})\n`);
  });
}

function shown({ name, addedAt, by, reason }: MachineEntry): object {
  return { name, addedAt: instantText(addedAt), by, reason };
}

function entriesTable(entries: readonly MachineEntry[]): string {
  return table([
    ['MACHINE', 'SINCE', 'BY', 'REASON'],
    ...entries.map(({ name, addedAt, by, reason }) => [
      printable(name),
      instantText(addedAt),
      fullText(by),
      fullText(reason),
    ]),
  ]);
}
