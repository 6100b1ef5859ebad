import type { Instant } from '../../../core/ports/instant.ts';
import type { Clock } from '../runtime/clock.ts';
import { byStep, createTurns, lines, steps } from './fair-queue.ts';
import type { Line, Place, Step, Turn } from './fair-queue.ts';

/** Which request: the UID says which, the name where to read it, the signer which metrics it counts in. */
export interface RequestKey {
  readonly uid: string;
  readonly name: string;
  readonly signerName: string;
}

/** Who asked, and what is to be done next. */
export interface Arrival {
  readonly requester: string;
  readonly line: Line;
  readonly step: Step;
  /** Places of its requester; 1 unless given. */
  readonly weight?: number;
  /** When the request was created, by the API server's clock. */
  readonly createdAt: Instant;
}

/** One object and few fields for each: as many as 50 000 may wait while an endpoint is away. */
interface Entry {
  readonly key: RequestKey;
  readonly requester: string;
  readonly line: Line;
  readonly createdAt: Instant;
  step: Step;
  /** Never changes while a worker has it: as many places are given back as were taken. */
  weight: number;
  state: 'ready' | 'busy' | 'delayed' | 'gone';
  /** What came while a worker had it: seen again (the worker may have looked at an old state), or forgotten. */
  meanwhile: 'nothing' | 'seen' | 'moved on' | 'forgotten';
  /** Tries that ended in a retry. */
  failures: number;
  /** Its place while it is ready; while it is delayed, what ends the delay before its time. */
  waits: Place<Entry> | (() => void) | undefined;
}

export interface Taken {
  readonly key: RequestKey;
  readonly requester: string;
  readonly failures: number;
  readonly step: Step;
}

export type QueueCounts = Readonly<Record<Line, { readonly ready: number; readonly delayed: number }>>;

/**
 * The requests that wait for a decision or their certificate: keys only, each once, in turns of those who asked.
 * As client-go's workqueue otherwise, with one difference: seeing a key again does not cut its delay short, since what
 * delays it (a busy endpoint, a missing right) does not get better by a change of the object. Unless there is another
 * thing to do with it now.
 */
export interface RequestQueue {
  /** `crowded`, once per crowd: so many of this requester wait that he should hear of it. */
  add(key: RequestKey, arrival: Arrival): 'crowded' | undefined;
  /** What is to be done with it next, or is being done; nothing when it is not here. */
  stepOf(uid: string): Step | undefined;
  /** The next one of those steps, now this worker's alone until `done` or `retry`. */
  take(of?: readonly Step[]): Taken | undefined;
  /** Whether there is one to take. */
  ready(step: Step): boolean;
  /** How many wait for that, delayed ones among them. */
  waiting(step: Step): number;
  done(key: RequestKey): void;
  retry(key: RequestKey, delayMilliseconds: number): void;
  /** Answered by somebody, or deleted. A worker that has it finishes, and it does not come back. */
  forget(uid: string): void;
  counts(): QueueCounts;
  /** Age of the oldest request that is here, waiting or under way; 0 where there is none. */
  oldestSeconds(now: Instant): Readonly<Record<Line, number>>;
  /** The most requests that any one requester has ready. */
  longestLine(): number;
  /** Nothing is ready ever after. */
  close(): void;
}

/** A pool of machines that joins with one token is no crowd yet. */
export const crowd = 100;

/** `perRequester`: how many of one may be under way at once. */
export function createRequestQueue(clock: Clock, perRequester: number, onReady: () => void): RequestQueue {
  const entries = new Map<string, Entry>();
  const turns = createTurns<Entry>(perRequester);
  const depth: Record<Line, { ready: number; delayed: number }> = {
    renewal: { ready: 0, delayed: 0 },
    other: { ready: 0, delayed: 0 },
  };
  const waiting = byStep(() => 0);
  /** Requesters whose crowd has been told of, until nothing of theirs waits. */
  const crowded = new Set<string>();
  let closed = false;

  function count({ line, step }: Entry, state: 'ready' | 'delayed', by: 1 | -1): void {
    depth[line][state] += by;
    waiting[step] += by;
  }

  function enqueue(entry: Entry): void {
    entry.state = 'ready';
    count(entry, 'ready', 1);
    entry.waits = turns.push(entry, turnOf(entry));
    onReady();
  }

  /** Whatever it waits in, it no longer does. */
  function withdraw(entry: Entry): void {
    if (entry.state === 'ready' || entry.state === 'delayed') count(entry, entry.state, -1);
    if (typeof entry.waits === 'function') entry.waits();
    else if (entry.waits !== undefined) turns.leave(entry.waits);
    entry.waits = undefined;
    if (turns.waiting(turnOf(entry)) === 0) crowded.delete(entry.requester);
  }

  function leave(entry: Entry): void {
    withdraw(entry);
    entry.state = 'gone';
    entries.delete(entry.key.uid);
  }

  /** The worker is through with it, for now or for good. */
  function release(entry: Entry): void {
    const turn = turnOf(entry);
    turns.over(turn);
    // Others of the same requester may have waited for just this.
    if (!closed && turns.waiting(turn) > 0) onReady();
  }

  function afresh(entry: Entry): void {
    entry.meanwhile = 'nothing';
    entry.failures = 0;
    enqueue(entry);
  }

  return {
    add(key, arrival) {
      if (closed) return undefined;
      const known = entries.get(key.uid);
      if (known === undefined) {
        const { requester, line, step, createdAt, weight = 1 } = arrival;
        const [state, meanwhile, failures, waits] = ['ready', 'nothing', 0, undefined] as const;
        const entry: Entry = { key, requester, line, createdAt, step, weight, state, meanwhile, failures, waits };
        entries.set(key.uid, entry);
        enqueue(entry);
        if (turns.waiting(turnOf(entry)) < crowd || crowded.has(arrival.requester)) return undefined;
        crowded.add(arrival.requester);
        return 'crowded';
      }
      const moved = known.step !== arrival.step;
      if (known.state === 'busy') known.meanwhile = moved || known.meanwhile === 'moved on' ? 'moved on' : 'seen';
      const sooner = moved && (known.state === 'delayed' || known.state === 'ready');
      if (sooner) {
        withdraw(known);
        known.weight = arrival.weight ?? 1;
      }
      known.step = arrival.step;
      if (sooner) afresh(known);
      return undefined;
    },

    ready: (step) => !closed && turns.ready(step),
    waiting: (step) => waiting[step],
    stepOf: (uid) => entries.get(uid)?.step,

    take(of = steps) {
      if (closed) return undefined;
      const entry = turns.next(of);
      if (entry === undefined) return undefined;
      withdraw(entry);
      entry.state = 'busy';
      const { key, requester, failures, step } = entry;
      return { key, requester, failures, step };
    },

    done({ uid }) {
      const entry = entries.get(uid);
      if (entry?.state !== 'busy') return;
      const again = entry.meanwhile === 'seen' || entry.meanwhile === 'moved on';
      if (again) afresh(entry);
      else leave(entry);
      release(entry);
    },

    retry({ uid }, delayMilliseconds) {
      const entry = entries.get(uid);
      if (entry?.state !== 'busy') return;
      if (entry.meanwhile === 'forgotten') leave(entry);
      else if (entry.meanwhile === 'moved on') afresh(entry);
      else {
        entry.meanwhile = 'nothing'; // the next try reads the object anew anyway
        entry.failures += 1;
        entry.state = 'delayed';
        count(entry, 'delayed', 1);
        entry.waits = clock.after(delayMilliseconds, () => {
          count(entry, 'delayed', -1);
          enqueue(entry);
        });
      }
      release(entry);
    },

    forget(uid) {
      const entry = entries.get(uid);
      // A worker's entry stays until the worker is through: or the key, seen again, would get a second worker.
      if (entry?.state === 'busy') entry.meanwhile = 'forgotten';
      else if (entry !== undefined) leave(entry);
    },

    counts: () => ({ renewal: { ...depth.renewal }, other: { ...depth.other } }),
    oldestSeconds(now) {
      const oldest: Record<Line, Instant> = { renewal: now, other: now };
      // An API server whose clock is ahead makes no request of a negative age.
      for (const { line, createdAt } of entries.values()) oldest[line] = Math.min(createdAt, oldest[line]);
      return { renewal: (now - oldest.renewal) / 1_000, other: (now - oldest.other) / 1_000 };
    },
    longestLine: () => turns.longest(),

    close() {
      closed = true;
      for (const entry of entries.values()) leave(entry);
    },
  };
}

function turnOf({ key: { signerName }, requester, line, step, weight }: Entry): Turn {
  return { requester, signerName, line, step, weight };
}

/** All lines together, for a log line. */
export function sumOf(counts: QueueCounts): { ready: number; delayed: number } {
  const add = (state: 'ready' | 'delayed'): number => lines.reduce((sum, line) => sum + counts[line][state], 0);
  return { ready: add('ready'), delayed: add('delayed') };
}
