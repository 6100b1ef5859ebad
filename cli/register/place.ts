/** Which attestation records a command works on: the table of a deployed cluster, or a folder of this machine. */
import type { RegisterPlace, OpenRegister, Io } from '../runtime/io.ts';
import { Option } from 'commander';
import { printableUpTo } from '../../core/outcome/printable-text.ts';
import { awsFailure } from '../aws/aws-failure.ts';
import type { Author } from '../runtime/reason.ts';
import type { CliCommand } from '../runtime/command.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';

export interface RegisterFlags {
  readonly cluster?: string;
  readonly data?: string;
  readonly table?: string;
  readonly region?: string;
}

/** Flags of a command that changes the records. */
export interface ChangeFlags extends RegisterFlags {
  readonly reason: string;
}

const tableVariable = 'COUNTERSIGN_ATTESTATIONS_TABLE';

export function addRegisterOptions(command: CliCommand): CliCommand {
  return command
    .option('--cluster <name>', 'deployed cluster [COUNTERSIGN_CLUSTER]')
    .addOption(
      new Option(
        '--data <dir>',
        'instead of a deployed cluster: folder of a cluster of the dev server, such as ./data/demo',
      ).conflicts(['table', 'region']),
    )
    .option('--table <name>', `its table (default: output AttestationsTable of its stack) [${tableVariable}]`)
    .option('--region <name>', 'AWS region of its stack (default: as for the aws command line)');
}

export function registerPlace(flags: RegisterFlags, io: Io): RegisterPlace {
  const { data, region } = flags;
  if (data !== undefined) return { kind: 'embedded', folder: data };
  const cluster = flags.cluster ?? (io.environment['COUNTERSIGN_CLUSTER'] || undefined);
  const table = flags.table ?? (io.environment[tableVariable] || undefined);
  if (cluster === undefined)
    throw new CommandFailure(
      exitCodes.usage,
      'which cluster? --cluster names a deployed one, --data a folder of this machine',
    );
  return { kind: 'deployed', cluster, table, region };
}

export async function withRegister<T>(
  flags: RegisterFlags,
  io: Io,
  work: (open: OpenRegister) => Promise<T>,
): Promise<T> {
  const place = registerPlace(flags, io);
  const open = await io.openRegister(place);
  try {
    return await work(open);
  } catch (error) {
    // For an unreadable record or a bug, trying again does not help.
    if (error instanceof CommandFailure || error instanceof TypeError || error instanceof RangeError) throw error;
    if (place.kind === 'deployed') throw awsFailure('DynamoDB', error);
    throw new CommandFailure(exitCodes.temporary, `${place.folder}: ${error instanceof Error ? error.message : ''}`);
  } finally {
    open.close();
  }
}

/** Prints, before a change, which records change and who changes them. Returns the author and the reason, for the audit item. */
export async function announceChange(open: OpenRegister, flags: ChangeFlags, io: Io): Promise<Author> {
  const { kind: _, ...place } = registerPlace(flags, io);
  const by = await open.by();
  const where = Object.entries(place).flatMap(([name, value]) => (value === undefined ? [] : [`${name} ${value}`]));
  io.err(`countersign: ${[...where, `as ${by}`].map((word) => printableUpTo(300, word)).join(', ')}\n`);
  return { by, reason: flags.reason };
}
