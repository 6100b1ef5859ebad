/**
 * What a simulated part stands on: time, chance, the faults of this seed, and the story that is being told. A process
 * can die at any of its calls; whatever it had waited for never comes, and whatever it had sent is on its way.
 */
import { ThrottledError } from '../../core/ports.ts';
import type { Instant } from '../../core/ports.ts';
import type { Clock } from '../../lambdas/watch-relay/clock.ts';
import type { Random } from './random.ts';
import { createTimeline } from './timeline.ts';
import type { Timeline } from './timeline.ts';

/** When every simulation begins. */
export const epoch = Date.UTC(2026, 0, 1);

/** How likely each fault is at one call. Of a seed, until `until`. */
export interface FaultRates {
  readonly until: number;
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

export interface Stage {
  readonly random: Random;
  readonly timeline: Timeline;
  readonly rates: FaultRates;
  /** Whether faults still happen. */
  troubled(): boolean;
  tell(line: () => string): void;
  /** A stream for one call: however much it draws, the next call's is the same. */
  callRandom(): Random;
  /** An invariant is broken: the simulation ends here. */
  fail(what: string): void;
  readonly failure: string | undefined;
  readonly lines: readonly string[];
}

export function createStage(random: Random, rates: FaultRates, telling: boolean): Stage {
  const timeline = createTimeline(random.stream('order'));
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
    troubled: () => timeline.now() < rates.until,
    tell,
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
  alive(): boolean;
  kill(why: string): void;
  /** Stands still as long: what comes for it waits. */
  pause(milliseconds: number): void;
  /** Runs as this process does anything: not any more when it is dead, later when it is paused. */
  wake(run: () => void): void;
  /** Its own clock: off by its skew, and its timers die with it. */
  readonly clock: Clock;
}

export function startProcess(stage: Stage, name: string, onDeath: () => void = () => {}): Process {
  const { timeline } = stage;
  const startedAt = timeline.now();
  const skew = Math.round((stage.random.next() * 2 - 1) * stage.rates.skew);
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
    alive: () => !dead,
    kill(why) {
      if (dead) return;
      dead = true;
      stage.tell(() => `${name} dies ${why}`);
      onDeath();
    },
    pause(milliseconds) {
      stage.tell(() => `${name} stands still for ${Math.round(milliseconds)} ms`);
      pausedUntil = Math.max(pausedUntil, timeline.now() + milliseconds);
    },
    wake,
    clock: {
      now,
      monotonic: () => timeline.now(),
      after: (milliseconds, run) => timeline.after(milliseconds, () => wake(run)),
    },
  };
}

type Fate = 'good' | 'dies before' | 'dies after' | 'not sent' | 'answer lost' | 'throttled' | 'late' | 'slow';

export interface PortCall<T> {
  readonly port: string;
  readonly method: string;
  /** What it is about, for the story. */
  readonly about: string;
  /** What the far side does, in one moment. */
  readonly act: () => T | Promise<T>;
  /** The answer in a word or two. */
  readonly told?: (answer: T) => string;
  /** Called when it took effect, whether or not anybody hears of it. */
  readonly done?: (answer: T) => void;
  readonly signal?: AbortSignal;
  /** Milliseconds each way, about. */
  readonly latency?: number;
}

/** A call of a port on its way there and back. */
export function call<T>(stage: Stage, process: Process, asked: PortCall<T>): Promise<T> {
  const { timeline } = stage;
  const { port, method, about, signal, latency = 4 } = asked;
  const name = (): string => `${process.name} → ${port}.${method} ${about}`;
  return new Promise((resolve, reject) => {
    if (!process.alive()) return;
    const random = stage.callRandom();
    const fate = fateOf(stage, random, port);
    if (fate === 'dies before') return process.kill(`before ${port}.${method} ${about}`);
    if (stage.troubled() && random.chance(stage.rates.pause)) process.pause(random.between(1_000, 30_000));

    let over = false;
    const end = (settle: () => void): void =>
      process.wake(() => {
        if (over) return;
        over = true;
        signal?.removeEventListener('abort', aborted);
        settle();
      });
    const aborted = (): void => {
      if (over) return;
      over = true;
      reject(signal?.reason as Error);
    };
    if (signal?.aborted === true) return aborted();
    signal?.addEventListener('abort', aborted, { once: true });

    /** Once sent it arrives, or not, whatever became of the sender. */
    const survives = random.chance(0.5);
    const there = random.between(latency / 2, latency * 2);
    const back = random.between(latency / 2, latency * 2);
    const extra = fate === 'slow' ? random.between(200, 22_000) : fate === 'late' ? random.between(50, 40_000) : 0;
    const told = (what: string): void => stage.tell(() => `${name()}: ${what}`);

    if (fate === 'not sent' || fate === 'throttled') {
      timeline.after(there + back, () => {
        told(fate === 'throttled' ? 'throttled' : 'never arrived');
        end(() => reject(fate === 'throttled' ? new ThrottledError('slow down') : new Error('connection lost')));
      });
      return;
    }
    if (fate === 'late')
      timeline.after(there, () => {
        told('no answer; still on its way');
        end(() => reject(new Error('connection lost')));
      });
    timeline.after(there + extra, () => {
      if (!process.alive() && !survives) return;
      perform().then(
        (answer) => {
          stage.tell(() => `${name()}: ${asked.told?.(answer) ?? 'done'}${fate === 'good' ? '' : ` (${fate})`}`);
          asked.done?.(answer);
          if (fate === 'dies after') return process.kill(`after ${port}.${method} ${about}`);
          timeline.after(back, () =>
            end(() => (fate === 'answer lost' ? reject(new Error('connection lost')) : resolve(answer))),
          );
        },
        (error: unknown) => {
          told(`failed: ${error instanceof Error ? error.message : String(error)}`);
          end(() => reject(error instanceof Error ? error : new Error(String(error))));
        },
      );
    });
    async function perform(): Promise<T> {
      return asked.act();
    }
  });
}

function fateOf(stage: Stage, random: Random, port: string): Fate {
  if (!stage.troubled()) return 'good';
  const { crash, lost, throttled, late, slow } = stage.rates;
  let draw = random.next();
  const fates: readonly (readonly [Fate, number])[] = [
    ['dies before', crash / 2],
    ['dies after', crash / 2],
    ['not sent', lost / 2],
    ['answer lost', lost / 2],
    ['throttled', throttled],
    ['late', late],
    // Keys in KMS are slow now and then, and so is everything else.
    ['slow', port === 'key' ? slow * 3 : slow],
  ];
  for (const [fate, share] of fates) {
    if (draw < share) return fate;
    draw -= share;
  }
  return 'good';
}
