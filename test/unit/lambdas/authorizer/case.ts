import type { BundledAccess } from '../../../../core/configuration/bundled-configuration.ts';
import type { AuthorizerEvent, Refusal } from '../../../../lambdas/authorizer/authorizer.ts';
import { audience, claims, cluster, issuer, jwks, otherSubject, subject } from './tokens.ts';
import type { TokenSpec } from './tokens.ts';

/** Who is let in, and why all the others are not: also what the mutants of the authorizer are held against. */
export interface Case {
  readonly name: string;
  readonly event: AuthorizerEvent;
  readonly access: BundledAccess;
  /** Undefined: let in. */
  readonly reason: Refusal | undefined;
  readonly subject?: string;
}

export const access: BundledAccess = { cluster, jwt: { issuer, audience, subjects: [subject, otherSubject], jwks } };
export const signPath = `/v1/clusters/${cluster}/sign`;

/** As an HTTP API sends it; only what differs is named. */
export function eventOf(token: string | undefined, change: Readonly<Record<string, unknown>> = {}): AuthorizerEvent {
  const authorization = token === undefined ? undefined : `Bearer ${token}`;
  return {
    version: '2.0',
    type: 'REQUEST',
    routeArn: `arn:aws:execute-api:eu-central-1:111122223333:abc/$default/POST${signPath}`,
    identitySource: [authorization],
    routeKey: 'POST /v1/clusters/{cluster}/sign',
    rawPath: signPath,
    rawQueryString: 'timeout=30s',
    headers: { 'content-type': 'application/json', ...(authorization === undefined ? {} : { authorization }) },
    requestContext: { requestId: 'JKJaXmPLvHcESHA=', http: { method: 'POST', path: signPath } },
    pathParameters: { cluster },
    ...change,
  } as AuthorizerEvent;
}

export type More = { readonly event?: Readonly<Record<string, unknown>>; readonly access?: BundledAccess };

export function letIn(name: string, token: string, more: More & { readonly subject?: string } = {}): Case {
  return {
    name,
    event: eventOf(token, more.event),
    access: more.access ?? access,
    reason: undefined,
    subject: more.subject ?? subject,
  };
}

export function refused(reason: Refusal, name: string, token: string | undefined, more: More = {}): Case {
  return { name, event: eventOf(token, more.event), access: more.access ?? access, reason };
}

export function withKeys(...keys: readonly unknown[]): More {
  return { access: { ...access, jwt: { ...access.jwt, jwks: { keys: keys as Record<string, unknown>[] } } } };
}

/** The claims' JSON with one member written in front, so that the real one comes last and wins. */
export function payloadWith(member: string, more: Readonly<Record<string, unknown>> = {}): TokenSpec {
  return { payloadText: `{${member},${JSON.stringify(claims(more)).slice(1)}` };
}

export function raw(member: string, value: string): TokenSpec {
  const { [member]: _left, ...rest } = claims();
  return { payloadText: `{"${member}":${value},${JSON.stringify(rest).slice(1)}` };
}
