/** `countersign dev`: the signing side on this machine, to try rules without AWS. */
import { resolve } from 'node:path';
import { InvalidArgumentError } from 'commander';
import type { ClusterConfiguration } from '../../core/configuration/model/cluster.ts';
import { defaultCluster } from '../../core/configuration/parse.ts';
import { errorMessage } from '../../core/outcome/error-message.ts';
import { announce, withCluster } from '../cluster/cluster-access.ts';
import type { ClusterAccessFlags } from '../cluster/cluster-access.ts';
import { configurationFile, readConfiguration } from '../cluster/cluster-choice.ts';
import type { ClusterFlags } from '../cluster/cluster-choice.ts';
import { durationMilliseconds } from '../inventory/range.ts';
import type { CliCommand } from '../runtime/command.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import { kubeconfigPath } from '../runtime/io.ts';
import type { DevRelay, DevSettings, Io } from '../runtime/io.ts';

interface DevFlags extends ClusterFlags, ClusterAccessFlags {
  readonly port: number;
  /** Milliseconds. */
  readonly maxTtl?: number;
  readonly data?: string;
  readonly writeKubeconfig?: string;
}

const defaultName = 'demo';
const defaultTtl = 86_400_000;

export function devCommand(program: CliCommand, io: Io): void {
  program
    .command('dev')
    .description(
      'serve the signing side on this machine, on loopback: the handlers that run in AWS, over a CA key and a ledger in memory or in a\n' +
        'folder. To try rules, never for production: every process of this machine may call it.',
    )
    .option('--port <port>', 'on 127.0.0.1; 0 takes a free one', portNumber, 8443)
    .option(
      '--config <file>',
      'the clusters of a countersign.yaml (default: COUNTERSIGN_CONFIG, then ./countersign.yaml)',
    )
    .option(
      '--cluster <name>',
      'one cluster of that file instead of all; without a file the name of the cluster',
      clusterName,
    )
    .option(
      '--max-ttl <duration>',
      'without a file: longest lifetime of a certificate (default: 24h)',
      durationMilliseconds,
    )
    .option('--data <folder>', 'keep CA and ledger in FOLDER/NAME across restarts (default: in memory)', notEmpty)
    .option(
      '--write-kubeconfig <file>',
      'also start a stand-in of the cluster’s API and a relay, and write here how to reach it',
      notEmpty,
    )
    .option(
      '--kubeconfig <file>',
      'also start a relay for the cluster of this kubeconfig, with your rights; only for signers of your own',
      notEmpty,
    )
    .option('--context <name>', 'context of that kubeconfig (without --kubeconfig: of KUBECONFIG or ~/.kube/config)')
    .notes(
      'Without a file it serves the four kubernetes.io signers. The stand-in has CertificateSigningRequests and nothing else.',
      'Exit code 0: stopped by a signal.',
    )
    .examples(
      'countersign dev --write-kubeconfig dev.kubeconfig',
      'countersign dev --config countersign.yaml --cluster prod --data ./countersign-data',
      'countersign dev --config countersign.yaml --kubeconfig ~/.kube/config',
      'countersign dev --port 0 --cluster kind --max-ttl 2h',
    )
    .page('dev-server.md')
    .runs(async (flags: DevFlags) => io.serveDev(await settingsOf(flags, io)));
}

async function settingsOf(flags: DevFlags, io: Io): Promise<DevSettings> {
  const { port, data, writeKubeconfig, kubeconfig, context } = flags;
  const clusters = await clustersOf(flags, io);
  const settings = { port, clusters, ...(data === undefined ? {} : { dataFolder: resolve(data) }) };
  const inCluster = kubeconfig !== undefined || context !== undefined;
  if (writeKubeconfig === undefined)
    return inCluster ? { ...settings, relay: await relayInCluster(clusters, flags, io) } : settings;
  if (inCluster)
    throw new CommandFailure(exitCodes.usage, 'one relay: either --write-kubeconfig, or --kubeconfig and --context');
  const cluster = onlyCluster(clusters, '--write-kubeconfig');
  return { ...settings, relay: { api: 'stand-in', cluster, kubeconfigFile: resolve(writeKubeconfig) } };
}

/** Prints the cluster and the user, before the relay writes anything there. */
async function relayInCluster(clusters: readonly ClusterConfiguration[], flags: DevFlags, io: Io): Promise<DevRelay> {
  const cluster = onlyCluster(clusters, '--kubeconfig');
  // A cluster has a signer for the others already. Certificates of this CA would lock its nodes out.
  const foreign = [...cluster.profiles.values()].find(({ kind }) => kind !== 'custom');
  if (foreign !== undefined)
    throw new CommandFailure(
      exitCodes.usage,
      `--kubeconfig is for signers of your own only, and cluster ${cluster.name} has ${foreign.signerName}`,
      'name a countersign.yaml with --config; docs/kind.md has one',
    );
  await withCluster(flags, io, (connection) => announce(connection, io));
  const { context } = flags;
  const kubeconfigFile = resolve(kubeconfigPath(flags.kubeconfig, io));
  return { api: 'cluster', cluster, kubeconfigFile, ...(context === undefined ? {} : { context }) };
}

function onlyCluster(clusters: readonly ClusterConfiguration[], flag: string): ClusterConfiguration {
  const [cluster, ...more] = clusters;
  if (cluster !== undefined && more.length === 0) return cluster;
  throw new CommandFailure(
    exitCodes.usage,
    `${flag} is for one cluster, and the file has several`,
    `--cluster names one of ${clusters.map(({ name }) => name).join(', ')}`,
  );
}

async function clustersOf({ config, cluster, maxTtl }: DevFlags, io: Io): Promise<readonly ClusterConfiguration[]> {
  const file = configurationFile(config, io);
  const wanted = cluster ?? (io.environment['COUNTERSIGN_CLUSTER'] || undefined);
  if (file === undefined) return [withoutFile(wanted ?? defaultName, maxTtl ?? defaultTtl)];
  if (maxTtl !== undefined)
    throw new CommandFailure(
      exitCodes.usage,
      `--max-ttl: ${file} sets the lifetime, so the option cannot be used with it`,
    );
  const all = [...(await readConfiguration(file, io)).clusters.values()];
  const clusters = all.filter(({ name }) => wanted === undefined || name === wanted);
  if (clusters.length > 0) return clusters;
  const names = all.map(({ name }) => name).join(', ');
  throw new CommandFailure(exitCodes.notFound, `${file} has no cluster ${wanted}`, `it has ${names}`);
}

function withoutFile(name: string, maxTtl: number): ClusterConfiguration {
  try {
    return defaultCluster(name, { maxTtlSeconds: maxTtl / 1_000 });
  } catch (error) {
    throw new CommandFailure(exitCodes.usage, `--max-ttl: ${errorMessage(error)}`);
  }
}

function portNumber(text: string): number {
  if (!/^\d{1,5}$/.test(text) || Number(text) > 65_535) throw new InvalidArgumentError('Not a port number.');
  return Number(text);
}

function clusterName(text: string): string {
  if (!/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(text))
    throw new InvalidArgumentError('Not a DNS label (lower-case letters, digits, inner hyphens).');
  return text;
}

function notEmpty(text: string): string {
  if (text === '') throw new InvalidArgumentError('It names nothing.');
  return text;
}
