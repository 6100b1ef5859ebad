import type { Instant } from '../../../core/ports/instant.ts';

/** The simulator provides a virtual clock. Besides system-clock.ts only index.ts, the servers and process-log.ts use real time. */
export interface Clock {
  /** For condition times and the Lease. It may jump. */
  now(): Instant;
  /** Milliseconds that never decrease, to measure durations. */
  monotonic(): number;
  /** Runs once, never within this call; the returned function cancels it. */
  after(milliseconds: number, run: () => void): () => void;
}

/** In [0, 1). For jitter only. */
export type Random = () => number;

/** Resolves after that time, or when `signal` is aborted. */
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

/** `signal` is aborted after that time, or with `parent`. Call `cancel` when the work is complete. */
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
  /** Added to the random part; 0 by default. */
  readonly leastMilliseconds?: number;
  readonly baseMilliseconds: number;
  readonly capMilliseconds: number;
}

/** Full jitter: a random part of `base · 2^failures`, so that clients that failed together do not retry together. */
export function fullJitter(
  failures: number,
  { leastMilliseconds = 0, baseMilliseconds, capMilliseconds }: Backoff,
  random: Random,
): number {
  return leastMilliseconds + random() * Math.min(capMilliseconds, baseMilliseconds * 2 ** Math.min(failures, 30));
}
