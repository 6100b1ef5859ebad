/**
 * Who may come in by the JWT way: a Lambda authorizer of an HTTP API (payload 2.0, simple responses). It says yes to a
 * service-account token of exactly the issuer, audience and subjects its cluster names, for exactly that cluster's
 * paths, and no to everything else: a missing configuration, a key set that cannot be had, a fault of its own.
 *
 * The caller only ever hears "no"; why is in the log. Tokens are in neither.
 * https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-lambda-authorizer.html
 */
import type { BundledAccess } from '../../core/configuration/bundled-configuration.ts';
import type { Instant } from '../../core/ports/instant.ts';
import { clusterOf } from './call-path.ts';
import { createKeySource } from './key-source.ts';
import type { FetchJwks } from './key-source.ts';
import { bearerToken, verifyToken } from './token.ts';
import type { TokenRefusal } from './token.ts';

/** The part of the event that is looked at. All of it comes from a stranger. */
export interface AuthorizerEvent {
  readonly version?: unknown;
  readonly type?: unknown;
  readonly rawPath?: unknown;
  /** Names in lower case; repeated ones joined by commas. */
  readonly headers?: Readonly<Record<string, unknown>> | null;
  readonly requestContext?: { readonly requestId?: unknown } | null;
}

export interface AuthorizerAnswer {
  readonly isAuthorized: boolean;
  /** For the function behind and the access log; only of callers let in. */
  readonly context?: { readonly cluster: string; readonly subject: string };
}

export type Refusal =
  | TokenRefusal
  | 'NotConfigured' // the bundle holds no usable access rules
  | 'EventUnknown' // not an event of this kind of authorizer
  | 'PathUnknown' // not a path of a cluster
  | 'OtherCluster' // a path of another cluster than the one whose callers are known here
  | 'Internal'; // a fault of ours

export interface AuthorizerLogEntry {
  /** `error`: somebody should look. `warn`: a dependency is away. Strangers at the door are `info`. */
  readonly level: 'info' | 'warn' | 'error';
  readonly authorized: boolean;
  readonly reason?: Refusal;
  readonly cluster?: string;
  /** Only of a token whose signature was verified. */
  readonly subject?: string;
  readonly requestId?: string;
  readonly detail?: string;
}

export interface AuthorizerPorts {
  readonly now: () => Instant;
  /** The issuer's key set, in bounded time; throws when it cannot be had. */
  readonly fetchJwks: FetchJwks;
  readonly log: (entry: AuthorizerLogEntry) => void;
}

export type Authorizer = (event: AuthorizerEvent) => Promise<AuthorizerAnswer>;

/** `access` is undefined where there is none to be had: then nobody comes in. Never rejects. */
export function createAuthorizer(access: BundledAccess | undefined, ports: AuthorizerPorts): Authorizer {
  const keys = access === undefined ? undefined : createKeySource(access.jwt, ports);

  async function decide(event: AuthorizerEvent): Promise<Decision> {
    if (access === undefined || keys === undefined) return { reason: 'NotConfigured' };
    // Payload 1.0 has other fields and wants another answer: whoever sent it, it is not our front door.
    if (event.version !== '2.0' || event.type !== 'REQUEST') return { reason: 'EventUnknown' };
    const cluster = clusterOf(event.rawPath);
    if (cluster === undefined) return { reason: 'PathUnknown' };
    // All subjects belong to the one cluster whose stack this is: for any other they are nobody.
    if (cluster !== access.cluster) return { reason: 'OtherCluster' };
    const token = bearerToken(event.headers?.['authorization']);
    if (!token.ok) return { reason: token.reason };
    return verifyToken(token.text, access.jwt, keys, ports.now());
  }

  return async (event) => {
    let decision: Decision;
    try {
      decision = await decide(event);
    } catch (error) {
      // Not its message: what fails while handling a token may quote it.
      decision = { reason: 'Internal', detail: error instanceof Error ? error.name : typeof error };
    }
    const { subject, reason } = decision;
    const granted = reason === undefined && subject !== undefined && access !== undefined;
    ports.log({
      level: levelOf(reason),
      authorized: granted,
      ...(access === undefined ? {} : { cluster: access.cluster }),
      ...decision,
      ...requestId(event),
    });
    return granted ? { isAuthorized: true, context: { cluster: access.cluster, subject } } : { isAuthorized: false };
  };
}

/** A yes has a subject and no reason. */
interface Decision {
  readonly reason?: Refusal;
  readonly subject?: string;
  readonly detail?: string;
}

function levelOf(reason: Refusal | undefined): AuthorizerLogEntry['level'] {
  if (reason === 'KeysUnreachable') return 'warn';
  return reason !== undefined && ourFaults.has(reason) ? 'error' : 'info';
}

/** Nobody comes in until somebody mends them. */
const ourFaults: ReadonlySet<Refusal> = new Set(['NotConfigured', 'EventUnknown', 'KeysUnusable', 'Internal']);

/** API Gateway's own; taken only in its form. */
function requestId(event: AuthorizerEvent): { requestId?: string } {
  const id = event?.requestContext?.requestId;
  return typeof id === 'string' && /^[\w=+/-]{1,64}$/.test(id) ? { requestId: id } : {};
}
