/** A call of a port on its way there and back, and everything that can become of it. */
import { ThrottledError } from '../../core/ports/errors.ts';
import { fates } from './coverage.ts';
import type { Fault } from './coverage.ts';
import type { Random } from './random.ts';
import type { Process, Runtime } from './runtime.ts';
import { errorMessage } from '../../core/outcome/error-message.ts';

type Fate = 'good' | Fault;

/** A call that arrives late does so within this time. */
export const latestMilliseconds = 40_000;

export interface PortCall<T> {
  readonly port: string;
  readonly method: string;
  /** What it is about, for the trace. */
  readonly about: string;
  /** What the far side does, in one moment. */
  readonly act: () => T | Promise<T>;
  /** The answer in a word or two. */
  readonly told?: (answer: T) => string;
  /** Called when it took effect, whether or not the answer arrives. */
  readonly done?: (answer: T) => void;
  readonly signal?: AbortSignal;
  /** Milliseconds each way, about. */
  readonly latency?: number;
}

export function call<T>(runtime: Runtime, process: Process, asked: PortCall<T>): Promise<T> {
  const { timeline } = runtime;
  const { port, method, about, signal, latency = 4 } = asked;
  const name = (): string => `${process.name} → ${port}.${method} ${about}`;
  return new Promise((resolve, reject) => {
    if (!process.alive()) return;
    const random = runtime.callRandom();
    const fate = fateOf(runtime, random, port, method);
    if (runtime.troubled()) runtime.count(`call: ${port}.${method}`);
    // Counted when it happens, and not when it is meant to.
    const met = (): void => {
      if (fate !== 'good') runtime.count(`fault: ${port}.${method} ${fate}`);
    };
    if (fate === 'dies before') {
      met();
      return process.kill(`before ${port}.${method} ${about}`);
    }
    if (runtime.troubled() && random.chance(runtime.rates.pause)) process.pause(random.between(1_000, 30_000));

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
      process.failures += 1;
      reject(signal?.reason as Error);
    };
    if (signal?.aborted === true) return aborted();
    signal?.addEventListener('abort', aborted, { once: true });

    const fail = (error: Error): void =>
      end(() => {
        process.failures += 1;
        reject(error);
      });

    /** Once sent it arrives, or not, whatever became of the sender. */
    const survives = random.chance(0.5);
    const there = random.between(latency / 2, latency * 2);
    const back = random.between(latency / 2, latency * 2);
    const extra =
      fate === 'slow' ? random.between(200, 22_000) : fate === 'late' ? random.between(50, latestMilliseconds) : 0;
    const told = (what: string): void => runtime.tell(() => `${name()}: ${what}`);

    if (fate === 'not sent' || fate === 'throttled') {
      timeline.after(there + back, () => {
        met();
        told(fate === 'throttled' ? 'throttled' : 'never arrived');
        fail(fate === 'throttled' ? new ThrottledError('slow down') : new Error('connection lost'));
      });
      return;
    }
    if (fate === 'late')
      timeline.after(there, () => {
        met();
        told('no answer; still on its way');
        fail(new Error('connection lost'));
      });
    timeline.after(there + extra, () => {
      if (!process.alive() && !survives) return;
      perform().then(
        (answer) => {
          runtime.tell(() => `${name()}: ${asked.told?.(answer) ?? 'done'}${fate === 'good' ? '' : ` (${fate})`}`);
          asked.done?.(answer);
          if (fate !== 'late' && process.alive() && !over) met();
          if (fate === 'dies after') return process.kill(`after ${port}.${method} ${about}`);
          timeline.after(back, () =>
            fate === 'answer lost' ? fail(new Error('connection lost')) : end(() => resolve(answer)),
          );
        },
        (error: unknown) => {
          told(`failed: ${errorMessage(error)}`);
          fail(error instanceof Error ? error : new Error(String(error)));
        },
      );
    });
    async function perform(): Promise<T> {
      return asked.act();
    }
  });
}

/**
 * Calls that are rare while faults happen: the fewer there are in 260 lives (`--coverage` counts them), the higher the chance of a fault
 * of any kind, so that each kind meets each call about ten times.
 */
const oftener: Readonly<Record<string, number>> = {
  'api.createEvent': 0.03,
  'api.updateApproval': 0.03,
  'api.updateStatus': 0.03,
  'attest.invoke': 0.2,
  'attestations.countRefusal': 0.05,
  'attestations.findIdentity': 0.03,
  'attestations.findNode': 0.03,
  'attestations.observe': 0.3,
  'attestations.retire': 0.8,
  'key.sign': 0.03,
  'lease.create': 0.4,
  'ledger.complete': 0.04,
  'ledger.expire': 0.9,
  'ledger.find': 0.03,
  'ledger.release': 0.3,
  'ledger.takeOver': 0.3,
  'platform.challenge': 0.25,
  'platform.describe': 0.3,
  'platform.goneMachines': 0.05,
  'platform.verify': 0.03,
  'schedule.retire': 0.05,
};

function fateOf(runtime: Runtime, random: Random, port: string, method: string): Fate {
  if (!runtime.troubled()) return 'good';
  if (random.chance(oftener[`${port}.${method}`] ?? 0)) return random.pick(fates);
  const { crash, lost, throttled, late, slow } = runtime.rates;
  let draw = random.next();
  const shares: readonly (readonly [Fate, number])[] = [
    ['dies before', crash / 2],
    ['dies after', crash / 2],
    ['not sent', lost / 2],
    ['answer lost', lost / 2],
    ['throttled', throttled],
    ['late', late],
    // Keys in KMS are slow now and then, and so is everything else.
    ['slow', port === 'key' ? slow * 3 : slow],
  ];
  for (const [fate, share] of shares) {
    if (draw < share) return fate;
    draw -= share;
  }
  return 'good';
}

/** A client's own patience. */
export function within<T>(process: Process, milliseconds: number, work: () => Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = process.clock.after(milliseconds, () => {
      process.failures += 1;
      reject(new Error('no answer in time'));
    });
    work().then(
      (answer) => {
        cancel();
        resolve(answer);
      },
      (error: unknown) => {
        cancel();
        reject(error instanceof Error ? error : new Error(String(error)));
      },
    );
  });
}
