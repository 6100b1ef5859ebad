/**
 * From taking up the work to laying it down: what comes by is queued, as many as the endpoint bears are worked on at
 * once, and each ends or comes back.
 */
import type { JsonObject } from '../../core/ports.ts';
import { causes, createAttention } from './attention.ts';
import type { Attention } from './attention.ts';
import { judge, nameOf, uidOf } from './candidate.ts';
import { deadline, fullJitter } from './clock.ts';
import type { Backoff, Clock } from './clock.ts';
import { createEventSink } from './events.ts';
import type { EventSink } from './events.ts';
import type { Health } from './health.ts';
import { createConcurrencyLimiter } from './limiter.ts';
import type { ConcurrencyLimiter } from './limiter.ts';
import type { RelayMetrics } from './metrics.ts';
import { createObjectCache } from './object-cache.ts';
import type { ObjectCache } from './object-cache.ts';
import type { RelayOptions, RelayPorts } from './options.ts';
import { createRequestQueue } from './queue.ts';
import type { RequestKey, RequestQueue } from './queue.ts';
import { reflect } from './reflector.ts';
import { approvedAt } from './status.ts';
import { relayRequest } from './work.ts';
import type { End, WorkResult } from './work.ts';

/**
 * Between two tries of one request: 100 ms on average after the first, 15 s from the eighth on. Shorter than the
 * in-tree signer's 1 000 s, since a kubelet waits 15 minutes for its certificate and an outage may end any minute.
 */
export const requestBackoff: Backoff = { baseMilliseconds: 200, capMilliseconds: 30_000 };
/** The owner of a request hears of a delay after that many tries: about a minute. */
const triesBeforeEvent = 10;
/** About 1 500 ordinary requests. */
const heldBytes = 8 * 1_048_576;

interface Session {
  readonly queue: RequestQueue;
  readonly held: ObjectCache;
  readonly limiter: ConcurrencyLimiter;
  readonly events: EventSink;
  readonly attention: Attention;
}
type SessionPorts = RelayPorts & { readonly health: Health; readonly metrics: RelayMetrics };

/**
 * `stop`: take nothing more, finish what is under way within the grace.
 * `lost`: another replica leads, so break off at once.
 */
export async function runSession(
  options: RelayOptions,
  ports: SessionPorts,
  stop: AbortSignal,
  lost: AbortSignal,
): Promise<void> {
  const { clock, random, log, metrics, health } = ports;
  const calls = new AbortController(); // ends every call still under way
  const running = new Set<Promise<void>>();
  const session: Session = {
    queue: createRequestQueue(clock, pump),
    held: createObjectCache(heldBytes),
    limiter: createConcurrencyLimiter(options.concurrency, clock, random, pump),
    events: createEventSink(ports.api, clock, options.identity, calls.signal, metrics.event),
    attention: createAttention(clock),
  };
  const { queue, held, limiter, events } = session;
  metrics.watchGauges(() => ({
    ...queue.counts(),
    inFlight: running.size,
    concurrencyLimit: limiter.limit(),
    heldBytes: held.bytes(),
  }));

  /** Starts as many as may run. Called whenever a request becomes ready, a worker free, or a pause over. */
  function pump(): void {
    while (limiter.admits(running.size)) {
      const taken = queue.take();
      if (taken === undefined) return;
      const task: Promise<void> = attend(taken.key, taken.failures, session, ports, calls.signal).finally(() => {
        running.delete(task);
        pump();
      });
      running.add(task);
    }
  }

  const watching = AbortSignal.any([stop, lost]);
  const reflectors = options.signerNames.map((signerName) =>
    reflect(
      signerName,
      {
        seen: (object, bytes) => take(signerName, object, bytes, session, ports),
        deleted: (object) => drop(object, session),
        synced: () => {
          health.synced(signerName);
          metrics.listed(signerName);
          log.info({ signerName, ...queue.counts() }, 'listed');
        },
        restarted: (why) => metrics.restarted(signerName, why),
        unreadable: (detail) => {
          metrics.malformed(signerName);
          log.error({ signerName, detail }, 'watch event unreadable');
        },
      },
      ports,
      watching,
    ),
  );

  await Promise.all(reflectors); // they end with `stop` or `lost` only
  health.role('draining');
  queue.close();
  if (!lost.aborted) {
    log.info({ inFlight: running.size }, 'draining');
    const finished = Promise.all(running).then(() => events.idle());
    await within(options.graceMilliseconds, clock, lost, finished);
  }
  calls.abort(new Error('the relay stops'));
  await Promise.all(running);
}

/** An object came by. Only a candidate is remembered: key in the queue, object while there is room. */
function take(
  signerName: string,
  object: JsonObject,
  bytes: number | undefined,
  { queue, held }: Session,
  { log, metrics }: SessionPorts,
): void {
  const judgement = judge(object);
  if (judgement.kind === 'candidate') {
    const { uid, name } = judgement.object;
    held.put(uid, object, bytes ?? JSON.stringify(object).length);
    queue.add({ uid, name, signerName });
    return;
  }
  const uid = uidOf(object);
  if (uid !== undefined) {
    held.drop(uid);
    queue.forget(uid);
  }
  if (judgement.kind === 'malformed') {
    metrics.malformed(signerName);
    log.error({ signerName, name: nameOf(object), uid, detail: judgement.message }, 'object malformed');
  }
}

function drop(object: JsonObject, { queue, held }: Session): void {
  const uid = uidOf(object);
  if (uid === undefined) return;
  held.drop(uid);
  queue.forget(uid);
}

/** One try of one request, and what follows from how it went. Never rejects. */
async function attend(
  key: RequestKey,
  failures: number,
  session: Session,
  ports: SessionPorts,
  signal: AbortSignal,
): Promise<void> {
  const { clock, log } = ports;
  const begun = clock.monotonic();
  let result: WorkResult;
  try {
    const work = { api: ports.api, signer: ports.endpoint, clock };
    result = await relayRequest(key, session.held.take(key.uid), work, signal);
  } catch (error) {
    const detail = error instanceof Error ? (error.stack ?? error.message) : String(error);
    result = { kind: 'retry', cause: 'Internal', detail };
  }
  if (result.kind === 'done') {
    if (isFinal(result.end)) {
      // Whatever came by meanwhile was on its way when we wrote: asking for it again would ask for nothing.
      session.held.drop(key.uid);
      session.queue.forget(key.uid);
    }
    session.queue.done(key);
    // Only what the endpoint answered says something about the endpoint.
    if (answered.has(result.end)) session.limiter.succeeded();
    finish(key, result, session, ports);
  } else if (signal.aborted) log.info({ ...key }, 'request broken off');
  else {
    if (causes[result.cause].congestion) session.limiter.congested(begun);
    comeBack(key, failures, result, session, ports);
  }
}

const answered: ReadonlySet<End> = new Set(['issued', 'refused', 'ignored', 'invalid']);

/** No change of the object makes these undone: the API server keeps certificates and Failed conditions for good. */
function isFinal(end: End): boolean {
  return end === 'issued' || end === 'refused' || end === 'gone';
}

function finish(
  key: RequestKey,
  { end, object, violations }: WorkResult & { kind: 'done' },
  { events, attention }: Session,
  { clock, log, metrics }: SessionPorts,
): void {
  metrics.finished(key.signerName, end);
  if (end === 'issued' || end === 'refused') attention.allowed(key.signerName);
  const approved = end === 'issued' && object !== undefined ? approvedAt(object) : undefined;
  if (approved !== undefined) metrics.issuedAfter(key.signerName, Math.max(0, clock.now() - approved) / 1_000);
  if (end === 'refused' && violations !== undefined) {
    log.info({ ...key, codes: violations.map(({ code }) => code) }, 'request refused');
    events.refused(key, violations);
  } else if (end === 'invalid' || end === 'malformed') log.error({ ...key, end }, 'request cannot be read');
  else log.info({ ...key, end }, 'request done');
}

function comeBack(
  key: RequestKey,
  failures: number,
  { cause, detail, afterSeconds = 0 }: WorkResult & { kind: 'retry' },
  { queue, events, attention }: Session,
  { random, log, metrics }: SessionPorts,
): void {
  // What the far side asks for comes on top of the jitter, not instead: it tells everybody the same.
  const asked = Math.min(afterSeconds * 1_000, requestBackoff.capMilliseconds);
  const delay = asked + fullJitter(failures, requestBackoff, random);
  metrics.retried(cause);
  const fields = { ...key, cause, detail: detail.slice(0, 300), failures: failures + 1, delay: Math.round(delay) };
  if (attention.needed(key.signerName, cause)) {
    metrics.alarmed(cause);
    log.error(fields, 'request tried again: needs attention');
  } else log.warn(fields, 'request tried again');
  if (failures + 1 === triesBeforeEvent) events.delayed(key, cause);
  queue.retry(key, delay);
}

async function within(milliseconds: number, clock: Clock, lost: AbortSignal, work: Promise<unknown>): Promise<void> {
  const { signal, cancel } = deadline(clock, milliseconds, lost);
  const late = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
  await Promise.race([work, late]);
  cancel();
}
