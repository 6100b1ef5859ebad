/**
 * The webhook protocol (docs/signing-api.md) for clients that support neither SigV4 nor the endpoint's tokens: they call
 * the relay, and the relay calls the endpoint with its own credentials.
 *
 * Nothing that a client posts reaches the endpoint. The relay reads the request of that name from the API server, requires
 * that the posted one equals it, and forwards the stored object. With a stolen client credential an attacker can only have
 * approved requests signed, and the relay has them signed anyway.
 */
import { isDeepStrictEqual } from 'node:util';
import { decodeRequestObject } from '../../../core/kubernetes/certificate-signing-request.ts';
import { errorMessage } from '../../../core/outcome/error-message.ts';
import type { JsonObject, RequestApi } from '../../../core/ports/kubernetes-api.ts';
import type { SignAnswer, SigningEndpoint } from '../../../core/ports/signing-endpoint.ts';
import { errorAnswer, outcomeHeader, signAnswer } from '../../../adapters/lambda/answers.ts';
import { jsonAnswer } from '../../../adapters/lambda/http.ts';
import type { HttpAnswer } from '../../../adapters/lambda/http.ts';
import { classify, oversizedMessage, sizeOf, withoutManagedFields } from '../objects/request-phase.ts';
import { certificateProblem } from '../objects/check-relayed-certificate.ts';
import type { Log } from '../runtime/log.ts';
import { withCertificate } from '../objects/status.ts';
import { postedDocument, unreadable } from './posted.ts';
import type { WebhookProxy } from './posted.ts';

export interface WebhookPorts {
  readonly api: Pick<RequestApi, 'get'>;
  readonly endpoint: Pick<SigningEndpoint, 'sign'>;
  readonly log: Log;
}

const retryAfterSeconds = 2;

const oversized = { message: oversizedMessage, tooLarge: true } as const;

/** Never rejects. */
export function createWebhookProxy(cluster: string, ports: WebhookPorts): WebhookProxy {
  return async (call, signal) => {
    if (call.path !== `/v1/clusters/${cluster}/sign`) return errorAnswer(404, 'invalid', 'no such path');
    const body = postedDocument(call);
    if (!body.ok) return body.problem;
    const posted = decodeRequestObject(body.value);
    if (!posted.ok) return unreadable(posted.problem);
    const { name, uid } = posted.value;
    try {
      return await forward(body.value as JsonObject, { name, uid }, ports, signal);
    } catch (error) {
      // The API server or the endpoint is unreachable, or the client is gone.
      const detail = errorMessage(error).slice(0, 300);
      if (!signal.aborted) ports.log.warn({ name, uid, detail }, 'webhook: no answer');
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
    if (found.problem.why === 'NotFound') return conflict('NotFound', 'the cluster has no request of that name');
    if (found.problem.why === 'TooLarge') return unreadable(oversized);
    log.error({ ...key, detail: found.problem.message }, 'webhook: the API server refuses to read the request');
    return busy();
  }
  const stored = found.value;
  const difference = differenceOf(posted, stored);
  if (difference !== undefined) {
    // The request was deleted and created again, or the caller is an attacker.
    log.warn({ ...key, difference }, 'webhook: the posted request is not the stored one');
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

/** Conditions are not compared: the relay uses only the stored ones, which may be newer. */
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
        log.error({ ...key, detail: problem }, 'webhook: the certificate is not for the request');
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
    case 'functionFailed':
      log.warn({ ...key, detail: `HTTP ${answer.status}` }, 'webhook: the function of the endpoint gives no answer');
      return busy();
    case 'unauthorized':
      // The endpoint refuses the relay, not its client: a 401 would mislead the client's operator.
      log.error({ ...key, detail: answer.message }, 'webhook: the endpoint refuses the relay');
      return busy();
    case 'unexpected':
      log.error(
        { ...key, detail: `HTTP ${answer.status}: ${answer.message}` },
        'webhook: unexpected answer of the endpoint',
      );
      return busy();
  }
}

export function busy(afterSeconds = retryAfterSeconds): HttpAnswer {
  return signAnswer({ kind: 'busy', why: 'Unavailable', retryAfterSeconds: afterSeconds }, undefined);
}

function conflict(reason: string, message: string): HttpAnswer {
  return errorAnswer(409, 'ignored', message, [{ reason, message }]);
}
