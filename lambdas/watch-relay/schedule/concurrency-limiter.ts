import type { Clock, Random } from '../runtime/clock.ts';

/**
 * The longest pause when even one call at a time is throttled or unanswered. Longer pauses leave a shared quota
 * unused at the end of a wave, shorter ones make more calls (docs/internals/scale.md).
 */
const longestPauseMilliseconds = 2_500;
/** After this long without work the limit starts over: the endpoint's capacity may have changed. */
const idleMilliseconds = 10_000;
/** What a success adds to a limit below two. Small, since many relays may share a quota, and each starts with one call. */
const stepBelowTwo = 0.2;
/**
 * After each such time in which no call ended, one more call may start above the limit: calls that hang show nothing about
 * the endpoint's capacity, and must not hold up the others.
 */
const unansweredMilliseconds = 1_000;
/** The limit falls after more failures in a row than this and than the limit itself. */
const minFailures = 3;

/**
 * Limits how many calls are in flight (AIMD with slow start, as TCP, RFC 5681). The limit starts at one, doubles with
 * each round of successes up to the threshold, then grows by one with each round, and is halved when a call is
 * throttled. When even one call at a time is throttled, other relays share the quota: each relay then pauses
 * for a random time, without coordination. docs/internals/scale.md has measurements.
 */
export interface ConcurrencyLimiter {
  limit(): number;
  admits(inFlight: number): boolean;
  onSuccess(): void;
  /** `startedAt`: monotonic time of the call's start. All calls that were in flight when the limit fell count once. */
  onThrottled(startedAt: number): void;
  /**
   * The call failed for another reason, which may concern one signer or requester only. So the limit falls only when
   * more calls than it allows have failed in a row, of more than one requester: a requester whose own requests fail
   * must not slow down the others.
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
  /** When the last call ended, or when a call started while no other was in flight. */
  let lastEndAt = usedAt;
  /** Since the last success: calls that were throttled or failed, and requesters whose calls failed (up to two). */
  let unsuccessful = 0;
  const failing = new Set<string>();
  let cancelPause: (() => void) | undefined;
  let cancelWake: (() => void) | undefined;
  let closed = false;

  function recordEnd(): void {
    usedAt = clock.monotonic();
    lastEndAt = usedAt;
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
    cancelWake?.();
    cancelWake = clock.after(milliseconds, () => {
      cancelWake = undefined;
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
      if (inFlight === 0) lastEndAt = now;
      const excess = inFlight + 1 - Math.floor(limit);
      if (excess <= 0) return true;
      if (inFlight >= maximum) return false;
      const wait = lastEndAt + excess * unansweredMilliseconds - now;
      if (wait > 0) wakeAfter(wait);
      return wait <= 0;
    },

    onSuccess() {
      recordEnd();
      unsuccessful = 0;
      failing.clear();
      const step = limit < 2 ? stepBelowTwo : limit < threshold ? 1 : 1 / limit;
      limit = Math.min(maximum, limit + step);
    },

    onThrottled(startedAt) {
      recordEnd();
      unsuccessful += 1;
      if (startedAt >= loweredAt) threshold = Math.max(1, limit / 2);
      lower(startedAt);
    },

    onFailure(startedAt, requester) {
      recordEnd();
      unsuccessful += 1;
      if (failing.size < 2) failing.add(requester);
      if (unsuccessful > Math.max(minFailures, limit) && failing.size > 1) lower(startedAt);
    },

    close() {
      closed = true;
      cancelPause?.();
      cancelWake?.();
    },
  };
}
