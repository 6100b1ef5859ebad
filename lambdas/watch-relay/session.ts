/**
 * From taking up the work to laying it down: what comes by is queued, as many as the endpoint bears are worked on at
 * once, and each ends or comes back.
 */
import { nodesGroup, nodeUserPrefix } from '../../core/in-tree-rules.ts';
import type { RequestObject } from '../../core/kubernetes.ts';
import type { JsonObject } from '../../core/ports.ts';
import { decides } from './approval.ts';
import { createAskedOnce } from './asked-once.ts';
import type { AskedOnce } from './asked-once.ts';
import { causes, createAttention } from './attention.ts';
import { judge, nameOf, uidOf } from './candidate.ts';
import { deadline } from './clock.ts';
import type { Clock } from './clock.ts';
import { comeBack, finish, isFinal, wasAnswered } from './ending.ts';
import type { Endings } from './ending.ts';
import { createEventSink } from './events.ts';
import type { Health } from './health.ts';
import { createConcurrencyLimiter } from './limiter.ts';
import type { ConcurrencyLimiter } from './limiter.ts';
import type { RelayMetrics } from './metrics.ts';
import { createObjectCache } from './object-cache.ts';
import type { ObjectCache } from './object-cache.ts';
import type { RelayOptions, RelayPorts } from './options.ts';
import { createRequestQueue, sumOf } from './queue.ts';
import type { Arrival, Taken } from './queue.ts';
import { reflect } from './reflector.ts';
import type { WorkResult } from './result.ts';
import { steps } from './turns.ts';
import type { Step } from './turns.ts';
import { relayRequest } from './work.ts';

/** About 1 500 ordinary requests. */
const heldBytes = 8 * 1_048_576;
/** Of all that may be under way: what is not signing may have as much, or calls that hang would let nothing be signed. */
const undecidedShare = 3 / 4;
/** About 10 MB, and more pending requests than any cluster has had. */
const askedUids = 100_000;

interface Session extends Endings {
  readonly held: ObjectCache;
  /** Each step asks somebody else, or has him ask somebody else: what one bears says nothing of the others. */
  readonly limiters: Readonly<Record<Step, ConcurrencyLimiter>>;
  readonly asked: AskedOnce;
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
  const underWay: Record<Step, number> = { sign: 0, prove: 0, decide: 0 };
  const limiter = (): ConcurrencyLimiter => createConcurrencyLimiter(options.concurrency, clock, random, pump);
  const session: Session = {
    queue: createRequestQueue(clock, options.inFlightPerRequester, pump),
    held: createObjectCache(heldBytes),
    limiters: { sign: limiter(), prove: limiter(), decide: limiter() },
    events: createEventSink(ports.api, clock, options.identity, calls.signal, metrics.event),
    attention: createAttention(clock),
    asked: createAskedOnce(askedUids),
  };
  const { queue, held, limiters, events } = session;
  const unwatch = metrics.watchGauges(() => ({
    waiting: queue.counts(),
    longestLine: queue.longestLine(),
    inFlight: running.size,
    concurrencyLimit: { sign: limiters.sign.limit(), prove: limiters.prove.limit(), decide: limiters.decide.limit() },
    heldBytes: held.bytes(),
  }));

  function admits(step: Step): boolean {
    if (running.size >= options.concurrency) return false;
    const undecided = underWay.prove + underWay.decide;
    if (step !== 'sign' && undecided >= Math.ceil(options.concurrency * undecidedShare)) return false;
    // Asked only where there is something to do: a limiter that is asked takes it that there is.
    return queue.ready(step) && limiters[step].admits(underWay[step]);
  }

  /** Starts as many as may run. Called whenever a request becomes ready, a worker free, or a pause over. */
  function pump(): void {
    for (;;) {
      const taken = queue.take(steps.filter(admits));
      if (taken === undefined) return;
      underWay[taken.step] += 1;
      const task: Promise<void> = attend(taken, session, options, ports, calls.signal).finally(() => {
        underWay[taken.step] -= 1;
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
        seen: (object, bytes) => take(signerName, object, bytes, session, options, ports),
        deleted: (object) => drop(object, session),
        synced: () => {
          health.synced(signerName);
          metrics.listed(signerName);
          log.info({ signerName, ...sumOf(queue.counts()) }, 'listed');
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
  // Whoever stands by has nothing under way and holds nothing: neither shown, nor kept for showing it.
  for (const step of steps) limiters[step].close();
  unwatch();
}

/** An object came by. Only one with something to do is remembered: key in the queue, object while there is room. */
function take(
  signerName: string,
  object: JsonObject,
  bytes: number | undefined,
  session: Session,
  { policies }: RelayOptions,
  { log, metrics }: SessionPorts,
): void {
  const { queue, held, events, asked } = session;
  const judgement = judge(object);
  // No approval is ever taken back: a pending state that comes after it is an old one, told again. Taken up, it would be
  // left to whoever decides, and the request with it.
  if (judgement.kind === 'pending' && queue.stepOf(judgement.object.uid) === 'sign') return;
  const undecided =
    judgement.kind === 'pending' && decides(policies.get(signerName)) && !asked.has(judgement.object.uid);
  if (judgement.kind === 'candidate' || undecided) {
    const { uid, name } = judgement.object;
    const key = { uid, name, signerName };
    held.put(uid, object, bytes ?? JSON.stringify(object).length);
    const proves = policies.get(signerName)?.attestation !== undefined;
    const step = judgement.kind === 'candidate' ? 'sign' : proves ? 'prove' : 'decide';
    const added = queue.add(key, arrivalOf(judgement.object, step));
    if (added === 'crowded') {
      log.warn({ ...key, requester: judgement.object.username }, 'many requests of one requester wait');
      events.crowded(key);
    }
    return;
  }
  if (judgement.kind === 'pending') {
    held.drop(judgement.object.uid);
    return;
  }
  drop(object, session);
  if (judgement.kind === 'malformed') {
    metrics.malformed(signerName);
    log.error({ signerName, name: nameOf(object), uid: uidOf(object), detail: judgement.message }, 'object malformed');
  }
}

/** The API server authenticated the user: nobody but a node of the cluster is called so and in that group. */
function arrivalOf({ username, groups }: RequestObject, step: Step): Arrival {
  const node = username.startsWith(nodeUserPrefix) && groups.includes(nodesGroup);
  return { requester: username, line: node ? 'renewal' : 'other', step };
}

function drop(object: JsonObject, { queue, held, asked }: Session): void {
  const uid = uidOf(object);
  if (uid === undefined) return;
  held.drop(uid);
  asked.drop(uid);
  queue.forget(uid);
}

/** One try of one request, and what follows from how it went. Never rejects. */
async function attend(
  taken: Taken,
  session: Session,
  { policies }: RelayOptions,
  ports: SessionPorts,
  signal: AbortSignal,
): Promise<void> {
  const { clock, log } = ports;
  const { key } = taken;
  const begun = clock.monotonic();
  let result: WorkResult;
  try {
    const work = { api: ports.api, signer: ports.endpoint, clock, policies, asked: session.asked };
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
    if (wasAnswered(result)) session.limiters[taken.step].succeeded();
    finish(taken, result, session, ports);
  } else if (signal.aborted) log.info({ ...key }, 'request broken off');
  else {
    const limiter = session.limiters[taken.step];
    const { others } = causes[result.cause];
    if (others === 'crowded') limiter.congested(begun, session.queue.waiting(taken.step));
    else if (others === 'failing') limiter.failed(begun);
    comeBack(taken, result, session, ports);
  }
}

async function within(milliseconds: number, clock: Clock, lost: AbortSignal, work: Promise<unknown>): Promise<void> {
  const { signal, cancel } = deadline(clock, milliseconds, lost);
  const late = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
  await Promise.race([work, late]);
  cancel();
}
