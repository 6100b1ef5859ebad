/** `countersign token reconcile`, with the rules of token-rotation.ts. */
import { InvalidArgumentError, Option } from 'commander';
import { addClusterAccess, announce, withCluster } from '../cluster/cluster-access.ts';
import type { ClusterAccessFlags } from '../cluster/cluster-access.ts';
import type { CliCommand } from '../runtime/command.ts';
import type { Io } from '../runtime/io.ts';
import { formatOutput } from '../output/output.ts';
import { goSeconds, reconciledText, reconcileTokens, shortestTtlSeconds } from '../cluster/token-rotation.ts';

interface ReconcileFlags extends ClusterAccessFlags {
  readonly managementKubeconfig?: string;
  readonly managementContext?: string;
  readonly ttl: number;
  readonly dryRun?: boolean;
  readonly output: string;
}

export function addReconcile(token: CliCommand, io: Io): void {
  addClusterAccess(token.command('reconcile'))
    .description(
      'extend or delete tokens created with --machine or --pool: extend until the Machine’s node is Ready, or while the pool exists',
    )
    .option('--management-kubeconfig <file>', 'cluster with the Machines and MachinePools (default: the same cluster)')
    .option('--management-context <name>', 'context of the kubeconfig of Machines and MachinePools')
    .addOption(
      new Option('--ttl <duration>', 'lifetime of a token after each extension').argParser(ttlArg).default(3_600, '1h'),
    )
    .option('--dry-run', 'only print what would be done')
    .formats('table', 'json', 'yaml')
    .notes(
      'Prints first which clusters it works on. If it finds no Machine and no MachinePool of any token, it deletes nothing and',
      'ends with 4, since this may be the wrong management cluster. A token whose owner cannot be looked up is left as it is.',
      '',
      'The chart runs it as a CronJob (tokenReconcile.enabled). Run it at least twice in each --ttl, or tokens expire.',
    )
    .examples(
      'countersign token reconcile',
      'countersign token reconcile --management-kubeconfig management.conf --ttl 2h',
      'countersign token reconcile --dry-run -o json',
    )
    .runs(async (flags: ReconcileFlags) => {
      const options = { ttlSeconds: flags.ttl, dryRun: flags.dryRun === true, now: io.now() };
      const done = await withCluster(flags, io, async (cluster) => {
        await announce(cluster, io, 'tokens: ');
        const management = managementOf(flags);
        if (management === undefined) return reconcileTokens(cluster, cluster, options);
        return withCluster(management, io, async (machines) => {
          await announce(machines, io, 'Machines: ');
          return reconcileTokens(cluster, machines, options);
        });
      });
      const notice = options.dryRun ? 'dry run: nothing is changed\n' : '';
      io.out(formatOutput(flags.output, done.tokens, () => `${notice}${reconciledText(done)}`));
      return done.exit;
    });
}

/** The cluster in which Cluster API runs; undefined: the cluster of the tokens. */
function managementOf(flags: ReconcileFlags): ClusterAccessFlags | undefined {
  const { managementKubeconfig, managementContext, kubeconfig } = flags;
  if (managementKubeconfig === undefined && managementContext === undefined) return undefined;
  // --management-context alone names another context of the same kubeconfig.
  return { kubeconfig: managementKubeconfig ?? kubeconfig, context: managementContext };
}

export function goDuration(text: string): number {
  const seconds = goSeconds(text);
  if (seconds === undefined) throw new InvalidArgumentError('It must look like 30m, 24h or 1h30m.');
  return seconds;
}

function ttlArg(text: string): number {
  const seconds = goDuration(text);
  if (seconds < shortestTtlSeconds) throw new InvalidArgumentError('It must be at least 5m.');
  return seconds;
}
