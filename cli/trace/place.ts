/** Where the records of a command are: a deployed cluster, or a folder of this machine. */
import { InvalidArgumentError, Option } from 'commander';
import type { ClusterConfiguration } from '../../core/configuration/model/cluster.ts';
import type { DeploymentConfiguration } from '../../core/configuration/model/deployment.ts';
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
  return addDeployedPlace(command).addOption(
    new Option(
      '--data <dir>',
      'instead of a deployed cluster: folder of a cluster of the dev server, such as ./data/demo',
    ).conflicts(['region']),
  );
}

export function addDeployedPlace(command: CliCommand): CliCommand {
  return command
    .option('--config <file>', 'countersign.yaml: it names the cluster and its region [COUNTERSIGN_CONFIG]')
    .option('--cluster <name>', 'deployed cluster [COUNTERSIGN_CLUSTER]')
    .option('--region <name>', 'AWS region of its stack (default: that of the file, then as for the aws command line)');
}

/** Throws CommandFailure if the flags and the environment name no cluster. */
export async function placeOf(flags: PlaceFlags, io: Io): Promise<TracePlace> {
  if (flags.data !== undefined) return { kind: 'embedded', folder: flags.data };
  const { cluster, region } = await deployedPlace(flags, io, ', --data a folder of this machine');
  return { kind: 'deployed', cluster, region };
}

export interface DeployedPlace {
  readonly cluster: string;
  readonly region: string | undefined;
  /** What the countersign.yaml at hand says of it, if there is one and it has this cluster. */
  readonly file?: {
    readonly path: string;
    readonly cluster: ClusterConfiguration;
    readonly deployment: DeploymentConfiguration;
  };
}

/** Throws CommandFailure if the flags and the environment name no cluster. `others`: what else could name it. */
export async function deployedPlace(flags: PlaceFlags, io: Io, others = ''): Promise<DeployedPlace> {
  const named = flags.cluster ?? (io.environment['COUNTERSIGN_CLUSTER'] || undefined);
  const file = configurationFile(flags.config, io);
  if (file === undefined) {
    if (named !== undefined) return { cluster: named, region: flags.region };
    throw new CommandFailure(exitCodes.usage, `which cluster? --cluster names a deployed one${others}`);
  }
  const { clusters, deployments } = await readConfiguration(file, io);
  const names = [...deployments.keys()];
  const name = named ?? (names.length === 1 ? names[0] : undefined);
  if (name === undefined)
    throw new CommandFailure(
      exitCodes.usage,
      `${file} has several clusters`,
      `--cluster names one of ${names.join(', ')}`,
    );
  // ./countersign.yaml may be the file of other clusters. A file that a flag names is the one that is meant.
  if (flags.config !== undefined && !deployments.has(name))
    throw new CommandFailure(exitCodes.notFound, `${file} has no cluster ${name}`, `it has ${names.join(', ')}`);
  const [cluster, deployment] = [clusters.get(name), deployments.get(name)];
  return {
    cluster: name,
    region: flags.region ?? deployment?.region,
    ...(cluster === undefined || deployment === undefined ? {} : { file: { path: file, cluster, deployment } }),
  };
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
