/**
 * Authenticates callers that use JWTs: a Lambda authorizer of an HTTP API (payload 2.0, simple responses). It authorizes a
 * service account token with the issuer, audience and one of the subjects that the configuration names, for the paths of
 * that one cluster. It refuses everything else, including a missing configuration, an unavailable key set or an internal
 * error.
 *
 * The caller does not learn the reason; the log contains it. Neither contains the token.
 * https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-lambda-authorizer.html
 */
import { failure, success } from '../../core/outcome/result.ts';
import type { Result } from '../../core/outcome/result.ts';
import type { BundledAccess } from '../../core/configuration/bundled-configuration.ts';
import { configuredKeys, fetchedKeys } from '../../core/jwt/key-source.ts';
import type { KeySource } from '../../core/jwt/key-source.ts';
import type { Instant } from '../../core/ports/instant.ts';
import { named } from '../../core/outcome/trouble.ts';
import type { NamedTrouble } from '../../core/outcome/trouble.ts';
import { clusterOf } from './call-path.ts';
import { bearerToken, verifyToken } from './token.ts';
import type { TokenRefusal } from './token.ts';

/** The fields of the event that are read. All of them are untrusted. */
export interface AuthorizerEvent {
  readonly version?: unknown;
  readonly type?: unknown;
  readonly rawPath?: unknown;
  /** Names are in lower case; repeated headers are joined by commas. */
  readonly headers?: Readonly<Record<string, unknown>> | null;
  readonly requestContext?: { readonly requestId?: unknown } | null;
}

export interface AuthorizerAnswer {
  readonly isAuthorized: boolean;
  /** Set if the caller is authorized: API Gateway passes it to the functions and to the access log. */
  readonly context?: { readonly cluster: string; readonly subject: string };
}

export type Refusal =
  | TokenRefusal
  | 'NotConfigured' // the bundle contains no usable access rules
  | 'EventUnknown' // not an event of this kind of authorizer
  | 'PathUnknown' // not a path of a cluster
  | 'OtherCluster' // a path of a cluster that this authorizer is not for
  | 'Internal'; // an error of this function

export interface AuthorizerLogEntry extends Partial<NamedTrouble> {
  /** `error`: the operator must act. `warn`: the issuer cannot be reached. A refused caller is `info`. */
  readonly level: 'info' | 'warn' | 'error';
  readonly authorized: boolean;
  readonly reason?: Refusal;
  readonly cluster?: string;
  /** Only if the signature of the token was verified. */
  readonly subject?: string;
  readonly requestId?: string;
  readonly detail?: string;
}

export interface AuthorizerPorts {
  readonly now: () => Instant;
  /** The issuer's key set, in bounded time. Throws if it cannot be fetched. */
  readonly fetchJwks: (issuer: string) => Promise<unknown>;
  readonly log: (entry: AuthorizerLogEntry) => void;
}

export type Authorizer = (event: AuthorizerEvent) => Promise<AuthorizerAnswer>;

/** Without `access` every call is refused. Never rejects. */
export function createAuthorizer(access: BundledAccess | undefined, ports: AuthorizerPorts): Authorizer {
  const keys = access === undefined ? undefined : keysOf(access, ports);

  async function decide(event: AuthorizerEvent): Promise<Decision> {
    if (access === undefined || keys === undefined) return failure({ reason: 'NotConfigured' });
    // Payload 1.0 has other fields and needs another form of answer. Our HTTP API does not send it.
    if (event.version !== '2.0' || event.type !== 'REQUEST') return failure({ reason: 'EventUnknown' });
    const cluster = clusterOf(event.rawPath);
    if (cluster === undefined) return failure({ reason: 'PathUnknown' });
    // The configured subjects belong to this cluster only.
    if (cluster !== access.cluster) return failure({ reason: 'OtherCluster' });
    const token = bearerToken(event.headers?.['authorization']);
    if (!token.ok) return failure({ reason: token.problem });
    const verified = await verifyToken(token.value, access.jwt, keys, ports.now());
    return verified.ok ? success({ cluster, subject: verified.value }) : verified;
  }

  return async (event) => {
    let decision: Decision;
    try {
      decision = await decide(event);
    } catch (error) {
      // Only the error's name is logged, since its message may quote the token.
      decision = failure({ reason: 'Internal', detail: error instanceof Error ? error.name : typeof error });
    }
    ports.log({
      ...(decision.ok ? { level: 'info' } : severityOf(decision.problem.reason)),
      authorized: decision.ok,
      ...(access === undefined ? {} : { cluster: access.cluster }),
      ...(decision.ok ? { subject: decision.value.subject } : decision.problem),
      ...requestId(event),
    });
    return decision.ok ? { isAuthorized: true, context: decision.value } : { isAuthorized: false };
  };
}

function keysOf({ jwt: { issuer, jwks } }: BundledAccess, { fetchJwks }: AuthorizerPorts): KeySource {
  return jwks === undefined ? fetchedKeys(() => fetchJwks(issuer)) : configuredKeys(jwks);
}

/** The context of an authorized call. */
type Decision = Result<
  { readonly cluster: string; readonly subject: string },
  { readonly reason: Refusal; readonly subject?: string; readonly detail?: string }
>;

/** The level, and the trouble if it is one. */
export function severityOf(reason: Refusal): Pick<AuthorizerLogEntry, 'level' | 'trouble' | 'alarm'> {
  if (reason === 'KeysUnreachable') return { level: 'warn', ...named('authorizer-keys') };
  return operatorMustAct.has(reason) ? { level: 'error', ...named('authorizer-faults') } : { level: 'info' };
}

/** Every call is refused until the operator corrects these. */
const operatorMustAct: ReadonlySet<Refusal> = new Set(['NotConfigured', 'EventUnknown', 'KeysUnusable', 'Internal']);

/** API Gateway's request ID, if it has the expected form. */
function requestId(event: AuthorizerEvent): { requestId?: string } {
  const id = event?.requestContext?.requestId;
  return typeof id === 'string' && /^[\w=+/-]{1,64}$/.test(id) ? { requestId: id } : {};
}
