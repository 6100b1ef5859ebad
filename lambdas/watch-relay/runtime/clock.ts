import type { Instant } from '../../../core/ports/instant.ts';

/**
 * Time as the relay knows it. The simulator gives a virtual one: but for system-clock.ts only what it leaves out asks
 * the machine, which is index.ts, the servers and the writer of the log.
 */
export interface Clock {
  /** For what others read: condition times, the Lease, logs. May jump. */
  now(): Instant;
  /** Milliseconds that only go forward, for everything that is measured or waited for. */
  monotonic(): number;
  /** Runs once, later, never within this call; the answer takes it back. */
  after(milliseconds: number, run: () => void): () => void;
}

/** In [0, 1). For jitter only. */
export type Random = () => number;

/** Over when the time is, or when the signal comes: the caller looks at the signal next. */
export function sleep(clock: Clock, milliseconds: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const end = (): void => {
      cancel();
      signal.removeEventListener('abort', end);
      resolve();
    };
    const cancel = clock.after(milliseconds, end);
    signal.addEventListener('abort', end);
  });
}

/** A signal that comes after that time or with `parent`. `cancel` when the work it guards is over. */
export function deadline(
  clock: Clock,
  milliseconds: number,
  parent: AbortSignal,
): { signal: AbortSignal; cancel: () => void } {
  const controller = new AbortController();
  const cancel = clock.after(milliseconds, () => controller.abort(new Error(`not done in ${milliseconds} ms`)));
  return { signal: AbortSignal.any([parent, controller.signal]), cancel };
}

export interface Backoff {
  /** On top of which the rest comes; none unless given. */
  readonly leastMilliseconds?: number;
  readonly baseMilliseconds: number;
  readonly capMilliseconds: number;
}

/**
 * Full jitter: anything from nothing to the whole of `base · 2^failures`, so that clients which failed together do
 * not come back together. `failures` counts from 0.
 */
export function fullJitter(
  failures: number,
  { leastMilliseconds = 0, baseMilliseconds, capMilliseconds }: Backoff,
  random: Random,
): number {
  return leastMilliseconds + random() * Math.min(capMilliseconds, baseMilliseconds * 2 ** Math.min(failures, 30));
}
