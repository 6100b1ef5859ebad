/**
 * What the sign and attest functions said (docs/signing-api.md). Only an answer that is ours beyond doubt can end a
 * request or decide about it: the header, the status that belongs to it, and a body that keeps its form. Everything else
 * is somebody else talking.
 */
import { isRefusalCode, violation } from '../../core/outcome/outcome.ts';
import type { BusyWhy, IgnoredWhy, Violation } from '../../core/outcome/outcome.ts';
import type { JsonObject } from '../../core/ports/kubernetes-api.ts';
import type { AttestAnswer, AttestVerdict, NoAnswer, SignAnswer } from '../../core/ports/signing-endpoint.ts';
import { isObject } from '../../core/encoding/json-object.ts';
import type { WholeAnswer } from '../http/exchange.ts';

/** Of ours and of API Gateway alike: no more now, or not to you. */
function withoutAnswer({ status, headers, body }: WholeAnswer): NoAnswer | undefined {
  if (status === 429 || status === 503) {
    const json = parse(body);
    return { kind: 'busy', ...(headers[outcomeHeader] === 'busy' ? busyWhy(json) : {}), ...retryAfter(json) };
  }
  if (status === 401 || status === 403)
    return {
      kind: 'unauthorized',
      message: headers[outcomeHeader] === 'forbidden' ? `HTTP ${status}: ${unknownCaller}` : `HTTP ${status}`,
    };
  return undefined;
}

export function interpretSign(answer: WholeAnswer): SignAnswer {
  const { status, headers, body } = answer;
  const none = withoutAnswer(answer);
  if (none !== undefined) return none;
  const outcome = headers[outcomeHeader];
  const unexpected = (message: string): SignAnswer => ({ kind: 'unexpected', status, message });
  if (outcome === undefined) return unexpected(notOurs);
  const json = parse(body);
  if (outcome === 'issued' && status === 200) {
    const certificatePem = certificateIn(json);
    return certificatePem === undefined ? unexpected('no certificate in it') : { kind: 'issued', certificatePem };
  }
  if (outcome === 'refused' && (status === 422 || status === 413)) return refusalIn(status, json);
  if (outcome === 'ignored' && status === 409) return { kind: 'ignored' };
  if (outcome === 'invalid' && status === 400) return { kind: 'invalid' };
  return unexpected(mismatch);
}

/** Without the header `verdict` whatever looks like a decision is none. */
export function interpretAttest(answer: WholeAnswer): AttestAnswer {
  const { status, headers, body } = answer;
  const none = withoutAnswer(answer);
  if (none !== undefined) return none;
  const outcome = headers[outcomeHeader];
  const unexpected = (message: string): AttestAnswer => ({ kind: 'unexpected', status, message });
  if (outcome === undefined) return unexpected(notOurs);
  const json = parse(body);
  if (outcome === 'verdict' && status === 200) {
    const verdict = verdictIn(json);
    return verdict === undefined ? unexpected('a verdict that is not one we know') : { kind: 'verdict', verdict };
  }
  if (outcome === 'refused' && (status === 422 || status === 413)) return refusalIn(status, json);
  if (outcome === 'invalid' && status === 400) return { kind: 'invalid' };
  return unexpected(mismatch);
}

const outcomeHeader = 'x-countersign-outcome';
/** The function itself said no, not the front door before it. */
const unknownCaller = 'the function knows neither this role nor this service account (access in countersign.yaml)';
const notOurs = 'not an answer of countersign';
const mismatch = 'outcome and status do not go together';

function refusalIn(
  status: number,
  json: JsonObject | undefined,
): (SignAnswer & AttestAnswer) & { kind: 'refused' | 'unexpected' } {
  const [first, ...more] = violationsIn(json);
  if (first === undefined) return { kind: 'unexpected', status, message: 'a refusal without reasons we know' };
  return { kind: 'refused', violations: [first, ...more] };
}

/** All or nothing: a decision or a reason we do not know may mean "wait" in the newer version that wrote it. */
function verdictIn(json: JsonObject | undefined): AttestVerdict | undefined {
  if (json === undefined) return undefined;
  const { decision, reason, message } = json;
  if (decision === 'ignore') return isIgnoredWhy(reason) ? { decision, reason } : undefined;
  const annotations = annotationsIn(json['annotations']);
  if (annotations === undefined || typeof message !== 'string') return undefined;
  if (decision === 'approve') return { decision, message, annotations };
  if (decision !== 'deny' && decision !== 'challenge') return undefined;
  return isRefusalCode(reason) ? { decision, reason, message, annotations } : undefined;
}

/** Ours by prefix, and the one Cluster API's proposal names. Others mean something to other controllers. */
const annotationName = /^(countersign\.dev\/[a-z0-9-]{1,63}|cluster-x-k8s-io\/tpm-endorsement-key)$/;
/** The API server takes 256 KiB of all annotations together. */
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

function isIgnoredWhy(reason: unknown): reason is IgnoredWhy {
  return typeof reason === 'string' && Object.hasOwn(ignoredWhys, reason);
}

/** All or none: a reason we do not know may mean "wait" in the newer version that wrote it. */
function violationsIn(json: JsonObject | undefined): readonly Violation[] {
  if (json?.['kind'] !== 'Status' || json['status'] !== 'Failure') return [];
  const violations: Violation[] = [];
  for (const cause of causesIn(json)) {
    if (!isObject(cause)) return [];
    const { reason, message } = cause;
    if (!isRefusalCode(reason) || typeof message !== 'string') return [];
    violations.push(violation(reason, message));
  }
  return violations;
}

function causesIn(json: JsonObject | undefined): readonly unknown[] {
  const details = json?.['details'];
  const causes = isObject(details) ? details['causes'] : undefined;
  return Array.isArray(causes) ? causes : [];
}

function certificateIn(json: JsonObject | undefined): string | undefined {
  const status = json?.['status'];
  const encoded = isObject(status) ? status['certificate'] : undefined;
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

/** Of an older or newer version that gives no reason we know, nothing. */
function busyWhy(json: JsonObject | undefined): { why?: BusyWhy } {
  const [cause] = causesIn(json);
  const reason = isObject(cause) ? cause['reason'] : undefined;
  return isBusyWhy(reason) ? { why: reason } : {};
}

function isBusyWhy(reason: unknown): reason is BusyWhy {
  return typeof reason === 'string' && Object.hasOwn(busyWhys, reason);
}

function retryAfter(json: JsonObject | undefined): { retryAfterSeconds?: number } {
  const seconds = json?.['retryAfterSeconds'];
  return typeof seconds === 'number' && seconds >= 0 && Number.isFinite(seconds) ? { retryAfterSeconds: seconds } : {};
}

function parse(body: Buffer): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(body.toString('utf8'));
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
