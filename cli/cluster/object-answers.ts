/** What the API server's answers mean for a command. The token-reconcile image contains this file too, so it imports little. */
import type { V1ResourceAttributes } from '@kubernetes/client-node';
import type { ClusterClients } from '../../adapters/kubernetes/clients.ts';
import { ApiRefused } from '../../adapters/kubernetes/refused.ts';
import type { ApiRefusal } from '../../core/ports/kubernetes-api.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { ExitCode } from '../runtime/exit.ts';

type Hints = Readonly<Partial<Record<ApiRefusal, string>>>;

/** The value. Throws CommandFailure if the API server refuses. `what`: what was requested, for the message. `hints`: what to do about a refusal. */
export function failIfRefused<T>(answer: Promise<T>, what: string, hints: Hints = {}): Promise<T> {
  return answer.catch((error: unknown) => {
    if (!(error instanceof ApiRefused)) throw error;
    const hint = hints[error.why] ?? (error.why === 'Unauthorized' ? anotherLogin : undefined);
    throw new CommandFailure(refusalExits[error.why], `${what}: ${error.message}`, hint);
  });
}

const anotherLogin = 'the login is not accepted; --kubeconfig and --context choose another';

/** The value, or undefined when it does not exist. */
export function ifFound<T>(answer: Promise<T>, what: string): Promise<T | undefined> {
  return failIfRefused(unlessRefused(answer, 'NotFound'), what);
}

/** The value, or undefined when the API server refuses for one of these reasons. Without reasons: undefined for every refusal. */
export async function unlessRefused<T>(answer: Promise<T>, ...reasons: ApiRefusal[]): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof ApiRefused && (reasons.length === 0 || reasons.includes(error.why))) return undefined;
    throw error;
  }
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

interface Page<T> {
  readonly items: readonly T[];
  readonly metadata?: { readonly _continue?: string };
}

export async function allPages<T>(
  list: (page: { readonly limit: number; readonly _continue?: string }) => Promise<Page<T>>,
  what: string,
  hints?: Hints,
): Promise<readonly T[]> {
  const items: T[] = [];
  let from = '';
  do {
    const page = await failIfRefused(list({ limit: 250, ...(from === '' ? {} : { _continue: from }) }), what, hints);
    items.push(...page.items);
    from = page.metadata?._continue ?? '';
  } while (from !== '');
  return items;
}

/** Whether a user may do one of these things; undefined if no review allows it and this login may not create all reviews. */
export async function isAllowed(
  { authorization }: ClusterClients,
  who: { readonly user: string; readonly groups: readonly string[] },
  ...questions: readonly V1ResourceAttributes[]
): Promise<boolean | undefined> {
  let answer: boolean | undefined = false;
  for (const resourceAttributes of questions) {
    const spec = { user: who.user, groups: [...who.groups], resourceAttributes };
    const review = await unlessRefused(authorization.createSubjectAccessReview({ body: { spec } }));
    if (review?.status?.allowed === true) return true;
    if (review === undefined) answer = undefined;
  }
  return answer;
}
