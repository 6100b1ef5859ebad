/** How commands reach objects of a cluster, and what its refusals mean for whoever typed the command. */
import type { Command } from 'commander';
import type { ObjectApi } from '../adapters/kubernetes-objects.ts';
import { ThrottledError } from '../core/ports.ts';
import type { ApiAnswer, ApiRefusal, JsonObject } from '../core/ports.ts';
import { CommandFailure, exitCodes } from './exit.ts';
import type { ExitCode } from './exit.ts';
import { kubeconfigPath } from './io.ts';
import type { Io } from './io.ts';

export interface ClusterAccessFlags {
  readonly kubeconfig?: string;
  readonly context?: string;
}

/** The API and the time a command has: every call of it takes the signal. */
export interface Cluster {
  readonly api: ObjectApi;
  readonly signal: AbortSignal;
}

const commandMilliseconds = 60_000;

export function addClusterAccess(command: Command): Command {
  return command
    .option('--kubeconfig <file>', 'which cluster, as whom (default: KUBECONFIG, then ~/.kube/config, then this pod’s)')
    .option('--context <name>', 'context of that kubeconfig');
}

export async function withObjects<T>(
  flags: ClusterAccessFlags,
  io: Io,
  work: (cluster: Cluster) => Promise<T>,
): Promise<T> {
  const path = kubeconfigPath(flags.kubeconfig, io);
  const inPod = flags.kubeconfig === undefined && !io.fileExists(path) && io.environment['KUBERNETES_SERVICE_HOST'];
  const { context } = flags;
  // The client library takes longer to load than all the rest of the command line: only for those who need it.
  const { connectObjects } = await import('../adapters/kubernetes-objects.ts');
  let api: ObjectApi;
  try {
    api = connectObjects(
      inPod ? { kind: 'inCluster' } : { kind: 'kubeconfig', path, ...(context === undefined ? {} : { context }) },
    );
  } catch (error) {
    throw new CommandFailure(
      exitCodes.configuration,
      `${path}: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
  try {
    return await work({ api, signal: AbortSignal.timeout(commandMilliseconds) });
  } catch (error) {
    if (error instanceof CommandFailure) throw error;
    const message = error instanceof Error ? error.message : String(error);
    const busy = error instanceof ThrottledError ? 'is busy' : 'did not answer';
    throw new CommandFailure(exitCodes.temporary, `${api.server} ${busy}: ${message}`, 'try again');
  } finally {
    api.close();
  }
}

/** The value, or the end of the command. */
export function expected<T>(answer: ApiAnswer<T>, what: string): T {
  if (answer.ok) return answer.value;
  const hint =
    answer.why === 'Unauthorized' ? 'the login is not accepted; --kubeconfig and --context choose another' : undefined;
  throw new CommandFailure(refusalExits[answer.why], `${what}: ${answer.message}`, hint);
}

/** The value, or undefined when it is not there. */
export function ifFound<T>(answer: ApiAnswer<T>, what: string): T | undefined {
  return !answer.ok && answer.why === 'NotFound' ? undefined : expected(answer, what);
}

const refusalExits: Readonly<Record<ApiRefusal, ExitCode>> = {
  NotFound: exitCodes.notFound,
  Unauthorized: exitCodes.configuration,
  Forbidden: exitCodes.configuration,
  Conflict: exitCodes.conflict,
  Expired: exitCodes.temporary,
  TooLarge: exitCodes.refused,
  Invalid: exitCodes.usage,
};

/** Whether somebody may do something; undefined where we may not ask. */
export async function mayThey(
  { api, signal }: Cluster,
  who: { readonly user: string; readonly groups: readonly string[] },
  resourceAttributes: JsonObject,
): Promise<boolean | undefined> {
  const review = {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SubjectAccessReview',
    spec: { ...who, resourceAttributes },
  };
  const answer = await api.create('/apis/authorization.k8s.io/v1/subjectaccessreviews', review, signal);
  if (!answer.ok) return undefined;
  return objectOf(answer.value['status'])['allowed'] === true;
}

export function objectOf(value: unknown): JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : {};
}

export function listOf(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.map(objectOf) : [];
}

export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
