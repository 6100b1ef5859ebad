/**
 * Decodes the answers of the sign and attest functions (docs/signing-api.md). Only an answer that is certainly theirs can end
 * a request or decide about it: it has their header, the status that belongs to it, and a body of their form. Anything else
 * may come from another server.
 */
import { isRefusalCode, violation } from '../../core/outcome/outcome.ts';
import type { BusyWhy, IgnoredWhy, Violation } from '../../core/outcome/outcome.ts';
import type { JsonObject } from '../../core/ports/kubernetes-api.ts';
import type { AttestAnswer, AttestVerdict, LookAnswer, SignAnswer } from '../../core/ports/signing-endpoint.ts';
import { isObject, objectOf, parsedObject } from '../../core/encoding/json-object.ts';
import type { WholeAnswer } from '../http/exchange.ts';

export function interpretSign(answer: WholeAnswer): SignAnswer {
  return interpret<SignAnswer>(answer, (outcome, status, json) => {
    if (outcome === 'ignored' && status === 409) return { kind: 'ignored' };
    if (outcome !== 'issued' || status !== 200) return mismatch;
    const certificatePem = certificateIn(json);
    return certificatePem === undefined ? 'no certificate in it' : { kind: 'issued', certificatePem };
  });
}

/** Only an answer with the outcome `verdict` is a decision. */
export function interpretAttest(answer: WholeAnswer): AttestAnswer {
  return interpret<AttestAnswer>(answer, (outcome, status, json) => {
    if (outcome !== 'verdict' || status !== 200) return mismatch;
    const verdict = verdictIn(json);
    return verdict === undefined ? 'a verdict that is not one we know' : { kind: 'verdict', verdict };
  });
}

/** The function answers 202 whatever it found. */
export function interpretLook(answer: WholeAnswer): LookAnswer {
  if (answer.status === 202) return { kind: 'accepted' };
  const other = interpret<never>(answer, () => mismatch);
  // Another version of the function: this call has neither of the two outcomes.
  if (other.kind === 'refused' || other.kind === 'invalid')
    return { kind: 'unexpected', status: answer.status, message: other.kind };
  return other;
}

const mismatch = 'outcome and status do not go together';

/** `decodeOwn` decodes the answers of one function; a string says what is unexpected. */
function interpret<T>(
  { status, headers, body }: WholeAnswer,
  decodeOwn: (outcome: unknown, status: number, json: JsonObject) => T | string,
): T | (SignAnswer & AttestAnswer) {
  const outcome = headers['x-countersign-outcome'];
  const json = parsedObject(body.toString('utf8')) ?? {};
  // API Gateway answers with these four statuses too.
  if (status === 429 || status === 503)
    return { kind: 'busy', ...(outcome === 'busy' ? busyWhy(json) : {}), ...retryAfter(json) };
  if (status === 401 || status === 403)
    return { kind: 'unauthorized', message: `HTTP ${status}${outcome === 'forbidden' ? `: ${unknownCaller}` : ''}` };
  if (outcome === undefined && gatewayStatuses.has(status) && gatewayMessage(json))
    return { kind: 'functionFailed', status };
  const unexpected = (message: string) => ({ kind: 'unexpected', status, message }) as const;
  if (outcome === undefined) return unexpected('not an answer of countersign');
  if (outcome === 'invalid' && status === 400) return { kind: 'invalid' };
  if (outcome === 'refused' && (status === 422 || status === 413)) {
    const [first, ...more] = violationsIn(json);
    if (first === undefined) return unexpected('a refusal without reasons we know');
    return { kind: 'refused', violations: [first, ...more] };
  }
  const found = decodeOwn(outcome, status, json);
  return typeof found === 'string' ? unexpected(found) : found;
}

/**
 * API Gateway answers 500 if Lambda does not start the function, for instance because it throttles, and 502 or 504 if the
 * function ends without an answer. Function URLs answer 502 and 504. The two cannot be told apart by the status.
 * https://docs.aws.amazon.com/lambda/latest/dg/services-apigateway-errors.html
 */
const gatewayStatuses: ReadonlySet<number> = new Set([500, 502, 504]);

/** The body of API Gateway, or of a function URL. */
function gatewayMessage({ message, Message: ofUrl }: JsonObject): boolean {
  return typeof message === 'string' || typeof ofUrl === 'string';
}

/** The front door admitted the caller, and the function refused it. */
const unknownCaller = 'the function knows neither this role nor this service account (access in countersign.yaml)';

/** Undefined if the decision or reason is unknown: a newer version may have sent it, and it may mean "wait" there. */
function verdictIn(json: JsonObject): AttestVerdict | undefined {
  const { decision, reason, message } = json;
  if (decision === 'ignore') return isKey(ignoredWhys, reason) ? { decision, reason } : undefined;
  const annotations = annotationsIn(json['annotations']);
  if (annotations === undefined || typeof message !== 'string') return undefined;
  if (decision === 'approve') return { decision, message, annotations };
  if (decision !== 'deny' && decision !== 'challenge') return undefined;
  return isRefusalCode(reason) ? { decision, reason, message, annotations } : undefined;
}

/** Countersign's annotations, and one that Cluster API proposes. The relay writes no others: other controllers act on them. */
const annotationName = /^(countersign\.dev\/[a-z0-9-]{1,63}|cluster-x-k8s-io\/tpm-endorsement-key)$/;
/** The API server accepts 256 KiB for all annotations of an object. */
const maxAnnotationsLength = 65_536;

function annotationsIn(value: unknown): Readonly<Record<string, string>> | undefined {
  if (!isObject(value)) return value === undefined ? {} : undefined;
  const annotations: Record<string, string> = {};
  let length = 0;
  for (const [name, text] of Object.entries(value)) {
    if (!annotationName.test(name) || typeof text !== 'string') return undefined;
    length += name.length + text.length;
    annotations[name] = text;
  }
  return length <= maxAnnotationsLength ? annotations : undefined;
}

const ignoredWhys: Readonly<Record<IgnoredWhy, true>> = {
  UnknownSigner: true,
  NotApproved: true,
  Denied: true,
  Failed: true,
  AlreadyIssued: true,
};

/** Empty if one reason is unknown: a newer version may have sent it, and it may mean "wait" there. */
function violationsIn(json: JsonObject): readonly Violation[] {
  if (json['kind'] !== 'Status' || json['status'] !== 'Failure') return [];
  const violations: Violation[] = [];
  for (const cause of causesIn(json)) {
    if (!isObject(cause)) return [];
    const { reason, message } = cause;
    if (!isRefusalCode(reason) || typeof message !== 'string') return [];
    violations.push(violation(reason, message));
  }
  return violations;
}

function causesIn(json: JsonObject): readonly unknown[] {
  const { causes } = objectOf(json['details']);
  return Array.isArray(causes) ? causes : [];
}

function certificateIn(json: JsonObject): string | undefined {
  const encoded = objectOf(json['status'])['certificate'];
  if (typeof encoded !== 'string' || encoded === '') return undefined;
  const bytes = Buffer.from(encoded, 'base64');
  return bytes.toString('base64') === encoded ? bytes.toString('utf8') : undefined;
}

const busyWhys: Readonly<Record<BusyWhy, true>> = {
  InProgress: true,
  SecondLook: true,
  Limited: true,
  Throttled: true,
  Unavailable: true,
  Internal: true,
};

function isKey<Key extends string>(keys: Readonly<Record<Key, true>>, value: unknown): value is Key {
  return typeof value === 'string' && Object.hasOwn(keys, value);
}

/** Empty if another version gives a reason that is unknown here. */
function busyWhy(json: JsonObject): { why?: BusyWhy } {
  const { reason } = objectOf(causesIn(json)[0]);
  return isKey(busyWhys, reason) ? { why: reason } : {};
}

function retryAfter({ retryAfterSeconds: seconds }: JsonObject): { retryAfterSeconds?: number } {
  return typeof seconds === 'number' && seconds >= 0 && Number.isFinite(seconds) ? { retryAfterSeconds: seconds } : {};
}
