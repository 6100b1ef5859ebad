/**
 * The attest function over HTTP: docs/signing-api.md. It reads the call, asks core/attest.ts and says what was
 * concluded; no rule is here. Made from ports, so that Lambda, the dev server and the demo run this very code.
 */
import type { AttestContext } from '../../core/attestation/attest-question.ts';
import { attest, evidenceAnnotation } from '../../core/attest.ts';
import type { AttestOutcome, AttestPorts } from '../../core/attest.ts';
import type { ClusterConfiguration } from '../../core/configuration/model/cluster.ts';
import { decodeBody, maxObjectBytes } from '../../core/encoding/json-body.ts';
import { decodeRequestObject } from '../../core/kubernetes/certificate-signing-request.ts';
import type { RequestObject } from '../../core/kubernetes/certificate-signing-request.ts';
import type { JsonObject } from '../../core/ports/kubernetes-api.ts';
import type { Instant } from '../../core/ports/instant.ts';
import { printable } from '../../core/outcome/printable-text.ts';
import { errorAnswer, rejected, signAnswer, verdictAnswer, wrongContentType } from '../../adapters/lambda/answers.ts';
import { attestCallAnswer } from '../../adapters/lambda/attest-call.ts';
import type { AttestCall, AttestCallAnswer } from '../../adapters/lambda/attest-call.ts';
import { refuseCaller, unnamedCaller } from '../../adapters/lambda/caller.ts';
import type { CallerCheck } from '../../adapters/lambda/caller.ts';
import { decodeEvent, readHttpEvent } from '../../adapters/lambda/http.ts';
import type { HttpAnswer, HttpHandler, LambdaContext } from '../../adapters/lambda/http.ts';
import { busyAfter, logEntry, requestNames } from '../../adapters/lambda/log.ts';
import type { CallLogEntry } from '../../adapters/lambda/log.ts';
import { decodeContext } from './context.ts';

export interface AttestHandlerPorts {
  /** Who may have requests judged by HTTP. */
  readonly caller: CallerCheck;
  readonly cluster: (name: string) => ClusterConfiguration | undefined;
  /** Each cluster has a store and providers of its own. Rejects when they cannot be had. */
  readonly attestation: (cluster: string) => Promise<Pick<AttestPorts, 'store' | 'providers'>>;
  readonly now: () => Instant;
  /** Cryptographically strong. */
  readonly randomBytes: (count: number) => Uint8Array;
  readonly log: (entry: CallLogEntry) => void;
}

/** An object of the largest size with a context around it: what /sign takes must not be too large to be judged. */
export const maxCallBytes = maxObjectBytes + 65_536;

const attestPath = /^\/v1\/clusters\/([a-z0-9-]{1,63})\/attest$/;

/** An answer, and what the log says about it. */
type Answered = readonly [HttpAnswer, Partial<CallLogEntry>];

export interface AttestHandler {
  readonly http: HttpHandler;
  /** Sign's own way. IAM has said who may use it. */
  readonly call: (call: AttestCall) => Promise<AttestCallAnswer>;
}

export function createAttestHandler(ports: AttestHandlerPorts): AttestHandler {
  async function logged(answering: () => Promise<Answered>): Promise<Answered> {
    const started = ports.now();
    const [answer, more] = await answering();
    ports.log(logEntry(answer, ports.now() - started, more));
    return [answer, more];
  }
  return {
    http: async (event, context) => (await logged(() => answerTo(event, context, ports)))[0],
    async call({ cluster, request }) {
      const [answer, { error }] = await logged(() => answerCall(cluster, request, ports));
      return attestCallAnswer(answer.headers['x-countersign-outcome'] ?? '', error);
    },
  };
}

async function answerTo(
  received: unknown,
  context: LambdaContext | undefined,
  ports: AttestHandlerPorts,
): Promise<Answered> {
  const event = readHttpEvent(received);
  // Neither a front door nor sign sends such an event: a principal has invoked the function.
  if (event === undefined) return refuseCaller(unnamedCaller);
  const { method, path, headers, body } = decodeEvent(event);
  const name = attestPath.exec(path)?.[1];
  if (name === undefined) return [errorAnswer(404, 'invalid', 'no such path'), { path: printable(path) }];
  if (method !== 'POST')
    return [errorAnswer(405, 'invalid', 'only POST is allowed here', [], { headers: { allow: 'POST' } }), { path }];
  const cluster = ports.cluster(name);
  if (cluster === undefined) return [errorAnswer(404, 'invalid', 'no such cluster'), { path }];
  const caller = ports.caller(event, context);
  if (!caller.ok) return refuseCaller(caller, name);
  const wrongType = wrongContentType(headers);
  if (wrongType !== undefined) return [wrongType, { cluster: name }];
  return judge(body, cluster, ports);
}

async function answerCall(name: string, request: JsonObject, ports: AttestHandlerPorts): Promise<Answered> {
  const cluster = ports.cluster(name);
  if (cluster === undefined) return [errorAnswer(404, 'invalid', 'no such cluster'), { path: printable(name) }];
  let body: Buffer;
  try {
    // As text again: what is read from an event has the same limits as what is read from a body.
    body = Buffer.from(JSON.stringify({ request }));
  } catch {
    return [errorAnswer(400, 'invalid', 'the call is nested too deeply'), { cluster: name }];
  }
  return judge(body, cluster, ports);
}

async function judge(body: Uint8Array, cluster: ClusterConfiguration, ports: AttestHandlerPorts): Promise<Answered> {
  const { name } = cluster;
  const call = decodeCall(body);
  if (!call.ok) return [signAnswer(rejected(call), undefined), { cluster: name, ...requestNames(call.json) }];
  const about = { cluster: name, ...requestNames(call.json) };
  try {
    const { now, randomBytes } = ports;
    const attestation = await ports.attestation(name);
    const outcome = await attest(call.object, call.context, cluster, { ...attestation, now, randomBytes });
    return [verdictAnswer(outcome), { ...about, ...told(outcome) }];
  } catch (error) {
    // Throwing means "temporary": nothing was concluded, or it was recorded and the next delivery finds it.
    const outcome = busyAfter(error, ports.randomBytes);
    return [signAnswer(outcome, undefined), { ...about, why: outcome.why, error }];
  }
}

type Call =
  | { readonly ok: true; readonly json: unknown; readonly object: RequestObject; readonly context: AttestContext }
  | { readonly ok: false; readonly json?: unknown; readonly message: string; readonly tooLarge?: true };

/** `{"request": <CertificateSigningRequest>, "context"?: {"machine"?: …}}`, and nothing else. */
function decodeCall(bytes: Uint8Array): Call {
  const body = decodeBody(bytes, maxCallBytes);
  if (!body.ok) return body;
  if (typeof body.json !== 'object' || body.json === null || Array.isArray(body.json))
    return { ok: false, message: 'body is not a JSON object' };
  const { request, context, ...others } = body.json as Readonly<Record<string, unknown>>;
  if (Object.keys(others).length > 0) return { ok: false, message: 'body has keys other than request and context' };
  const decoded = decodeRequestObject(request);
  if (!decoded.ok) return { ...decoded, message: `request: ${decoded.message}`, json: request };
  const narrowed = decodeContext(context);
  if (!narrowed.ok) return { ok: false, message: narrowed.message, json: request };
  return { ok: true, json: request, object: decoded.object, context: narrowed.context };
}

/** The part of an outcome that the log may tell. */
function told(outcome: AttestOutcome): Partial<CallLogEntry> {
  switch (outcome.kind) {
    case 'approve': {
      const { identity, annotations, repeat, audit } = outcome;
      const evidence = annotations[evidenceAnnotation];
      return {
        decision: 'approve',
        repeat,
        ...(identity === undefined ? {} : { identity }),
        ...(evidence === undefined ? {} : { evidence }),
        ...(audit === undefined ? {} : { wouldRefuse: audit === 'unjudged' ? audit : audit.map(({ code }) => code) }),
      };
    }
    case 'deny':
    case 'challenge':
      return {
        decision: outcome.kind,
        repeat: outcome.repeat,
        codes: outcome.violations.map(({ code }) => code),
      };
    case 'ignore':
      return { decision: 'ignore', why: outcome.why };
  }
}
