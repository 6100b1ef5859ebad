/**
 * The program of the chart's CronJob: countersign token reconcile as the pod's service account. The image holds no other
 * command, so neither AWS code nor anything that signs.
 */
import { parseArgs } from 'node:util';
import { connectClients } from '../../adapters/kubernetes/clients.ts';
import { CommandFailure, exitCodes } from '../../cli/runtime/exit.ts';
import { oneLine, escapeHidden } from '../../core/outcome/printable-text.ts';
import { goSeconds, reconciledText, reconcileTokens, shortestTtlSeconds } from '../../cli/cluster/token-rotation.ts';
import { errorMessage } from '../../core/outcome/error-message.ts';

const timeoutMilliseconds = 60_000;

async function main(): Promise<number> {
  const { ttl, help } = parseArgs({ options: { ttl: { type: 'string' }, help: { type: 'boolean' } } }).values;
  if (help === true) {
    process.stdout.write(
      'usage: token-reconcile [--ttl 1h]: countersign token reconcile, with the pod’s service account\n',
    );
    return exitCodes.ok;
  }
  const ttlSeconds = goSeconds(ttl ?? '1h') ?? 0;
  if (ttlSeconds < shortestTtlSeconds) {
    process.stderr.write('token-reconcile: --ttl is a duration of at least 5m\n');
    return exitCodes.usage;
  }
  const cluster = connectClients({ kind: 'inCluster' }, AbortSignal.timeout(timeoutMilliseconds));
  try {
    const done = await reconcileTokens(cluster, cluster, { ttlSeconds, dryRun: false, now: Date.now() });
    process.stdout.write(escapeHidden(reconciledText(done)));
    return done.exit;
  } finally {
    cluster.close();
  }
}

main().then(
  (code) => {
    process.exitCode = code;
  },
  (error: unknown) => {
    process.stderr.write(`token-reconcile: ${oneLine(errorMessage(error))}\n`);
    process.exitCode = error instanceof CommandFailure ? error.code : exitCodes.temporary;
  },
);
