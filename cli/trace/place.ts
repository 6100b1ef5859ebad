/** Where the records of a command are: a deployed cluster, or a folder of this machine. */
import { InvalidArgumentError, Option } from 'commander';
import { configurationFile, readConfiguration } from '../cluster/cluster-choice.ts';
import type { CliCommand } from '../runtime/command.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { Io, TracePlace } from '../runtime/io.ts';

export interface PlaceFlags {
  readonly config?: string;
  readonly cluster?: string;
  readonly data?: string;
  readonly region?: string;
}

export function addPlace(command: CliCommand): CliCommand {
  return command
    .option('--config <file>', 'countersign.yaml: it names the cluster and its region [COUNTERSIGN_CONFIG]')
    .option('--cluster <name>', 'deployed cluster [COUNTERSIGN_CLUSTER]')
    .option('--region <name>', 'AWS region of its stack (default: that of the file, then as for the aws command line)')
    .addOption(
      new Option(
        '--data <dir>',
        'instead of a deployed cluster: folder of a cluster of the dev server, such as ./data/demo',
      ).conflicts(['region']),
    );
}

/** Throws CommandFailure if the flags and the environment name no cluster. */
export async function placeOf(flags: PlaceFlags, io: Io): Promise<TracePlace> {
  if (flags.data !== undefined) return { kind: 'embedded', folder: flags.data };
  const named = flags.cluster ?? (io.environment['COUNTERSIGN_CLUSTER'] || undefined);
  const file = configurationFile(flags.config, io);
  if (file === undefined) {
    if (named !== undefined) return { kind: 'deployed', cluster: named, region: flags.region };
    throw new CommandFailure(
      exitCodes.usage,
      'which cluster? --cluster names a deployed one, --data a folder of this machine',
    );
  }
  const { deployments } = await readConfiguration(file, io);
  const names = [...deployments.keys()];
  const cluster = named ?? (names.length === 1 ? names[0] : undefined);
  if (cluster === undefined)
    throw new CommandFailure(
      exitCodes.usage,
      `${file} has several clusters`,
      `--cluster names one of ${names.join(', ')}`,
    );
  // ./countersign.yaml may be the file of other clusters. A file that a flag names is the one that is meant.
  if (flags.config !== undefined && !deployments.has(cluster))
    throw new CommandFailure(exitCodes.notFound, `${file} has no cluster ${cluster}`, `it has ${names.join(', ')}`);
  return { kind: 'deployed', cluster, region: flags.region ?? deployments.get(cluster)?.region };
}

/** As openssl and browsers write it too: upper case, colons, a leading zero octet. */
export function serialNumber(text: string): string {
  const digits = text
    .replaceAll(':', '')
    .toLowerCase()
    .replace(/^(?:0x)?(?:00)?/, '');
  if (!/^[0-9a-f]{1,40}$/.test(digits))
    throw new InvalidArgumentError('A serial number is up to 40 hexadecimal digits.');
  return digits.length % 2 === 0 ? digits : `0${digits}`;
}
