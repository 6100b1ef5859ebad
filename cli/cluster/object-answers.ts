/** What a cluster's answers mean for whoever gave a command; loaded by the job in the cluster too, hence little else. */
import type { ObjectApi } from '../../adapters/kubernetes/objects.ts';
import type { ApiAnswer, ApiRefusal, JsonObject } from '../../core/ports/kubernetes-api.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { ExitCode } from '../runtime/exit.ts';

/** The API and the time a command has: every call of it takes the signal. */
export interface Cluster {
  readonly api: ObjectApi;
  readonly signal: AbortSignal;
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
