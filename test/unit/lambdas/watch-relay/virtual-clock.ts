import type { Clock } from '../../../../lambdas/watch-relay/runtime/clock.ts';

/** Time that stands still until told to go on. Timers fire in order of their time, then of their making. */
export interface VirtualClock extends Clock {
  /** Lets everything happen that happens within that time, and everything that follows at once. */
  advance(milliseconds: number): Promise<void>;
  /** Goes on until it is true; an error if it is not within that (virtual) time, or if nothing is left to happen. */
  until(condition: () => boolean, withinMilliseconds?: number): Promise<void>;
}

export function createVirtualClock(epoch: number = Date.UTC(2026, 0, 1)): VirtualClock {
  let time = 0;
  let made = 0;
  const timers: { at: number; order: number; run: () => void }[] = [];

  function nextTimer(until: number): (() => void) | undefined {
    let first = timers[0];
    for (const timer of timers)
      if (first === undefined || timer.at < first.at || (timer.at === first.at && timer.order < first.order))
        first = timer;
    if (first === undefined || first.at > until) return undefined;
    timers.splice(timers.indexOf(first), 1);
    time = Math.max(time, first.at);
    return first.run;
  }

  return {
    now: () => epoch + time,
    monotonic: () => time,
    after(milliseconds, run) {
      const timer = { at: time + milliseconds, order: made++, run };
      timers.push(timer);
      return () => {
        const index = timers.indexOf(timer);
        if (index !== -1) timers.splice(index, 1);
      };
    },
    async advance(milliseconds) {
      const end = time + milliseconds;
      for (;;) {
        await settled();
        const run = nextTimer(end);
        if (run === undefined) break;
        run();
      }
      time = end;
      await settled();
    },
    async until(condition, withinMilliseconds = 3_600_000) {
      const end = time + withinMilliseconds;
      for (;;) {
        await settled();
        if (condition()) return;
        const run = nextTimer(end);
        if (run === undefined) throw new Error(`not so after ${withinMilliseconds} ms: ${condition.toString()}`);
        run();
      }
    },
  };
}

/** All promises that can be resolved are: nothing under test waits for anything but this clock. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** mulberry32: small, and the same on every machine. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}
