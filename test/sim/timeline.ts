/**
 * Time that stands still until the simulation moves it. Everything that waits waits here; which of several that are due
 * at one moment goes first is the seed's to say.
 */
import type { Random } from './random.ts';

export interface Timeline {
  /** Milliseconds since the beginning, with fractions. */
  now(): number;
  /** Never within this call. The answer takes it back. */
  after(milliseconds: number, run: () => void): () => void;
  /** Goes to the next moment and lets everything happen that follows at once; false when nothing is left. */
  step(): Promise<boolean>;
}

interface Timer {
  readonly at: number;
  readonly order: number;
  run: (() => void) | undefined;
}

export function createTimeline(random: Random): Timeline {
  let now = 0;
  const heap: Timer[] = [];

  return {
    now: () => now,
    after(milliseconds, run) {
      const timer: Timer = { at: now + Math.max(0, milliseconds), order: random.next(), run };
      push(heap, timer);
      return () => {
        timer.run = undefined;
      };
    },
    async step() {
      for (let timer = pop(heap); timer !== undefined; timer = pop(heap)) {
        const { run } = timer;
        if (run === undefined) continue;
        now = timer.at;
        run();
        // Nothing that is simulated waits for anything but this timeline: after one turn all promises are settled.
        await new Promise((resolve) => setImmediate(resolve));
        return true;
      }
      return false;
    },
  };
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
