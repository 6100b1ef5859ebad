import type { Instant } from '../../../core/ports/instant.ts';
import type { Clock } from '../runtime/clock.ts';
import { createFairQueue, priorityClasses, steps } from './fair-queue.ts';
import type { PriorityClass, Step } from './fair-queue.ts';

/** Identifies a request: the UID for the queue, the name to read it, the signer name for metrics. */
export interface RequestKey {
  readonly uid: string;
  readonly name: string;
  readonly signerName: string;
}

export interface Arrival {
  readonly requester: string;
  readonly priority: PriorityClass;
  readonly step: Step;
  /** Places of the flow that the request takes while it is in flight; default: 1. */
  readonly weight?: number;
  /** When the request was created, by the API server's clock. */
  readonly createdAt: Instant;
}

/** Small, since 50 000 may wait while the endpoint is down. */
interface Entry extends Pick<Arrival, 'requester' | 'priority' | 'createdAt'> {
  readonly key: RequestKey;
  step: Step;
  /** Does not change while the entry is in flight. */
  weight: number;
  state: 'ready' | 'inFlight' | 'delayed';
  /**
   * What arrived while the entry was in flight. `seen`: the object, so it is queued once more, since the worker may have
   * read an older state. `moved`: the object, with another step to do. `deleted`: the request was deleted or answered.
   */
  update: 'none' | 'seen' | 'moved' | 'deleted';
  /** Tries that ended in a retry. */
  failures: number;
  /** Set while the entry is delayed. */
  cancelDelay: (() => void) | undefined;
}

export interface Taken {
  readonly key: RequestKey;
  readonly requester: string;
  readonly failures: number;
  readonly step: Step;
}

export type QueueCounts = Readonly<Record<PriorityClass, { readonly ready: number; readonly delayed: number }>>;

/**
 * The keys of requests that need work, each at most once, served by fair queueing. It works like client-go's
 * workqueue, except that adding a key does not shorten its delay: a change of the object does not end the reason for
 * the delay (a throttled endpoint, a missing permission). Only another step to do ends it.
 */
export interface RequestQueue {
  /** `backlogged`: the requester's backlog has reached `backlogSize`. Reported once, until the backlog is empty again. */
  add(key: RequestKey, arrival: Arrival): 'backlogged' | undefined;
  /** The step that the request waits for, or that a worker does now. */
  stepOf(uid: string): Step | undefined;
  /** The next request at one of these steps; only this worker has it until `done` or `retry`. */
  take(admitted?: readonly Step[]): Taken | undefined;
  hasReady(step: Step): boolean;
  done(key: RequestKey): void;
  retry(key: RequestKey, delayMilliseconds: number): void;
  /** The request was answered or deleted. If a worker has it, the worker finishes and the request does not come back. */
  forget(uid: string): void;
  counts(): QueueCounts;
  /** Age of the oldest request in the queue or in flight; 0 if the queue is empty. */
  oldestSeconds(now: Instant): Readonly<Record<PriorityClass, number>>;
  /** The largest number of ready requests of one requester. */
  longest(): number;
  /** Drops all entries; the queue stays empty. */
  close(): void;
}

/** A machine pool that joins with one bootstrap token has fewer requests waiting. */
export const backlogSize = 100;

/** `maxInFlightPerRequester` leaves workers free for other requesters during a flood. */
export function createRequestQueue(clock: Clock, maxInFlightPerRequester: number, onReady: () => void): RequestQueue {
  const entries = new Map<string, Entry>();
  const ready = createFairQueue<Entry>(maxInFlightPerRequester);
  const depth = { renewal: { ready: 0, delayed: 0 }, other: { ready: 0, delayed: 0 } };
  /** Requesters whose backlog was reported. */
  const backlogged = new Set<string>();
  let closed = false;

  function enqueue(entry: Entry): void {
    entry.state = 'ready';
    depth[entry.priority].ready += 1;
    ready.push(entry);
    onReady();
  }

  /** Takes the entry out of the ready requests or ends its delay. */
  function withdraw(entry: Entry): void {
    if (entry.state !== 'inFlight') depth[entry.priority][entry.state] -= 1;
    entry.cancelDelay?.();
    entry.cancelDelay = undefined;
    ready.remove(entry);
    if (ready.backlog(entry) === 0) backlogged.delete(entry.requester);
  }

  function drop(entry: Entry): void {
    withdraw(entry);
    entries.delete(entry.key.uid);
  }

  function requeue(entry: Entry): void {
    entry.update = 'none';
    entry.failures = 0;
    enqueue(entry);
  }

  /** The worker no longer has the entry, so another request of the same flow may start. */
  function release(entry: Entry): void {
    ready.finished(entry);
    if (!closed && ready.backlog(entry) > 0) onReady();
  }

  function addNew(key: RequestKey, { weight = 1, ...arrival }: Arrival): void {
    const fresh = { state: 'ready', update: 'none', failures: 0, cancelDelay: undefined } as const;
    const entry: Entry = { key, ...arrival, weight, ...fresh };
    entries.set(key.uid, entry);
    enqueue(entry);
  }

  function update(entry: Entry, { step, weight = 1 }: Arrival): void {
    const moved = entry.step !== step;
    if (entry.state === 'inFlight') {
      entry.update = moved || entry.update === 'moved' ? 'moved' : 'seen';
      entry.step = step;
    } else if (moved) {
      withdraw(entry);
      entry.step = step;
      entry.weight = weight;
      requeue(entry);
    }
  }

  return {
    add(key, arrival) {
      if (closed) return undefined;
      const known = entries.get(key.uid);
      if (known !== undefined) {
        update(known, arrival);
        return undefined;
      }
      addNew(key, arrival);
      if (ready.backlog(arrival) < backlogSize || backlogged.has(arrival.requester)) return undefined;
      backlogged.add(arrival.requester);
      return 'backlogged';
    },

    stepOf: (uid) => entries.get(uid)?.step,
    hasReady: (step) => !closed && ready.hasReady(step),

    take(admitted = steps) {
      if (closed) return undefined;
      const entry = ready.next(admitted);
      if (entry === undefined) return undefined;
      withdraw(entry);
      entry.state = 'inFlight';
      const { key, requester, failures, step } = entry;
      return { key, requester, failures, step };
    },

    done({ uid }) {
      const entry = entries.get(uid);
      if (entry?.state !== 'inFlight') return;
      if (entry.update === 'seen' || entry.update === 'moved') requeue(entry);
      else drop(entry);
      release(entry);
    },

    retry({ uid }, delayMilliseconds) {
      const entry = entries.get(uid);
      if (entry?.state !== 'inFlight') return;
      if (entry.update === 'deleted') drop(entry);
      else if (entry.update === 'moved') requeue(entry);
      else {
        entry.update = 'none'; // the next try reads the object anyway
        entry.failures += 1;
        entry.state = 'delayed';
        depth[entry.priority].delayed += 1;
        entry.cancelDelay = clock.after(delayMilliseconds, () => {
          entry.cancelDelay = undefined;
          depth[entry.priority].delayed -= 1;
          enqueue(entry);
        });
      }
      release(entry);
    },

    forget(uid) {
      const entry = entries.get(uid);
      // An entry in flight stays: otherwise the key could be added again and get a second worker.
      if (entry?.state === 'inFlight') entry.update = 'deleted';
      else if (entry !== undefined) drop(entry);
    },

    counts: () => ({ renewal: { ...depth.renewal }, other: { ...depth.other } }),
    oldestSeconds(now) {
      const oldest: Record<PriorityClass, Instant> = { renewal: now, other: now };
      // The API server's clock may be ahead: no age is negative.
      for (const { priority, createdAt } of entries.values()) oldest[priority] = Math.min(createdAt, oldest[priority]);
      return { renewal: (now - oldest.renewal) / 1_000, other: (now - oldest.other) / 1_000 };
    },
    longest: () => ready.longest(),

    close() {
      closed = true;
      for (const entry of entries.values()) drop(entry);
    },
  };
}

/** Both priority classes together, for a log line. */
export function sumOf(counts: QueueCounts): { ready: number; delayed: number } {
  const add = (state: 'ready' | 'delayed'): number =>
    priorityClasses.reduce((sum, priority) => sum + counts[priority][state], 0);
  return { ready: add('ready'), delayed: add('delayed') };
}
