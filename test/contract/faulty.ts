/**
 * Makes any port fail: at the n-th call of a run, before it takes effect or after (the effect stays, the answer is
 * lost), once or for good. The points to fail at are not written down anywhere: a run is recorded, and its own calls
 * are the list, so a new call in the code is a new point in the test.
 *
 *     const visited = await visitEveryFault(async (faults) => {
 *       const ports = { ledger: faults.wrap('ledger', ledger), signer: faults.wrap('signer', signer) };
 *       …run the story until it ends, then assert what must hold…
 *     });
 */

/** `before`: nothing happened. `after`: it happened, but the caller never learns. */
export type FaultTime = 'before' | 'after';
/** `once`: one call fails and the code goes on. `crash`: the worker is dead: no later call of it does anything. */
export type FaultKind = 'once' | 'crash';

export interface Call {
  /** From 1, in the order the calls began, over all ports wrapped by one `Faults`. */
  readonly number: number;
  readonly port: string;
  readonly method: string;
}

export interface Fault {
  readonly call: number;
  readonly time: FaultTime;
  readonly kind: FaultKind;
}

/** What an injected fault throws. Its text names the call, so that a failing test tells where it was. */
export class InjectedFault extends Error {
  override readonly name = 'InjectedFault';
  readonly call: Call;
  constructor(call: Call, what: string) {
    super(`injected: ${what} call ${call.number}, ${call.port}.${call.method}`);
    this.call = call;
  }
}

export interface Faults {
  /** The same object with every function behind the plan. Functions of ports give promises; other properties pass. */
  wrap<T extends object>(port: string, object: T): T;
  /** All calls so far, also those that failed. */
  readonly calls: readonly Call[];
  /** Adds a fault to the plan; several may be planned, each for a call of its own. */
  failAt(call: number, time: FaultTime, kind?: FaultKind): void;
  /** The call of each planned fault that was reached. */
  readonly injected: readonly Call[];
  /** A planned crash has happened: what the code answers from now on was never sent. */
  readonly crashed: boolean;
}

export function createFaults(...plan: readonly Fault[]): Faults {
  const faults = new Map(plan.map((fault) => [fault.call, fault]));
  const calls: Call[] = [];
  const injected: Call[] = [];
  let crashed = false;

  async function run(call: Call, work: () => unknown): Promise<unknown> {
    // A dead worker's promises would never settle; here they reject, so that a test can wait for them.
    if (crashed) throw new InjectedFault(call, 'dead before');
    const fault = faults.get(call.number);
    if (fault === undefined) {
      const result = await work();
      if (crashed) throw new InjectedFault(call, 'dead after');
      return result;
    }
    injected.push(call);
    if (fault.time === 'after') await work();
    if (fault.kind === 'crash') crashed = true;
    throw new InjectedFault(call, fault.time);
  }

  return {
    wrap<T extends object>(port: string, object: T): T {
      return new Proxy(object, {
        get(target, property, receiver) {
          const value: unknown = Reflect.get(target, property, receiver);
          if (typeof value !== 'function' || typeof property === 'symbol') return value;
          return (...parameters: unknown[]) => {
            const call = { number: calls.length + 1, port, method: property };
            calls.push(call);
            return run(call, () => Reflect.apply(value, target, parameters));
          };
        },
      });
    },
    calls,
    failAt(call, time, kind = 'once') {
      faults.set(call, { call, time, kind });
    },
    injected,
    get crashed() {
      return crashed;
    },
  };
}

/** A fault that was planned and reached: which call it hit, and how. */
export interface VisitedFault extends Fault {
  readonly port: string;
  readonly method: string;
}

/**
 * Runs the scenario once undisturbed, then once per (call, before | after, kind), until a planned call number is no
 * longer reached: so calls that only happen because of the fault (a retry, a release) are points of their own too.
 * For pairs of faults the scenario plans the second with `faults.failAt`.
 */
export async function visitEveryFault(
  scenario: (faults: Faults, fault: Fault | undefined) => Promise<void>,
  kinds: readonly FaultKind[] = ['once', 'crash'],
  limit = 200,
): Promise<readonly VisitedFault[]> {
  const visited: VisitedFault[] = [];
  const undisturbed = createFaults();
  await scenario(undisturbed, undefined);
  if (undisturbed.calls.length === 0) throw new Error('the scenario made no call through a wrapped port');

  for (const kind of kinds)
    for (const time of ['before', 'after'] as const)
      for (let call = 1; ; call++) {
        if (call > limit) throw new Error(`the scenario still makes calls after ${limit}: it does not end`);
        const fault: Fault = { call, time, kind };
        const faults = createFaults(fault);
        await scenario(faults, fault);
        const hit = faults.injected[0];
        if (hit === undefined) break;
        visited.push({ ...fault, port: hit.port, method: hit.method });
      }
  return visited;
}
