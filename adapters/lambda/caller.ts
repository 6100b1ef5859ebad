/**
 * Checks the caller that the front door names. The front door admits every principal of the account that IAM allows to call
 * it. This check admits only the cluster's caller role and the service accounts of its `access.jwt`.
 *
 * https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
 * https://docs.aws.amazon.com/lambda/latest/dg/urls-invocation.html#urls-payloads
 */
import type { CallersAllowed } from '../../core/configuration/bundled-configuration.ts';
import { errorAnswer } from './answers.ts';
import type { HttpEvent, LambdaContext } from './http.ts';
import type { Answered, CallLogEntry } from './log.ts';
import type { Instant } from '../../core/ports/instant.ts';
import { objectOf } from '../../core/encoding/json-object.ts';

/** `caller` for a log line; `principal` is the same without its session name, for a metric with few values. */
export type CallerDecision =
  { readonly kind: 'allowed' } | { readonly kind: 'refused'; readonly caller: string; readonly principal: string };
type RefusedCaller = Extract<CallerDecision, { kind: 'refused' }>;
const allowed: CallerDecision = { kind: 'allowed' };

/** The ports that the sign and attest handlers have in common. */
export interface CallPorts {
  readonly caller: CallerCheck;
  readonly now: () => Instant;
  /** Cryptographically strong. */
  readonly randomBytes: (count: number) => Uint8Array;
  readonly log: (entry: CallLogEntry) => void;
}

export type CallerCheck = (event: HttpEvent, context: LambdaContext | undefined) => CallerDecision;

/** The check of a deployed function. */
export function checkCaller({ cluster, role, subjects }: CallersAllowed): CallerCheck {
  return ({ requestContext: { authorizer } }, context) => {
    // A block that does not apply may be absent or null.
    const blocks = Object.entries(objectOf(authorizer)).filter(([, block]) => block !== null && block !== undefined);
    const { iam, lambda, ...others } = Object.fromEntries(blocks);
    const refused: CallerDecision = refusedCaller(iam, lambda);
    // Each API has one authorizer. Two blocks would name two callers.
    if (Object.keys(others).length > 0 || (iam !== undefined) === (lambda !== undefined)) return refused;
    if (iam === undefined) {
      // The context that lambdas/authorizer returns for a token it accepts.
      const { cluster: tokenCluster, subject } = objectOf(lambda);
      return tokenCluster === cluster && typeof subject === 'string' && subjects?.includes(subject) === true
        ? allowed
        : refused;
    }
    return role !== undefined && isRole(role, objectOf(iam), context) ? allowed : refused;
  };
}

const functionArn = /^arn:([a-z-]+):lambda:[a-z0-9-]+:([0-9]{12}):function:/;

/**
 * `userArn` decides: the ARN of the session, with the account and the name of its role. A role's path is not in it, and a
 * role name is unique in an account. The caller role is in the function's own account, and that account is in the ARN
 * under which Lambda runs the function. `accountId` must agree. `userId` and `callerId` are not compared: they begin with
 * the role's unique id, and a later role of that name has another. A principal that can create it can also change the role.
 */
function isRole(
  role: string,
  { userArn, accountId }: Readonly<Record<string, unknown>>,
  context: LambdaContext | undefined,
): boolean {
  const [, partition, account] = functionArn.exec(context?.invokedFunctionArn ?? '') ?? [];
  if (partition === undefined || account === undefined || typeof userArn !== 'string') return false;
  const prefix = `arn:${partition}:sts::${account}:assumed-role/${role}/`;
  return accountId === account && userArn.startsWith(prefix) && sessionName.test(userArn.slice(prefix.length));
}

/** https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html */
const sessionName = /^[\w+=,.@-]{2,64}$/;

/** An ARN as AWS writes it. Anything else is a forged event, and could fill the log or forge a line in it. */
const principalArn = /^arn:[a-z-]{1,20}:(?:iam|sts)::[0-9]{12}:[\w+=,.@:/-]{1,600}$/;

function refusedCaller(iam: unknown, lambda: unknown): RefusedCaller {
  const { userArn } = objectOf(iam);
  if (typeof userArn === 'string' && principalArn.test(userArn)) {
    const principal = userArn.replace(/(:assumed-role\/[^/]+|:federated-user)\/.*$/, '$1');
    return { kind: 'refused', caller: userArn.slice(0, 256), principal: principal.slice(0, 256) };
  }
  const { subject } = objectOf(lambda);
  if (typeof subject === 'string' && /^system:serviceaccount:[a-z0-9-]{1,63}:[a-z0-9.-]{1,253}$/.test(subject))
    return { kind: 'refused', caller: subject.slice(0, 256), principal: subject.slice(0, 256) };
  return unnamedCaller;
}

/** The front door names no caller: its authorizer was removed, or the function was invoked directly. */
export const unnamedCaller = { kind: 'refused', caller: 'unnamed', principal: 'unnamed' } as const;

/** The answer says only that the caller is not allowed. The caller's name is for the operator's log and alarm. */
export function refuseCaller({ caller, principal }: RefusedCaller, cluster?: string): Answered {
  const message = 'the caller is neither the caller role nor a service account of this cluster';
  const fields = cluster === undefined ? {} : { cluster };
  return [errorAnswer(403, 'forbidden', message), { ...fields, caller, callerPrincipal: principal }];
}
