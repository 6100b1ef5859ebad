/** `countersign token reconcile`: the rules are those of token-rotation.ts. */
import { Command, InvalidArgumentError, Option } from 'commander';
import { addClusterAccess, withObjects } from './cluster-objects.ts';
import type { ClusterAccessFlags } from './cluster-objects.ts';
import type { Io } from './io.ts';
import { json, outputOption } from './output.ts';
import { goSeconds, reconciledText, reconcileTokens, shortestTtlSeconds } from './token-rotation.ts';

interface ReconcileFlags extends ClusterAccessFlags {
  readonly managementKubeconfig?: string;
  readonly ttl: number;
  readonly dryRun?: boolean;
  readonly output: string;
}

export function reconcileCommand(io: Io): Command {
  return addClusterAccess(new Command('reconcile'))
    .description(
      'extend or delete the tokens made with --machine and --pool: until the Machine’s node is Ready, for the life of the pool',
    )
    .option('--management-kubeconfig <file>', 'where Machines and MachinePools are (default: the same cluster)')
    .addOption(
      new Option('--ttl <duration>', 'how long a token lives from each extension on')
        .argParser(ownTtl)
        .default(3_600, '1h'),
    )
    .option('--dry-run', 'say what would be done')
    .addOption(outputOption('table', 'json'))
    .addHelpText(
      'after',
      `
The chart runs it as a CronJob (tokenReconcile.enabled). Run it at least twice in each --ttl: what has expired is gone.

Examples:
  countersign token reconcile
  countersign token reconcile --management-kubeconfig management.conf --ttl 2h
  countersign token reconcile --dry-run -o json`,
    )
    .action(async (flags: ReconcileFlags) => {
      const options = { ttlSeconds: flags.ttl, dryRun: flags.dryRun === true, now: io.now() };
      const { managementKubeconfig } = flags;
      const done = await withObjects(flags, io, (cluster) =>
        managementKubeconfig === undefined
          ? reconcileTokens(cluster, cluster.api, options)
          : withObjects({ kubeconfig: managementKubeconfig }, io, ({ api }) => reconcileTokens(cluster, api, options)),
      );
      io.out(
        flags.output === 'json'
          ? json(done)
          : `${options.dryRun ? 'dry run: nothing is changed\n' : ''}${reconciledText(done)}`,
      );
    });
}

export function goDuration(text: string): number {
  const seconds = goSeconds(text);
  if (seconds === undefined) throw new InvalidArgumentError('It looks like 30m, 24h or 1h30m.');
  return seconds;
}

function ownTtl(text: string): number {
  const seconds = goDuration(text);
  if (seconds < shortestTtlSeconds) throw new InvalidArgumentError('At least 5m.');
  return seconds;
}
