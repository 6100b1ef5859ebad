/** After each try: logs, metrics, Events, and when the request is queued again. */
import { fullJitter } from './runtime/clock.ts';
import type { Backoff } from './runtime/clock.ts';
import type { EventSink } from './request/events.ts';
import type { RelayMetrics } from './observe/metrics.ts';
import type { RelayPorts } from './settings/options.ts';
import type { RequestQueue, Taken } from './schedule/queue.ts';
import { causes } from './request/result.ts';
import type { End, RetryCause, WorkResult } from './request/result.ts';
import { approvedAt } from './objects/status.ts';

/**
 * 100 ms on average after the first try, 15 s from the eighth on. Shorter than the in-tree signer's 1 000 s, since a kubelet
 * waits 15 minutes for its certificate and an outage may end any minute.
 */
const requestBackoff: Backoff = { baseMilliseconds: 200, capMilliseconds: 30_000 };
/** Between two access reviews of one request: the backoff of the in-tree approver's workqueue. */
const reviewBackoff: Backoff = { baseMilliseconds: 200, capMilliseconds: 1_000_000 };
/** Each try moves megabytes, and fails until etcd's limit or the object changes. The watch reports a changed object. */
const tooLargeBackoff: Backoff = { leastMilliseconds: 120_000, baseMilliseconds: 300_000, capMilliseconds: 3_600_000 };
/** Tries before an Event tells the requester about the delay: about a minute. */
const triesBeforeEvent = 10;
/** Tries before a lasting failure is an alarm: about 25 s. An API server reads its roles within seconds. */
const triesBeforeAlarm = 8;

/** The part of the session that the end of a try changes. */
export interface EndingSession {
  readonly queue: RequestQueue;
  readonly events: EventSink;
}
type EndingPorts = Pick<RelayPorts, 'clock' | 'random' | 'log'> & { readonly metrics: RelayMetrics };

const answered: ReadonlySet<End> = new Set(['issued', 'refused', 'approved', 'denied', 'ignored', 'invalid']);

/** Whether the endpoint answered. Only its answers count as successes for the limiter. */
export function wasAnswered({ end, decision }: WorkResult & { kind: 'done' }): boolean {
  return answered.has(end) || decision !== undefined;
}

/** True for answers that the API server never removes. An approval is not final: the watch delivers that request again. */
export function isFinal(end: End): boolean {
  return end === 'issued' || end === 'refused' || end === 'denied' || end === 'gone';
}

export function complete(
  { key }: Taken,
  { end, object, violations, decision }: WorkResult & { kind: 'done' },
  { events }: EndingSession,
  { clock, log, metrics }: EndingPorts,
): void {
  metrics.finished(key.signerName, end);
  const approved = end === 'issued' && object !== undefined ? approvedAt(object) : undefined;
  if (approved !== undefined) metrics.issuedAfter(key.signerName, Math.max(0, clock.now() - approved) / 1_000);
  if (decision !== undefined) {
    metrics.decided(key.signerName, decision);
    log.info({ ...key, decision: decision.kind, code: decision.code }, 'request decided');
    if (decision.code !== 'AutoApproved') events.denied(key, decision);
  } else if (end === 'refused' && violations !== undefined) {
    log.info({ ...key, codes: violations.map(({ code }) => code) }, 'request refused');
    events.refused(key, violations);
  } else if (end === 'invalid' || end === 'malformed') log.error({ ...key, end }, 'request cannot be read');
  else log.info({ ...key, end }, 'request done');
}

export function requeue(
  { key, failures }: Taken,
  { cause, detail, afterSeconds = 0 }: WorkResult & { kind: 'retry' },
  { queue, events }: EndingSession,
  { random, log, metrics }: EndingPorts,
): void {
  // Retry-After is added to the jitter, since it is the same for all clients.
  const retryAfter = Math.min(afterSeconds * 1_000, requestBackoff.capMilliseconds);
  const delay = retryAfter + fullJitter(failures, backoffOf(cause), random);
  metrics.retried(cause);
  const fields = { ...key, cause, detail: detail.slice(0, 300), failures: failures + 1, delay: Math.round(delay) };
  if (cause === 'NotPermitted') log.info(fields, 'requester not permitted: reviewed again later');
  else if (needsOperator(cause, failures)) {
    metrics.alarmed(cause);
    log.error(fields, 'request tried again: needs attention');
  } else log.warn(fields, 'request tried again');
  if (failures + 1 === (cause === 'ObjectTooLarge' ? 1 : triesBeforeEvent)) events.delayed(key, cause);
  queue.retry(key, delay);
}

function needsOperator(cause: RetryCause, failures: number): boolean {
  const { alarm } = causes[cause];
  return alarm === 'first' || (alarm === 'lasting' && failures >= triesBeforeAlarm);
}

function backoffOf(cause: RetryCause): Backoff {
  if (cause === 'NotPermitted') return reviewBackoff;
  return cause === 'ObjectTooLarge' ? tooLargeBackoff : requestBackoff;
}
