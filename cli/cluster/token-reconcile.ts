/** `countersign token reconcile`: the rules are those of token-rotation.ts. */
import { Command, InvalidArgumentError, Option } from 'commander';
import { addClusterAccess, announce, withObjects } from './cluster-objects.ts';
import type { ClusterAccessFlags } from './cluster-objects.ts';
import type { ExitCode } from '../runtime/exit.ts';
import type { Io } from '../runtime/io.ts';
import { json, outputOption } from '../output/output.ts';
import { goSeconds, reconciledText, reconcileTokens, shortestTtlSeconds } from './token-rotation.ts';

interface ReconcileFlags extends ClusterAccessFlags {
  readonly managementKubeconfig?: string;
  readonly managementContext?: string;
  readonly ttl: number;
  readonly dryRun?: boolean;
  readonly output: string;
}

export function reconcileCommand(io: Io, finish: (code: ExitCode) => void): Command {
  return addClusterAccess(new Command('reconcile'))
    .description(
      'extend or delete the tokens made with --machine and --pool: until the Machine’s node is Ready, for the life of the pool',
    )
    .option('--management-kubeconfig <file>', 'where Machines and MachinePools are (default: the same cluster)')
    .option('--management-context <name>', 'context of the kubeconfig of Machines and MachinePools')
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
Says first which clusters it works on. Where no Machine and no MachinePool of any token is found it deletes nothing and ends with 4:
the wrong management cluster may have been asked. A token that cannot be looked up is left as it is, and the others go on.

The chart runs it as a CronJob (tokenReconcile.enabled). Run it at least twice in each --ttl: what has expired is gone.

Examples:
  countersign token reconcile
  countersign token reconcile --management-kubeconfig management.conf --ttl 2h
  countersign token reconcile --dry-run -o json`,
    )
    .action(async (flags: ReconcileFlags) => {
      const options = { ttlSeconds: flags.ttl, dryRun: flags.dryRun === true, now: io.now() };
      const done = await withObjects(flags, io, async (cluster) => {
        await announce(cluster, io, 'tokens: ');
        const management = managementOf(flags);
        if (management === undefined) return reconcileTokens(cluster, cluster.api, options);
        return withObjects(management, io, async (machines) => {
          await announce(machines, io, 'Machines: ');
          return reconcileTokens(cluster, machines.api, options);
        });
      });
      io.out(
        flags.output === 'json'
          ? json(done.tokens)
          : `${options.dryRun ? 'dry run: nothing is changed\n' : ''}${reconciledText(done)}`,
      );
      finish(done.exit);
    });
}

/** Where Cluster API runs; nothing: in the cluster of the tokens. */
function managementOf(flags: ReconcileFlags): ClusterAccessFlags | undefined {
  const { managementKubeconfig, managementContext, kubeconfig } = flags;
  if (managementKubeconfig === undefined && managementContext === undefined) return undefined;
  // Another context of the same file.
  const file = managementKubeconfig ?? kubeconfig;
  return {
    ...(file === undefined ? {} : { kubeconfig: file }),
    ...(managementContext === undefined ? {} : { context: managementContext }),
  };
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
