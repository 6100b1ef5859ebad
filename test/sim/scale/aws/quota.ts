/** A quota per second, as a token bucket: what is not used within `burst` is lost. */
import type { Timeline } from '../../../harness/determinism/virtual-time.ts';

export interface Quota {
  /** Takes as much, or nothing and says no. */
  take(amount?: number): boolean;
  readonly perSecond: number;
  readonly used: number;
  readonly throttled: number;
}

export function createQuota(timeline: Pick<Timeline, 'now'>, perSecond: number, burst = perSecond): Quota {
  let tokens = burst;
  let filledAt = timeline.now();
  let used = 0;
  let throttled = 0;
  return {
    perSecond,
    take(amount = 1) {
      const now = timeline.now();
      tokens = Math.min(burst, tokens + ((now - filledAt) / 1_000) * perSecond);
      filledAt = now;
      // A call that is larger than the bucket goes when the bucket is full, and leaves a debt.
      if (tokens < Math.min(amount, burst)) {
        throttled += 1;
        return false;
      }
      tokens -= amount;
      used += amount;
      return true;
    },
    get used() {
      return used;
    },
    get throttled() {
      return throttled;
    },
  };
}
