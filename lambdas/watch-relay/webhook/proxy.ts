/**
 * The webhook protocol (docs/signing-api.md) for clients that can neither sign their calls nor show a token of ours: they
 * ask the relay, and the relay asks the endpoint as itself.
 *
 * Nothing of what is posted reaches the endpoint. It only names a request; that request is read from the API server,
 * must be the very one that was posted, and is what is forwarded. So a stolen client credential can have approved
 * requests signed, which happens to them anyway, and nothing else.
 */
import { isDeepStrictEqual } from 'node:util';
import { decodeBody, objectTooLarge } from '../../../core/encoding/json-body.ts';
import { decodeRequestObject } from '../../../core/kubernetes/certificate-signing-request.ts';
import { refused, violation } from '../../../core/outcome/outcome.ts';
import type { JsonObject, RequestApi } from '../../../core/ports/kubernetes-api.ts';
import type { SignAnswer, SigningEndpoint } from '../../../core/ports/signing-endpoint.ts';
import { errorAnswer, outcomeHeader, signAnswer } from '../../../adapters/lambda/answers.ts';
import { jsonAnswer } from '../../../adapters/lambda/http.ts';
import type { HttpAnswer } from '../../../adapters/lambda/http.ts';
import { classify, oversizedMessage, sizeOf, withoutManagedFields } from '../objects/request-phase.ts';
import { certificateProblem } from '../objects/check-relayed-certificate.ts';
import type { Log } from '../runtime/log.ts';
import { withCertificate } from '../objects/status.ts';

export interface WebhookPorts {
  readonly api: Pick<RequestApi, 'get'>;
  readonly endpoint: Pick<SigningEndpoint, 'sign'>;
  readonly log: Log;
}

export interface WebhookCall {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  readonly contentType: string | undefined;
  readonly body: Uint8Array;
}

export type WebhookProxy = (call: WebhookCall, signal: AbortSignal) => Promise<HttpAnswer>;

/** What a client is told of anything that is wrong on our side; it comes back by itself. */
const comeBackSeconds = 2;

const oversized = { message: oversizedMessage, tooLarge: true } as const;

/** Serves the one cluster it is in. Never rejects. */
export function createWebhookProxy(cluster: string, ports: WebhookPorts): WebhookProxy {
  return async (call, signal) => {
    if (call.path !== `/v1/clusters/${cluster}/sign`) return errorAnswer(404, 'invalid', 'no such path');
    if (call.method !== 'POST')
      return errorAnswer(405, 'invalid', 'only POST is allowed here', [], { headers: { allow: 'POST' } });
    if (!/^application\/json *(;|$)/i.test(call.contentType ?? ''))
      return errorAnswer(415, 'invalid', 'send application/json');
    const body = decodeBody(call.body);
    if (!body.ok) return unreadable(body);
    const posted = decodeRequestObject(body.json);
    if (!posted.ok) return unreadable(posted);
    const { name, uid } = posted.object;
    try {
      return await forward(body.json as JsonObject, { name, uid }, ports, signal);
    } catch (error) {
      // The API server or the endpoint is away, or the client is.
      const detail = error instanceof Error ? error.message.slice(0, 300) : typeof error;
      if (!signal.aborted) ports.log.warn({ name, uid, detail }, 'webhook: nothing to answer with');
      return busy();
    }
  };
}

async function forward(
  posted: JsonObject,
  key: { readonly name: string; readonly uid: string },
  { api, endpoint, log }: WebhookPorts,
  signal: AbortSignal,
): Promise<HttpAnswer> {
  const found = await api.get(key.name, signal);
  if (!found.ok) {
    if (found.why === 'NotFound') return conflict('NotFound', 'the cluster has no request of that name');
    if (found.why === 'TooLarge') return unreadable(oversized);
    log.error({ ...key, detail: found.message }, 'webhook: the API server does not let us read the request');
    return busy();
  }
  const stored = found.value;
  const difference = differenceOf(posted, stored);
  if (difference !== undefined) {
    // Deleted and made anew, or somebody tries something.
    log.warn({ ...key, difference }, 'webhook: what was posted is not what the cluster has');
    return conflict('NotTheStoredRequest', `the cluster has another request of that name: ${difference} differs`);
  }
  const phase = classify(stored, sizeOf(stored));
  if (phase.kind === 'settled') return signAnswer({ kind: 'ignored', why: phase.why }, undefined);
  if (phase.kind === 'pending') return signAnswer({ kind: 'ignored', why: 'NotApproved' }, undefined);
  if (phase.kind === 'malformed') return errorAnswer(400, 'invalid', phase.message);
  if (phase.oversized) return unreadable(oversized);
  const answer = await endpoint.sign(withoutManagedFields(stored), signal);
  return answerOf(answer, posted, phase.object.request, key, log);
}

/** Conditions are not compared: the stored ones are what counts, and they may have moved on since. */
function differenceOf(posted: JsonObject, stored: JsonObject): string | undefined {
  const uid = (object: JsonObject): unknown => (object['metadata'] as JsonObject | undefined)?.['uid'];
  if (uid(posted) !== uid(stored)) return 'metadata.uid';
  return isDeepStrictEqual(posted['spec'], stored['spec']) ? undefined : 'spec';
}

/** A refusal is never 2xx: the client takes any 2xx for a certificate. */
function answerOf(answer: SignAnswer, posted: JsonObject, request: Uint8Array, key: object, log: Log): HttpAnswer {
  switch (answer.kind) {
    case 'issued': {
      const problem = certificateProblem(answer.certificatePem, request);
      if (problem !== undefined) {
        log.error(
          { ...key, detail: problem },
          'webhook: the endpoint issued a certificate that is not for the request',
        );
        return busy();
      }
      return jsonAnswer(200, withCertificate(posted, answer.certificatePem), outcomeHeader('issued'));
    }
    case 'refused':
      return signAnswer(answer, undefined);
    case 'ignored':
      return conflict('Ignored', 'the endpoint does not answer this request');
    case 'invalid':
      return errorAnswer(400, 'invalid', 'the endpoint cannot read the request');
    case 'busy':
      return busy(answer.retryAfterSeconds);
    case 'unauthorized':
      // About us, not about the client: 401 would send its people looking in the wrong place.
      log.error({ ...key, detail: answer.message }, 'webhook: the endpoint does not let us in');
      return busy();
    case 'unexpected':
      log.error({ ...key, detail: `HTTP ${answer.status}: ${answer.message}` }, 'webhook: the endpoint makes no sense');
      return busy();
  }
}

/** For fronts that stop before anything is read. */
export function tooLarge(): HttpAnswer {
  return unreadable(objectTooLarge);
}

export function busy(retryAfterSeconds = comeBackSeconds): HttpAnswer {
  return signAnswer({ kind: 'busy', why: 'Unavailable', retryAfterSeconds }, undefined);
}

function conflict(reason: string, message: string): HttpAnswer {
  return errorAnswer(409, 'ignored', message, [{ reason, message }]);
}

function unreadable({ message, tooLarge }: { readonly message: string; readonly tooLarge?: true }): HttpAnswer {
  return tooLarge === true
    ? signAnswer(refused(violation('RequestTooLarge', message)), undefined)
    : errorAnswer(400, 'invalid', message);
}
