import type { Clock, Random } from '../runtime/clock.ts';

/**
 * The longest pause when even one call at a time is throttled or unanswered. Longer pauses leave a shared quota
 * unused at the end of a wave, shorter ones make more calls (docs/scale.md).
 */
const longestPauseMilliseconds = 2_500;
/** After this long without work the limit starts over: the endpoint's capacity may have changed. */
const idleMilliseconds = 10_000;
/**
 * How much a success adds while the limit is below two. It is slow, because many relays may share one quota, and each
 * of them starts with one call.
 */
const stepBelowTwo = 0.2;
/**
 * For each such time without an answer one more call may start: a call that hangs says nothing about how many calls the
 * endpoint takes, and must not hold up all others.
 */
const silentMilliseconds = 1_000;
/** So many failures in a row lower the limit, or more if more calls may be in flight. */
const leastFailures = 3;

/**
 * Limits how many calls are in flight (AIMD with slow start, as TCP, RFC 5681). The limit starts at one, doubles with
 * each round of successes up to the threshold, then grows by one with each round, and is halved when a call is
 * throttled. When even one call at a time is throttled, other relays share the quota: each relay then pauses
 * for a random time, without coordination. docs/scale.md has measurements.
 */
export interface ConcurrencyLimiter {
  limit(): number;
  admits(inFlight: number): boolean;
  onSuccess(): void;
  /** `startedAt`: monotonic time of the call's start. All calls that were in flight when the limit fell count once. */
  onThrottled(startedAt: number): void;
  /**
   * The call had no answer for another reason. That can be the trouble of one signer or requester, so the limit falls
   * only when as many calls as it allows have failed in a row, of more than one requester: a requester whose own
   * requests fail must not slow down the others.
   */
  onFailure(startedAt: number, requester: string): void;
  /** Admits nothing from now on. */
  close(): void;
}

export function createConcurrencyLimiter(
  maximum: number,
  clock: Clock,
  random: Random,
  onAdmit: () => void,
): ConcurrencyLimiter {
  let limit = 1;
  let threshold = maximum;
  let loweredAt = Number.NEGATIVE_INFINITY;
  let usedAt = clock.monotonic();
  /** When the last answer came, or when there was first a call to answer. */
  let answeredAt = usedAt;
  /** Since the last success: calls that were throttled or failed, and requesters whose calls failed (up to two). */
  let unsuccessful = 0;
  const failing = new Set<string>();
  let cancelPause: (() => void) | undefined;
  let cancelPatience: (() => void) | undefined;
  let closed = false;

  function ended(): void {
    usedAt = clock.monotonic();
    answeredAt = usedAt;
  }

  /** Halves the limit, and pauses if it is at one already. */
  function lower(startedAt: number): void {
    if (startedAt < loweredAt) return;
    loweredAt = clock.monotonic();
    if (limit < 2) pause();
    limit = Math.max(1, limit / 2);
  }

  function pause(): void {
    cancelPause?.();
    cancelPause = clock.after(Math.ceil(random() * longestPauseMilliseconds), () => {
      cancelPause = undefined;
      onAdmit();
    });
  }

  function wakeAfter(milliseconds: number): void {
    cancelPatience?.();
    cancelPatience = clock.after(milliseconds, () => {
      cancelPatience = undefined;
      onAdmit();
    });
  }

  return {
    limit: () => Math.floor(limit),

    admits(inFlight) {
      if (closed || cancelPause !== undefined) return false;
      const now = clock.monotonic();
      if (inFlight === 0 && now - usedAt > idleMilliseconds) {
        limit = 1;
        threshold = maximum;
      }
      usedAt = now;
      if (inFlight === 0) answeredAt = now;
      const missing = inFlight + 1 - Math.floor(limit);
      if (missing <= 0) return true;
      if (inFlight >= maximum) return false;
      const patience = answeredAt + missing * silentMilliseconds - now;
      if (patience > 0) wakeAfter(patience);
      return patience <= 0;
    },

    onSuccess() {
      ended();
      unsuccessful = 0;
      failing.clear();
      const step = limit < 2 ? stepBelowTwo : limit < threshold ? 1 : 1 / limit;
      limit = Math.min(maximum, limit + step);
    },

    onThrottled(startedAt) {
      ended();
      unsuccessful += 1;
      if (startedAt >= loweredAt) threshold = Math.max(1, limit / 2);
      lower(startedAt);
    },

    onFailure(startedAt, requester) {
      ended();
      unsuccessful += 1;
      if (failing.size < 2) failing.add(requester);
      if (unsuccessful > Math.max(leastFailures, limit) && failing.size > 1) lower(startedAt);
    },

    close() {
      closed = true;
      cancelPause?.();
      cancelPatience?.();
    },
  };
}
