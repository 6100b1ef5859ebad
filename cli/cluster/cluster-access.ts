/** Connects a command to a cluster. */
import type { ClusterConnection } from '../../adapters/kubernetes/clients.ts';
import { ThrottledError } from '../../core/ports/errors.ts';
import { printable } from '../../core/outcome/printable-text.ts';
import type { CliCommand } from '../runtime/command.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import { kubeconfigPath } from '../runtime/io.ts';
import type { Io } from '../runtime/io.ts';
import { unlessRefused } from './object-answers.ts';
import { errorMessage } from '../../core/outcome/error-message.ts';

export interface ClusterAccessFlags {
  readonly kubeconfig?: string | undefined;
  readonly context?: string | undefined;
}

const commandMilliseconds = 60_000;

export function addClusterAccess(command: CliCommand): CliCommand {
  return command
    .option('--kubeconfig <file>', 'cluster and login (default: KUBECONFIG, then ~/.kube/config, then this pod’s)')
    .option('--context <name>', 'context of that kubeconfig');
}

export interface ClusterLogin {
  readonly server: string;
  readonly context: string;
  /** The user name that the API server sees. If it refuses a SelfSubjectReview: the user entry of the kubeconfig. */
  readonly user: string;
}

/**
 * Prints the cluster and the user on standard error before a command reads or changes anything: the current context of a
 * kubeconfig may not be the one that the operator expects. `role`: what the cluster is used for, if the command uses several.
 */
export async function announce(cluster: ClusterConnection, io: Io, role = ''): Promise<ClusterLogin> {
  const review = await unlessRefused(cluster.authentication.createSelfSubjectReview({ body: {} }));
  const { server, context } = cluster;
  const user = review?.status?.userInfo?.username || cluster.user;
  const words = { server, context, user };
  const shown = Object.entries(words).map(([name, word]) => `${name} ${word === '' ? '-' : printable(word)}`);
  io.err(`countersign: ${role}${shown.join(', ')}\n`);
  return words;
}

export async function withCluster<T>(
  flags: ClusterAccessFlags,
  io: Io,
  work: (cluster: ClusterConnection) => Promise<T>,
): Promise<T> {
  const path = kubeconfigPath(flags.kubeconfig, io);
  const { context } = flags;
  // With --context the pod's own cluster is never used instead: a missing kubeconfig is an error.
  const unnamed = flags.kubeconfig === undefined && context === undefined;
  const inPod = unnamed && !io.fileExists(path) && io.environment['KUBERNETES_SERVICE_HOST'];
  // The client library takes longer to load than the rest of the command line, so only commands that need it load it.
  const { connectClients } = await import('../../adapters/kubernetes/clients.ts');
  let cluster: ClusterConnection;
  try {
    cluster = connectClients(
      inPod ? { kind: 'inCluster' } : { kind: 'kubeconfig', path, ...(context === undefined ? {} : { context }) },
      AbortSignal.timeout(commandMilliseconds),
    );
  } catch (error) {
    const absent = error instanceof Error && 'code' in error && error.code === 'ENOENT';
    const message = errorMessage(error);
    throw new CommandFailure(
      exitCodes.configuration,
      absent ? `there is no kubeconfig ${path}` : `${path}: ${message}`,
      absent && flags.kubeconfig === undefined ? 'name one: --kubeconfig FILE, or KUBECONFIG' : undefined,
    );
  }
  try {
    return await work(cluster);
  } catch (error) {
    if (error instanceof CommandFailure) throw error;
    const message = errorMessage(error);
    const busy = error instanceof ThrottledError ? 'is busy' : 'did not answer';
    throw new CommandFailure(exitCodes.temporary, `${cluster.server} ${busy}: ${message}`, 'try again');
  } finally {
    cluster.close();
  }
}
