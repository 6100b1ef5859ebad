/** How commands reach objects of a cluster. */
import type { Command } from 'commander';
import type { ObjectApi } from '../../adapters/kubernetes/objects.ts';
import { ThrottledError } from '../../core/ports/errors.ts';
import { printable } from '../../core/outcome/printable-text.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import { kubeconfigPath } from '../runtime/io.ts';
import type { Io } from '../runtime/io.ts';
import { objectOf, textOf } from './object-answers.ts';
import type { Cluster } from './object-answers.ts';
import { errorMessage } from '../../core/outcome/error-message.ts';

export interface ClusterAccessFlags {
  readonly kubeconfig?: string;
  readonly context?: string;
}

const commandMilliseconds = 60_000;

export function addClusterAccess(command: Command): Command {
  return command
    .option('--kubeconfig <file>', 'which cluster, as whom (default: KUBECONFIG, then ~/.kube/config, then this pod’s)')
    .option('--context <name>', 'context of that kubeconfig');
}

export interface Whereabouts {
  readonly server: string;
  readonly context: string;
  /** As the API server calls us; as the kubeconfig does where the API server does not say. */
  readonly user: string;
}

/**
 * Says on standard error which cluster this is and who we are there, before anything is looked at or changed: the current context
 * of a kubeconfig is easily another one than the operator thinks. `role`: of several clusters.
 */
export async function announce({ api, signal }: Cluster, io: Io, role = ''): Promise<Whereabouts> {
  const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' };
  const answer = await api.create('/apis/authentication.k8s.io/v1/selfsubjectreviews', review, signal);
  const known = answer.ok ? textOf(objectOf(objectOf(answer.value['status'])['userInfo'])['username']) : '';
  const { server, context } = api;
  const user = known === '' ? api.user : known;
  const words = { server, context, user };
  const shown = Object.entries(words).map(([name, word]) => `${name} ${word === '' ? '-' : printable(word)}`);
  io.err(`countersign: ${role}${shown.join(', ')}\n`);
  return words;
}

export async function withObjects<T>(
  flags: ClusterAccessFlags,
  io: Io,
  work: (cluster: Cluster) => Promise<T>,
): Promise<T> {
  const path = kubeconfigPath(flags.kubeconfig, io);
  const { context } = flags;
  // A context that was asked for is never another cluster: without its kubeconfig it is an error.
  const unnamed = flags.kubeconfig === undefined && context === undefined;
  const inPod = unnamed && !io.fileExists(path) && io.environment['KUBERNETES_SERVICE_HOST'];
  // The client library takes longer to load than all the rest of the command line: only for those who need it.
  const { connectObjects } = await import('../../adapters/kubernetes/objects.ts');
  let api: ObjectApi;
  try {
    api = connectObjects(
      inPod ? { kind: 'inCluster' } : { kind: 'kubeconfig', path, ...(context === undefined ? {} : { context }) },
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
    return await work({ api, signal: AbortSignal.timeout(commandMilliseconds) });
  } catch (error) {
    if (error instanceof CommandFailure) throw error;
    const message = errorMessage(error);
    const busy = error instanceof ThrottledError ? 'is busy' : 'did not answer';
    throw new CommandFailure(exitCodes.temporary, `${api.server} ${busy}: ${message}`, 'try again');
  } finally {
    api.close();
  }
}
