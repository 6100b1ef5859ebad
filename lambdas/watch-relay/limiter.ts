import { fullJitter } from './clock.ts';
import type { Backoff, Clock, Random } from './clock.ts';

/** Between two tries when even one at a time is too much for the endpoint. */
const pause: Backoff = { baseMilliseconds: 200, capMilliseconds: 5_000 };

/**
 * How many requests may be under way at once: halved when the far side says it is busy, one more after each round of
 * successes, as TCP does (AIMD, RFC 5681). No rate is fixed anywhere: the limit finds what the endpoint can take.
 */
export interface ConcurrencyLimiter {
  limit(): number;
  admits(inFlight: number): boolean;
  succeeded(): void;
  /** `startedAt` is when the call began (monotonic): one overload that many calls meet counts once. */
  congested(startedAt: number): void;
}

export function createConcurrencyLimiter(
  maximum: number,
  clock: Clock,
  random: Random,
  onAdmit: () => void,
): ConcurrencyLimiter {
  let limit = maximum;
  let loweredAt = Number.NEGATIVE_INFINITY;
  /** Busy answers in a row while only one call at a time was made. */
  let refusals = 0;
  let cancelPause: (() => void) | undefined;

  return {
    limit: () => Math.floor(limit),
    admits: (inFlight) => cancelPause === undefined && inFlight < Math.floor(limit),

    succeeded() {
      refusals = 0;
      limit = Math.min(maximum, limit + 1 / limit);
    },

    congested(startedAt) {
      if (startedAt < loweredAt) return;
      loweredAt = clock.monotonic();
      if (limit >= 2) {
        limit = Math.max(1, limit / 2);
        return;
      }
      // One at a time and still too much: leave gaps, or a long queue would knock without a break.
      limit = 1;
      cancelPause?.();
      cancelPause = clock.after(fullJitter(refusals, pause, random), () => {
        cancelPause = undefined;
        onAdmit();
      });
      refusals += 1;
    },
  };
}
