import { fullJitter } from '../runtime/clock.ts';
import type { Backoff, Clock, Random } from '../runtime/clock.ts';

/** Between two tries while one after the other is too much for the endpoint. */
const pause: Backoff = { baseMilliseconds: 200, capMilliseconds: 5_000 };
/** After so long without work nobody knows any more what the endpoint takes. */
const idleMilliseconds = 10_000;
/**
 * Until there are two at once the limit grows so much with each success. It is slow there on purpose: many relays share
 * one quota of their account, and each of them meets it for the first time with what it has under way.
 */
const firstSteps = 0.25;
/** Likewise once a refusal has said that one at a time may be enough: about twenty successes for each try of two. */
const carefulSteps = 0.05;
/**
 * For each such time without any answer one more may be under way: an endpoint that starts, or a call that hangs, says
 * nothing about how many it takes, and must not keep all others waiting.
 */
const silentMilliseconds = 1_000;
/** Of the calls that the share of refusals is taken from. */
const remembered = 32;
/** Refusals in a row that say something about the others who ask; with more of them nobody is let through. */
const contention = 3;
/** A pause for the others: that much at most, and so much by the square of the share of refusals. */
const longestTurnMilliseconds = 8_000;
const turnMilliseconds = 500_000;
/**
 * With so few left there are two or three turns to go, and one pause can make a relay the last of all. After its first
 * one, which spreads those who met the quota together, it pauses the less the more it is behind.
 */
const few = 32;
const lastTurnsMilliseconds = [400, 4_800] as const;

/**
 * How many requests may be under way at once: halved when the far side says it is busy, one more after each round of
 * successes, as TCP does (AIMD, RFC 5681), and found out from one on. No rate is fixed anywhere: the limit finds what the
 * endpoint can take.
 *
 * Where even one at a time is too much, others want the same quota. Then relays take turns without speaking to one
 * another: who is refused pauses, the longer the more of its calls were refused lately, which all of them see alike; who
 * comes back goes on at full speed until it is refused again. So few ask at a time that few are refused, and what one
 * leaves the next one takes at once. docs/scale.md has what came of it.
 */
export interface ConcurrencyLimiter {
  limit(): number;
  admits(inFlight: number): boolean;
  succeeded(): void;
  /**
   * `startedAt` is when the call began (monotonic): one overload that many calls meet counts once. `waiting`: how many
   * are still to be done.
   */
  congested(startedAt: number, waiting: number): void;
  /**
   * It ended without an answer, but not for being one too many: that leaves nothing for others to take meanwhile, and may
   * be the trouble of a few requests, of one signer for example. Failures of one requester alone lower nothing: what a
   * requester sends may be what fails, and the limit is everybody's.
   */
  failed(startedAt: number, requester: string): void;
  /** Nothing is asked any more. */
  close(): void;
}

export function createConcurrencyLimiter(
  maximum: number,
  clock: Clock,
  random: Random,
  onAdmit: () => void,
): ConcurrencyLimiter {
  let limit = 1;
  /** Up to here the limit doubles with each round. */
  let threshold = maximum;
  let loweredAt = Number.NEGATIVE_INFINITY;
  let work = begun(clock.monotonic());
  let lastAt = work.begunAt;
  /** Calls without an answer since the last success, and whether the limit was lowered for them. */
  let inARow = 0;
  let lowered = false;
  /** Whose calls failed since the last success: two are enough to know that it is not one requester's trouble. */
  const failing = new Set<string>();
  let cancelPause: (() => void) | undefined;
  /** When there was an answer last, or since when there is something to answer. */
  let heardAt = work.begunAt;
  let cancelPatience: (() => void) | undefined;
  let closed = false;

  function remember(refusal: 0 | 1): void {
    work.calls = Math.min(remembered, work.calls + 1);
    work.refused += (refusal - work.refused) / (work.calls + 1);
  }

  function step(): number {
    if (limit < threshold) return limit < 2 ? firstSteps : 1;
    return limit < 2 ? carefulSteps : 1 / limit;
  }

  function unanswered(): number {
    lastAt = clock.monotonic();
    heardAt = lastAt;
    inARow += 1;
    return lastAt;
  }

  /** Whether it was down to one already, and only time helps. `least`: what it may grow to quickly again. */
  function lower(now: number, startedAt: number, least: number): boolean {
    if (startedAt < loweredAt) return false;
    loweredAt = now;
    // Only how it was before the trouble began says what to come back to.
    if (!lowered && work.done > 0) threshold = Math.max(least, limit / 2);
    lowered = true;
    const atOne = limit < 2;
    limit = Math.max(1, limit / 2);
    return atOne;
  }

  /** Longer with each failure: nobody is answered. */
  function gap(): number {
    return work.done > 0 && inARow === 1 ? 0 : fullJitter(Math.max(0, inARow - 2), pause, random);
  }

  /** How long to leave the endpoint to others, but no longer than what waits will take; nothing before it has answered. */
  function turn(now: number, waiting: number): number {
    if (work.done === 0) return 0;
    const remaining = ((waiting + 1) * (now - work.begunAt)) / work.done;
    const [least, most] = lastTurnsMilliseconds;
    const behind = Math.max(least, (most * work.done) / (work.done + waiting + 1));
    const longest = work.turns > 0 && waiting < few ? behind : longestTurnMilliseconds;
    work.turns += 1;
    return random() * Math.min(longest, turnMilliseconds * work.refused ** 2, remaining);
  }

  function rest(milliseconds: number): void {
    cancelPause?.();
    cancelPause = clock.after(Math.ceil(milliseconds), () => {
      cancelPause = undefined;
      onAdmit();
    });
  }

  /** Comes back when the silence will have lasted long enough for one more. */
  function listen(milliseconds: number): void {
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
      if (inFlight === 0 && now - lastAt > idleMilliseconds) {
        limit = 1;
        threshold = maximum;
        work = begun(now);
      }
      lastAt = now;
      if (inFlight === 0) heardAt = now;
      const missing = inFlight + 1 - Math.floor(limit);
      if (missing <= 0) return true;
      if (inFlight >= maximum) return false;
      const silence = heardAt + missing * silentMilliseconds - now;
      if (silence > 0) listen(silence);
      return silence <= 0;
    },

    succeeded() {
      lastAt = clock.monotonic();
      heardAt = lastAt;
      inARow = 0;
      lowered = false;
      failing.clear();
      work.done += 1;
      remember(0);
      limit = Math.min(maximum, limit + step());
    },

    congested(startedAt, waiting) {
      const now = unanswered();
      if (inARow <= contention) remember(1);
      const atOne = lower(now, startedAt, 1);
      if (atOne) rest(Math.max(turn(now, waiting), gap()));
    },

    failed(startedAt, requester) {
      const now = unanswered();
      if (failing.size < 2) failing.add(requester);
      // As many as were under way fail, of more than one requester, and not one is answered: it is the endpoint.
      if (inARow > Math.max(contention, limit) && failing.size > 1 && lower(now, startedAt, 2)) rest(gap());
    },

    close() {
      closed = true;
      cancelPause?.();
      cancelPatience?.();
    },
  };
}

/** Since there is work again: when it began, what is done of it, and of the last calls how many were refused. */
interface Work {
  readonly begunAt: number;
  done: number;
  calls: number;
  refused: number;
  /** Pauses for the others. */
  turns: number;
}

function begun(now: number): Work {
  return { begunAt: now, done: 0, calls: 0, refused: 0, turns: 0 };
}
