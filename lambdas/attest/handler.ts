/**
 * The attest function over HTTP (docs/signing-api.md). It decodes the call, calls core/attest.ts and encodes the verdict;
 * it contains no rules. It is created from ports, so that Lambda, the dev server and the demo run the same code.
 */
import { failure, success } from '../../core/outcome/result.ts';
import type { Result } from '../../core/outcome/result.ts';
import { attest, evidenceAnnotation } from '../../core/attest.ts';
import type { AttestOutcome, AttestPorts } from '../../core/attest.ts';
import type { RetirementScope } from '../../core/attestation/retirement/retire-gone.ts';
import type { ClusterConfiguration } from '../../core/configuration/model/cluster.ts';
import { decodeBody, maxObjectBytes } from '../../core/encoding/json-body.ts';
import { isObject } from '../../core/encoding/json-object.ts';
import { decodeRequestObject } from '../../core/kubernetes/certificate-signing-request.ts';
import type { RequestObject } from '../../core/kubernetes/certificate-signing-request.ts';
import type { JsonObject } from '../../core/ports/kubernetes-api.ts';
import type { AttestContext } from '../../core/ports/signing-endpoint.ts';
import { printable } from '../../core/outcome/printable-text.ts';
import { errorAnswer, rejected, signAnswer, verdictAnswer, wrongContentType } from '../../adapters/lambda/answers.ts';
import { attestCallAnswer } from '../../adapters/lambda/attest-call.ts';
import type { AttestCall, AttestCallAnswer } from '../../adapters/lambda/attest-call.ts';
import { refuseCaller, unnamedCaller } from '../../adapters/lambda/caller.ts';
import type { CallPorts } from '../../adapters/lambda/caller.ts';
import { decodeEvent, readHttpEvent } from '../../adapters/lambda/http.ts';
import type { HttpHandler, LambdaContext } from '../../adapters/lambda/http.ts';
import { busyAfter, logEntry, requestNames } from '../../adapters/lambda/log.ts';
import type { Answered, CallLogEntry } from '../../adapters/lambda/log.ts';
import { decodeContext } from './context.ts';
import { decodeHint, look, lookAnswer } from './look.ts';
import type { LookAnswer } from './look.ts';

export interface AttestHandlerPorts extends CallPorts {
  readonly cluster: (name: string) => ClusterConfiguration | undefined;
  /** Each cluster has its own store and providers. Rejects if they are unavailable. */
  readonly attestation: (cluster: string) => Promise<Pick<AttestPorts, 'store' | 'providers'>>;
}

/** Room for the largest object that /sign accepts, and for a context. */
export const maxCallBytes = maxObjectBytes + 65_536;

const attestPath = /^\/v1\/clusters\/([a-z0-9-]{1,63})\/attest(\/look)?$/;

export interface AttestHandler {
  readonly http: HttpHandler;
  /** Answers a call of the sign function, which IAM has authorized. */
  readonly call: (call: AttestCall, context?: LambdaContext) => Promise<AttestCallAnswer>;
  /** The look for terminated machines that the schedule starts. Never rejects: a failure is in its log line. */
  readonly scheduledLook: (cluster: string, context?: LambdaContext) => Promise<LookAnswer>;
}

export function createAttestHandler(ports: AttestHandlerPorts): AttestHandler {
  async function logged(context: LambdaContext | undefined, respond: () => Promise<Answered>): Promise<Answered> {
    const started = ports.now();
    const [answer, fields] = await respond();
    ports.log(logEntry(answer, ports.now() - started, { ...fields, lambdaRequestId: context?.awsRequestId }));
    return [answer, fields];
  }
  return {
    http: async (event, context) => (await logged(context, () => answerTo(event, context, ports)))[0],
    async call({ cluster, request }, context) {
      const [answer, { error }] = await logged(context, () => answerCall(cluster, request, ports));
      return attestCallAnswer(answer.headers['x-countersign-outcome'] ?? '', error);
    },
    async scheduledLook(name, context) {
      const cluster = ports.cluster(name);
      // A schedule that is still there after a deployment that switched it off.
      if (!looksForGone(cluster)) return lookAnswer('ignored');
      const [answer] = await logged(context, () => lookBy('scheduled', cluster, ports));
      return lookAnswer(answer.headers['x-countersign-outcome'] ?? '');
    },
  };
}

async function answerTo(
  received: unknown,
  context: LambdaContext | undefined,
  ports: AttestHandlerPorts,
): Promise<Answered> {
  const event = readHttpEvent(received);
  // Neither a front door nor sign sends such an event: an IAM principal invoked the function directly.
  if (event === undefined) return refuseCaller(unnamedCaller);
  const { method, path, headers, body } = decodeEvent(event);
  const [, name, toLook] = attestPath.exec(path) ?? [];
  if (name === undefined) return [errorAnswer(404, 'invalid', 'no such path'), { path: printable(path) }];
  if (method !== 'POST')
    return [errorAnswer(405, 'invalid', 'only POST is allowed here', [], { headers: { allow: 'POST' } }), { path }];
  const cluster = ports.cluster(name);
  if (cluster === undefined) return [errorAnswer(404, 'invalid', 'no such cluster'), { path }];
  const caller = ports.caller(event, context);
  if (caller.kind === 'refused') return refuseCaller(caller, name);
  const wrongType = wrongContentType(headers);
  if (wrongType !== undefined) return [wrongType, { cluster: name }];
  return toLook === undefined ? attestBody(body, cluster, ports) : lookAtHinted(body, cluster, ports);
}

async function lookAtHinted(
  body: Uint8Array,
  cluster: ClusterConfiguration,
  ports: AttestHandlerPorts,
): Promise<Answered> {
  const { name } = cluster;
  if (!looksForGone(cluster)) return [errorAnswer(404, 'invalid', 'no such path'), { cluster: name }];
  const nodeNames = decodeHint(body);
  if (!nodeNames.ok) return [errorAnswer(400, 'invalid', nodeNames.problem), { cluster: name }];
  return lookBy({ nodeNames: nodeNames.value }, cluster, ports);
}

function looksForGone(cluster: ClusterConfiguration | undefined): cluster is ClusterConfiguration {
  return cluster?.attestation?.retireTerminated === true;
}

function lookBy(
  scope: RetirementScope,
  { name }: ClusterConfiguration,
  { attestation, now, randomBytes }: AttestHandlerPorts,
): Promise<Answered> {
  return look(async () => ({ ...(await attestation(name)), now, randomBytes }), scope, name, randomBytes);
}

async function answerCall(name: string, request: JsonObject, ports: AttestHandlerPorts): Promise<Answered> {
  const cluster = ports.cluster(name);
  if (cluster === undefined) return [errorAnswer(404, 'invalid', 'no such cluster'), { path: printable(name) }];
  let body: Buffer;
  try {
    // Serialised again, so that the limits of an HTTP body apply to this event too.
    body = Buffer.from(JSON.stringify({ request }));
  } catch {
    return [errorAnswer(400, 'invalid', 'the call is nested too deeply'), { cluster: name }];
  }
  return attestBody(body, cluster, ports);
}

async function attestBody(
  body: Uint8Array,
  cluster: ClusterConfiguration,
  ports: AttestHandlerPorts,
): Promise<Answered> {
  const { name } = cluster;
  const decoded = decodeCall(body);
  if (!decoded.ok) {
    const { json, ...problem } = decoded.problem;
    return [signAnswer(rejected(problem), undefined), { cluster: name, ...requestNames(json) }];
  }
  const { json, object, context } = decoded.value;
  const fields = { cluster: name, ...requestNames(json) };
  try {
    const { now, randomBytes } = ports;
    const attestation = await ports.attestation(name);
    const outcome = await attest(object, context, cluster, { ...attestation, now, randomBytes });
    return [verdictAnswer(outcome), { ...fields, ...logFieldsOf(outcome) }];
  } catch (error) {
    // Temporary: if the verdict was stored before the failure, the next delivery finds it.
    const outcome = busyAfter(error, ports.randomBytes);
    return [signAnswer(outcome, undefined), { ...fields, why: outcome.why, error }];
  }
}

interface Call {
  readonly json: unknown;
  readonly object: RequestObject;
  readonly context: AttestContext;
}

interface CallProblem {
  readonly message: string;
  readonly tooLarge?: true;
  /** The request as far as it was read, for its names in the log. */
  readonly json?: unknown;
}

/** `{"request": <CertificateSigningRequest>, "context"?: {"clusterApi"?: …}}`, and nothing else. */
function decodeCall(bytes: Uint8Array): Result<Call, CallProblem> {
  const body = decodeBody(bytes, maxCallBytes);
  if (!body.ok) return body;
  if (!isObject(body.value)) return failure({ message: 'body is not a JSON object' });
  const { request, context, ...others } = body.value;
  if (Object.keys(others).length > 0) return failure({ message: 'body has keys other than request and context' });
  const decoded = decodeRequestObject(request);
  if (!decoded.ok)
    return failure({ ...decoded.problem, message: `request: ${decoded.problem.message}`, json: request });
  const machineContext = decodeContext(context);
  if (!machineContext.ok) return failure({ message: machineContext.problem, json: request });
  return success({ json: request, object: decoded.value, context: machineContext.value });
}

/** The parts of an outcome that may be logged. */
function logFieldsOf(outcome: AttestOutcome): Partial<CallLogEntry> {
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
