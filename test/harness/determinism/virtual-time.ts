import type { Clock } from '../../../lambdas/watch-relay/runtime/clock.ts';

/** Time that stands still until a test moves it. Everything that waits in a simulation waits here. */
export interface Timeline {
  /** Milliseconds since the beginning, with fractions. */
  now(): number;
  /** Never runs within this call. The answer cancels it. A timer whose process is no longer `alive` does not exist. */
  after(milliseconds: number, run: () => void, alive?: () => boolean): () => void;
  /** Goes to the next timer that is due by `until` and runs it; false without such a timer. */
  next(until?: number): boolean;
  /** Goes to the next timer and lets everything happen that follows at once; false when nothing is left. */
  step(): Promise<boolean>;
  /** Lets everything happen that happens within that time, and everything that follows at once. */
  readonly advance: (milliseconds: number) => Promise<void>;
  /** Goes on until it is true; an error if it is not within that time, or if nothing is left to happen. */
  readonly until: (condition: () => boolean, withinMilliseconds?: number) => Promise<void>;
}

interface Timer {
  readonly at: number;
  readonly order: number;
  readonly alive: (() => boolean) | undefined;
  run: (() => void) | undefined;
}

/** Timers run in order of their time; `order` decides between those of one moment: by default as they were set. */
export function createTimeline(order: () => number = counter()): Timeline {
  let now = 0;
  const heap: Timer[] = [];

  /** The first timer that still has something to do. It stays in the heap. */
  function first(): Timer | undefined {
    for (;;) {
      const timer = heap[0];
      if (timer === undefined || (timer.run !== undefined && timer.alive?.() !== false)) return timer;
      pop(heap);
    }
  }

  function next(until = Number.POSITIVE_INFINITY): boolean {
    const timer = first();
    if (timer?.run === undefined || timer.at > until) return false;
    pop(heap);
    now = timer.at;
    const { run } = timer;
    timer.run = undefined;
    run();
    return true;
  }

  return {
    now: () => now,
    after(milliseconds, run, alive) {
      const timer: Timer = { at: now + Math.max(0, milliseconds), order: order(), alive, run };
      push(heap, timer);
      return () => {
        timer.run = undefined;
      };
    },
    next,
    async step() {
      if (!next()) return false;
      await settled();
      return true;
    },
    async advance(milliseconds) {
      const end = now + milliseconds;
      do await settled();
      while (next(end));
      now = end;
    },
    async until(condition, withinMilliseconds = 3_600_000) {
      const end = now + withinMilliseconds;
      for (;;) {
        await settled();
        if (condition()) return;
        if (!next(end)) throw new Error(`not so after ${withinMilliseconds} ms: ${condition.toString()}`);
      }
    },
  };
}

/** The clock of one process on a timeline. Timers of a process that is no longer `alive` never run. */
export function clockOf(timeline: Timeline, epoch: number, alive?: () => boolean): Clock {
  return {
    now: () => epoch + Math.floor(timeline.now()),
    monotonic: () => timeline.now(),
    after: (milliseconds, run) => timeline.after(milliseconds, run, alive),
  };
}

/** A timeline that is a process's clock as well, for tests of one process. */
export interface VirtualClock extends Clock, Pick<Timeline, 'advance' | 'until'> {}

export function createVirtualClock(epoch: number = Date.UTC(2026, 0, 1)): VirtualClock {
  const timeline = createTimeline();
  const { advance, until } = timeline;
  return { ...clockOf(timeline, epoch), advance, until };
}

/** Nothing under test waits for anything but the timeline: after one turn of the event loop all promises are settled. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function counter(): () => number {
  let count = 0;
  return () => count++;
}

function before(a: Timer, b: Timer): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}

function push(heap: Timer[], timer: Timer): void {
  let at = heap.length;
  heap.push(timer);
  while (at > 0) {
    const parent = (at - 1) >> 1;
    const above = heap[parent];
    if (above === undefined || !before(timer, above)) break;
    heap[at] = above;
    at = parent;
  }
  heap[at] = timer;
}

function pop(heap: Timer[]): Timer | undefined {
  const first = heap[0];
  const last = heap.pop();
  if (first === undefined || last === undefined || heap.length === 0) return first;
  let at = 0;
  for (;;) {
    const left = heap[2 * at + 1];
    const right = heap[2 * at + 2];
    const child = right !== undefined && left !== undefined && before(right, left) ? right : left;
    if (child === undefined || !before(child, last)) break;
    heap[at] = child;
    at = child === left ? 2 * at + 1 : 2 * at + 2;
  }
  heap[at] = last;
  return first;
}
