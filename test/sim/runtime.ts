/**
 * What a simulated part stands on: time, chance, the faults of this seed, and the trace that is being told. A process
 * can die at any of its calls; whatever it had waited for never comes, and whatever it had sent is on its way.
 */
import type { Instant } from '../../core/ports/instant.ts';
import type { Clock } from '../../lambdas/watch-relay/runtime/clock.ts';
import { count } from './coverage.ts';
import type { Counts } from './coverage.ts';
import type { Random } from './random.ts';
import { createTimeline } from '../harness/determinism/virtual-time.ts';
import type { Timeline } from '../harness/determinism/virtual-time.ts';

/** When every simulation begins. */
export const epoch = Date.UTC(2026, 0, 1);

/** Virtual milliseconds. */
export interface FaultTime {
  readonly from: number;
  readonly to: number;
}

/** How likely each fault is at one call of a seed, until `until` and again in each time of `later`. */
export interface FaultRates {
  readonly until: number;
  readonly later: readonly FaultTime[];
  readonly crash: number;
  readonly lost: number;
  readonly throttled: number;
  readonly late: number;
  readonly slow: number;
  readonly forbidden: number;
  readonly pause: number;
  readonly duplicate: number;
  readonly watch: number;
  readonly staleList: number;
  /** How far each part's clock is off at most. */
  readonly skew: number;
}

export interface Runtime {
  readonly random: Random;
  readonly timeline: Timeline;
  readonly rates: FaultRates;
  /** Whether faults still happen. */
  troubled(): boolean;
  tell(line: () => string): void;
  /** For the coverage of a run. */
  count(what: string): void;
  /** A stream for one call: however much it draws, the next call's is the same. */
  callRandom(): Random;
  /** An invariant is broken: the simulation ends here. */
  fail(what: string): void;
  readonly failure: string | undefined;
  readonly lines: readonly string[];
}

export function createRuntime(random: Random, rates: FaultRates, telling: boolean, counts: Counts): Runtime {
  const timeline = createTimeline(random.stream('order').next);
  const lines: string[] = [];
  let failure: string | undefined;
  let calls = 0;
  const tell = (line: () => string): void => {
    if (telling) lines.push(`${(timeline.now() / 1_000).toFixed(3).padStart(9)}  ${line()}`);
  };
  return {
    random,
    timeline,
    rates,
    troubled() {
      const now = timeline.now();
      return now < rates.until || rates.later.some(({ from, to }) => from <= now && now < to);
    },
    tell,
    count: (what) => count(counts, what),
    callRandom() {
      calls += 1;
      return random.stream(`call ${calls}`);
    },
    fail(what) {
      if (failure !== undefined) return;
      failure = what;
      tell(() => `BROKEN: ${what}`);
    },
    get failure() {
      return failure;
    },
    lines,
  };
}

export interface Process {
  readonly name: string;
  readonly startedAt: number;
  /** How many of its calls had no answer. */
  failures: number;
  alive(): boolean;
  kill(why: string): void;
  /** Stands still as long: what comes for it waits. */
  pause(milliseconds: number): void;
  /** Runs as this process does anything: not any more when it is dead, later when it is paused. */
  wake(run: () => void): void;
  /** Its own clock: off by its skew, and its timers die with it. */
  readonly clock: Clock;
}

export function startProcess(runtime: Runtime, name: string, onDeath: () => void = () => {}): Process {
  const { timeline } = runtime;
  const startedAt = timeline.now();
  const skew = Math.round((runtime.random.next() * 2 - 1) * runtime.rates.skew);
  let dead = false;
  let pausedUntil = 0;

  function wake(run: () => void): void {
    if (dead) return;
    const left = pausedUntil - timeline.now();
    if (left > 0) timeline.after(left, () => wake(run));
    else run();
  }
  const now = (): Instant => epoch + Math.floor(timeline.now()) + skew;

  return {
    name,
    startedAt,
    failures: 0,
    alive: () => !dead,
    kill(why) {
      if (dead) return;
      dead = true;
      runtime.tell(() => `${name} dies ${why}`);
      onDeath();
    },
    pause(milliseconds) {
      runtime.count('trouble: a process stands still');
      runtime.tell(() => `${name} stands still for ${Math.round(milliseconds)} ms`);
      pausedUntil = Math.max(pausedUntil, timeline.now() + milliseconds);
    },
    wake,
    clock: {
      now,
      monotonic: () => timeline.now(),
      after(milliseconds, run) {
        let cancelled = false;
        const cancel = timeline.after(milliseconds, () =>
          wake(() => {
            // As clearTimeout: what was due while the process stood still can be taken back by what comes before it.
            if (!cancelled) run();
          }),
        );
        return () => {
          cancelled = true;
          cancel();
        };
      },
    },
  };
}
