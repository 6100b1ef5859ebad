/** The work of the leading replica: queue what the reflectors see, start as many tries as the limiters admit, drain. */
import type { ListWatch, RequestApi } from '../../core/ports/kubernetes-api.ts';
import { forgetArrival, reportOversized, takeArrival } from './arrivals.ts';
import type { ArrivalSession } from './arrivals.ts';
import { createAskedOnce } from './request/asked-once.ts';
import { sleep } from './runtime/clock.ts';
import { complete, isFinal, requeue, wasAnswered } from './ending.ts';
import type { EndingSession } from './ending.ts';
import { createEventSink } from './request/events.ts';
import type { Health } from './observe/health.ts';
import { createConcurrencyLimiter } from './schedule/concurrency-limiter.ts';
import type { ConcurrencyLimiter } from './schedule/concurrency-limiter.ts';
import { createLineLimit } from './runtime/log.ts';
import type { RelayMetrics } from './observe/metrics.ts';
import { createObjectCache } from './objects/object-cache.ts';
import type { RelayOptions, RelayPorts } from './settings/options.ts';
import { createRequestQueue, sumOf } from './schedule/queue.ts';
import type { Taken } from './schedule/queue.ts';
import type { MachineLookup } from './cluster-api/lookup.ts';
import { reflect } from './cluster/reflector.ts';
import { causes } from './request/result.ts';
import type { WorkResult } from './request/result.ts';
import { endpointSteps, byStep, steps } from './schedule/fair-queue.ts';
import type { EndpointStep, Step } from './schedule/fair-queue.ts';
import { relayRequest } from './request/work.ts';

/** Capacity of the object cache: about 1 500 ordinary requests. */
const cacheBytes = 8 * 1_048_576;
/** The share of `concurrency` that steps other than sign may use, so that attest calls that hang do not stop signing. */
const pendingShare = 3 / 4;
/**
 * Oversized requests are refused one at a time with a pause between them. Each moves up to 3 MB to the API server and
 * back, and costs the API server 100 ms of CPU time.
 */
const refusalPauseMilliseconds = 1_000;
/** In UIDs, about 10 MB: more than the pending requests of any cluster. */
const askedCapacity = 100_000;

interface Session extends EndingSession, ArrivalSession {
  /** Each step depends on a different AWS quota, so each has its own concurrency limit. */
  readonly limiters: Readonly<Record<EndpointStep, ConcurrencyLimiter>>;
}
type SessionPorts = RelayPorts & {
  readonly health: Health;
  readonly metrics: RelayMetrics;
  readonly machines?: MachineLookup;
};

/**
 * `stop`: start nothing more, and finish requests in flight within the grace period.
 * `lost`: another replica leads, so abort at once.
 */
export async function runSession(
  options: RelayOptions,
  ports: SessionPorts,
  stop: AbortSignal,
  lost: AbortSignal,
): Promise<void> {
  const { clock, random, log, metrics, health } = ports;
  const calls = new AbortController(); // aborts all calls in flight
  const running = new Set<Promise<void>>();
  const inFlight = byStep(() => 0);
  let cancelRefusalPause: (() => void) | undefined;
  const limiter = (): ConcurrencyLimiter => createConcurrencyLimiter(options.concurrency, clock, random, pump);
  const session: Session = {
    queue: createRequestQueue(clock, options.inFlightPerRequester, pump),
    held: createObjectCache(cacheBytes),
    limiters: { sign: limiter(), attest: limiter(), approve: limiter() },
    events: createEventSink(ports.api, clock, options.identity, calls.signal, metrics.event),
    asked: createAskedOnce(askedCapacity),
    lineLimit: createLineLimit(clock),
  };
  const { queue, held, limiters, events } = session;
  const unwatch = metrics.watchGauges(() => ({
    waiting: queue.counts(),
    longestQueue: queue.longest(),
    oldestSeconds: queue.oldestSeconds(clock.now()),
    inFlight: running.size,
    concurrencyLimit: {
      sign: limiters.sign.limit(),
      attest: limiters.attest.limit(),
      approve: limiters.approve.limit(),
    },
    heldBytes: held.bytes(),
  }));

  function admits(step: Step): boolean {
    // Refusals are outside the concurrency limits: they neither count nor wait for other steps.
    if (step === 'refuse') return inFlight.refuse === 0 && cancelRefusalPause === undefined && queue.hasReady(step);
    const pending = inFlight.attest + inFlight.approve;
    if (inFlight.sign + pending >= options.concurrency) return false;
    if (step !== 'sign' && pending >= Math.ceil(options.concurrency * pendingShare)) return false;
    // A call of the limiter's `admits` ends its idle time, so it is called only if a request is ready.
    return queue.hasReady(step) && limiters[step].admits(inFlight[step]);
  }

  /** Starts as many tries as are admitted. Called when a request becomes ready, a try ends, or a pause ends. */
  function pump(): void {
    for (;;) {
      const taken = queue.take(steps.filter(admits));
      if (taken === undefined) return;
      inFlight[taken.step] += 1;
      const task: Promise<void> = runTry(taken, session, options, ports, calls.signal).finally(() => {
        inFlight[taken.step] -= 1;
        running.delete(task);
        if (taken.step === 'refuse') pauseRefusals();
        pump();
      });
      running.add(task);
    }
  }

  function pauseRefusals(): void {
    cancelRefusalPause = clock.after(refusalPauseMilliseconds, () => {
      cancelRefusalPause = undefined;
      pump();
    });
  }

  const watching = AbortSignal.any([stop, lost]);
  const reflectors = options.signerNames.map((signerName) =>
    reflect(
      { signerName },
      {
        seen: (object, bytes) => takeArrival(signerName, object, bytes, session, options, ports),
        deleted: (object) => forgetArrival(object, session),
        synced: () => {
          health.synced(signerName);
          metrics.listed(signerName);
          log.info({ signerName, ...sumOf(queue.counts()) }, 'listed');
        },
        restarted: (why) => metrics.restarted(signerName, why),
        unreadable: (detail) => {
          metrics.malformed(signerName);
          const due = session.lineLimit('unreadable');
          if (due !== undefined) log.error({ signerName, detail, ...due }, 'watch event unreadable');
        },
        oversized: (bytes) => reportOversized({ signerName, bytes }, session, ports),
      },
      { ...ports, source: requestsOf(signerName, ports.api) },
      watching,
    ),
  );

  await Promise.all(reflectors); // they end with `stop` or `lost` only
  health.role('draining');
  queue.close();
  if (!lost.aborted) {
    log.info({ inFlight: running.size }, 'draining');
    const finished = Promise.all(running).then(() => events.idle());
    await Promise.race([finished, sleep(clock, options.graceMilliseconds, AbortSignal.any([lost, calls.signal]))]);
  }
  calls.abort(new Error('the relay stops'));
  await Promise.all(running);
  // A standby replica reports no gauges.
  for (const step of endpointSteps) limiters[step].close();
  cancelRefusalPause?.();
  unwatch();
}

function requestsOf(signerName: string, api: RequestApi): ListWatch {
  return {
    list: (query, signal) => api.list({ signerName, ...query }, signal),
    watch: (query, signal) => api.watch({ signerName, ...query }, signal),
  };
}

/** One try of one request, with its logs, metrics and retry. Never rejects. */
async function runTry(
  taken: Taken,
  session: Session,
  { policies }: RelayOptions,
  ports: SessionPorts,
  signal: AbortSignal,
): Promise<void> {
  const { clock, log } = ports;
  const { key } = taken;
  const limiter = taken.step === 'refuse' ? undefined : session.limiters[taken.step];
  const begun = clock.monotonic();
  let result: WorkResult;
  try {
    const { api, endpoint: signer, machines } = ports;
    const lookup = machines === undefined ? {} : { machines };
    const work = { api, signer, clock, policies, asked: session.asked, ...lookup };
    result = await relayRequest(key, session.held.take(key.uid), work, signal);
  } catch (error) {
    const detail = error instanceof Error ? (error.stack ?? error.message) : String(error);
    result = { kind: 'retry', cause: 'Internal', detail };
  }
  if (result.kind === 'done') {
    if (isFinal(result.end)) {
      // Updates that arrived during the try are older than what it wrote.
      session.held.drop(key.uid);
      session.queue.forget(key.uid);
    }
    session.queue.done(key);
    if (wasAnswered(result)) limiter?.onSuccess();
    complete(taken, result, session, ports);
  } else if (signal.aborted) log.info({ ...key }, 'request broken off');
  else {
    const { others } = causes[result.cause];
    if (others === 'throttled') limiter?.onThrottled(begun);
    if (others === 'failing') limiter?.onFailure(begun, taken.requester);
    requeue(taken, result, session, ports);
  }
}
