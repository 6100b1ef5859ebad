import type { Clock } from '../../lambdas/watch-relay/runtime/clock.ts';

/** Time that stands still until a test moves it: minutes of backoff and leases pass in milliseconds. */
export interface VirtualClock {
  readonly now: () => number;
  /** The clock of one worker. When the worker is dead its timers never run. */
  forWorker(alive: () => boolean): Clock;
  /** Goes to the next timer and runs it; false when there is none. */
  advance(): boolean;
}

export function createVirtualClock(start: number): VirtualClock {
  let elapsed = 0;
  let added = 0;
  const timers = new Map<number, { readonly at: number; readonly alive: () => boolean; readonly run: () => void }>();

  function next(): number | undefined {
    let first: number | undefined;
    for (const [id, { at, alive }] of timers) {
      if (!alive()) timers.delete(id);
      // Of the same moment the one set first: Map keeps that order.
      else if (first === undefined || at < timers.get(first)!.at) first = id;
    }
    return first;
  }

  return {
    now: () => start + elapsed,
    forWorker: (alive) => ({
      now: () => start + elapsed,
      monotonic: () => elapsed,
      after(milliseconds, run) {
        const id = ++added;
        timers.set(id, { at: elapsed + Math.max(0, milliseconds), alive, run });
        return () => void timers.delete(id);
      },
    }),
    advance() {
      const id = next();
      if (id === undefined) return false;
      const { at, run } = timers.get(id)!;
      timers.delete(id);
      elapsed = Math.max(elapsed, at);
      run();
      return true;
    },
  };
}
