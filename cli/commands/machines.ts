import { InvalidArgumentError } from 'commander';
import { allow } from '../machines/allow.ts';
import type { AllowFlags } from '../machines/allow.ts';
import { endorsementKeyName } from '../machines/endorsement-key.ts';
import { nameProblem } from '../machines/entry.ts';
import { recordedPolicy } from '../machines/pcrs.ts';
import type { CliCommand } from '../runtime/command.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { ExitCode } from '../runtime/exit.ts';
import type { Io } from '../runtime/io.ts';
import { formatOutput } from '../output/output.ts';
import { entriesTable, entryText, shownEntry } from '../output/machine-text.ts';
import { auditItem, mandatoryReason } from '../runtime/reason.ts';
import { addRegisterOptions, announceChange, withRegister } from '../register/place.ts';
import type { ChangeFlags, RegisterFlags } from '../register/place.ts';
import { auditTable, fullText, shownAudit } from '../output/tofu-text.ts';

interface ShowFlags extends RegisterFlags {
  readonly output: string;
}

/** The command group, to which cli/prune adds `prune`. */
export function machinesCommands(program: CliCommand, io: Io): CliCommand {
  const machines = program
    .command('machines')
    .description('the list of machines that may join, where the configuration of their provider has machines: listed');

  addRegisterOptions(machines.command('list'))
    .description('list the machines that may join, if the cluster admits only listed ones')
    .formats('table', 'wide', 'json', 'yaml')
    .examples('countersign machines list --cluster prod', 'countersign machines list --cluster prod -o wide')
    .runs(async ({ output, ...flags }: ShowFlags) => {
      const entries = await withRegister(flags, io, ({ register }) => register.listMachines());
      io.out(formatOutput(output, entries.map(shownEntry), () => entriesTable(entries, output === 'wide')));
    });

  addRegisterOptions(machines.command('show'))
    .description('show one entry, with all changes of it; exit code 4: it is not on the list')
    .argument('<entry>', 'such as aws#i-0123456789abcdef0', entryName)
    .formats('table', 'json', 'yaml')
    .examples('countersign machines show aws#i-0123456789abcdef0 --cluster prod')
    .runs((name: string, flags: ShowFlags) => show(name, flags, io));

  addAllow(machines, io);

  addRegisterOptions(machines.command('remove'))
    .description('take an entry off the list; exit code 4: there is no such entry')
    .argument('<entry>', 'such as aws#i-0123456789abcdef0', entryName)
    .addOption(mandatoryReason())
    .notes(
      'A machine that has joined stays on record, but its evidence no longer passes. countersign lock refuses its requests at once.',
    )
    .examples("countersign machines remove aws#i-0123456789abcdef0 --cluster prod --reason 'returned'")
    .runs((name: string, flags: ChangeFlags) => remove(name, flags, io));

  machines
    .command('ek')
    .description(
      "print the name of a machine by its TPM's endorsement key (EK): tpm# and the SHA-256 of the key's SPKI",
    )
    .argument(
      '<file>',
      'the EK: its certificate, its public key (SPKI), or a public area of tpm2-tools; - reads standard input',
    )
    .formats('name', 'json', 'yaml')
    .notes(
      'Certificate and public key may be PEM or DER, the public area TPMT_PUBLIC or TPM2B_PUBLIC (tpm2_createek -u, tpm2_readpublic -o).',
      'The command does not judge who made the key or the certificate. The person who gave you the file decided which TPM you list.',
    )
    .examples(
      'countersign machines ek ek.pub',
      'ssh root@worker-3 "tpm2_nvread 0x1c00002" | countersign machines ek -',
      'countersign machines allow "$(countersign machines ek ek.pub)" --node worker-3 --cluster prod --reason \'rack 7\'',
    )
    .runs(async (file: string, { output }: { output: string }) => {
      const key = await endorsementKeyName(file, io);
      io.out(formatOutput(output, key, () => `${key.name}\n`));
    });

  addPcrs(machines, io);
  return machines;
}

function addPcrs(machines: CliCommand, io: Io): void {
  machines
    .command('pcrs')
    .description('print the PCR policy that the last boot of a machine satisfies, from its event log')
    .argument(
      '<file>',
      'the log: /sys/kernel/security/tpm0/binary_bios_measurements of the machine; - reads standard input',
    )
    .listOption('--pcrs <list>', 'indexes of PCRs', '0,2,4,7')
    .formats('yaml', 'json')
    .notes(
      'The output is the value of profiles.<signer>.attestation.pcrs. By default it is about the code that booted and about Secure Boot; PCRs 1, 3, 5 and 6 hold',
      'settings, partitions and events that differ between machines of one kind. Compare the values with tpm2_pcrread sha256:0,2,4,7 on the',
      'machine: the command does not see the TPM, and the log is what its operating system says.',
    )
    .examples('ssh root@worker-3 cat /sys/kernel/security/tpm0/binary_bios_measurements | countersign machines pcrs -')
    .runs(async (file: string, { pcrs, output }: PcrFlags) => {
      const policy = await recordedPolicy(file, pcrs, io);
      io.out(formatOutput(output, policy, () => ''));
    });
}

interface PcrFlags {
  readonly pcrs: readonly string[];
  readonly output: string;
}

function addAllow(machines: CliCommand, io: Io): void {
  addRegisterOptions(machines.command('allow'))
    .description('put a machine, or a pattern of machines, on the list; an existing entry is replaced')
    .argument('[entry]', 'such as aws#i-0123456789abcdef0, or tpm# and the hash of an endorsement key', entryName)
    .option('--node <name>', 'the only node name that the machine may have (tpm#)', oneNode)
    .option('--address <ip>', 'an address of the machine, for its serving certificates; repeatable (tpm#)', collect)
    .option('--dns <name>', 'a DNS name of the machine, for its serving certificates; repeatable (tpm#)', collect)
    .option('--from <file>', 'instead of one entry: a file with one machine a line; - reads standard input')
    .addOption(mandatoryReason())
    .notes(
      `An entry is a provider, "#", and the machine's name there; * stands for any run of characters, but not in the name of a TPM.`,
      'A line of --from: tpm#… node=worker-3 address=10.0.7.3 address=fd00:7::3 dns=worker-3.example.com',
      'All lines are checked before the first is written. An entry that stands as its line says is left alone, so the same command may run again.',
    )
    .examples(
      "countersign machines allow aws#i-0123456789abcdef0 --cluster prod --reason 'rack 7, ticket 4711'",
      "countersign machines allow 'aws#i-0123*' --cluster prod --reason 'the batch of May'",
      'countersign machines allow "$(countersign machines ek ek.pub)" --node worker-3 --address 10.0.7.3 --cluster prod --reason \'rack 7\'',
      "countersign machines allow --from machines.txt --cluster prod --reason 'the inventory of May'",
    )
    .runs((name: string | undefined, flags: AllowFlags) => allow(name, flags, io));
}

function entryName(text: string): string {
  const problem = nameProblem(text);
  if (problem !== undefined) throw new InvalidArgumentError(problem);
  return text;
}

function collect(text: string, earlier: readonly string[] = []): readonly string[] {
  return [...earlier, text];
}

function oneNode(text: string, earlier: string | undefined): string {
  if (earlier !== undefined) throw new InvalidArgumentError('A machine has one node name.');
  return text;
}

async function show(name: string, { output, ...flags }: ShowFlags, io: Io): Promise<ExitCode> {
  const { entry, history } = await withRegister(flags, io, async ({ register }) => {
    const entries = await register.listMachines();
    const items = await Array.fromAsync(register.listAudit());
    const ofList = items.filter(
      ({ action, subject }) => subject === name && (action === 'allow' || action === 'remove'),
    );
    return { entry: entries.find((each) => each.name === name), history: ofList };
  });
  if (entry === undefined && history.length === 0) throw missing(name);
  const about = { entry: entry && shownEntry(entry), history: history.map(shownAudit) };
  const parts = [...(entry === undefined ? [] : [entryText(entry)]), auditTable(history)];
  io.out(formatOutput(output, about, () => parts.join('\n')));
  if (entry !== undefined) return exitCodes.ok;
  io.err(`countersign: ${missing(name).message} any more\n`);
  return exitCodes.notFound;
}

async function remove(name: string, flags: ChangeFlags, io: Io): Promise<void> {
  await withRegister(flags, io, async (open) => {
    const author = await announceChange(open, flags, io);
    const audit = auditItem({ action: 'remove', subject: name }, author, io);
    const write = await open.register.removeMachine(name, audit);
    if (write.kind !== 'written') throw missing(name);
    io.out(`removed: ${name} (audit item ${audit.id}, by ${fullText(author.by)})\n`);
  });
}

function missing(name: string): CommandFailure {
  return new CommandFailure(exitCodes.notFound, `${name} is not on the list`, 'countersign machines list shows it');
}
