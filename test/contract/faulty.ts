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
class InjectedFault extends Error {
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

/** Faults that were planned and all reached: in each, which call it hit, and how. */
export type VisitedPlan = readonly (Fault & { readonly port: string; readonly method: string })[];

export interface VisitOptions {
  readonly kinds?: readonly FaultKind[];
  /** Faults in one run. 2 also visits the calls that only happen because of a first fault: a retry, a release. */
  readonly depth?: number;
  /** Only each n-th plan is continued with a further fault. */
  readonly continueEach?: number;
  /** More calls than this in one run mean that the scenario does not end. */
  readonly callLimit?: number;
}

/**
 * Runs the scenario once undisturbed, then once for each plan of up to `depth` faults that it reaches: every call,
 * before and after, each kind. The scenario makes its world anew each time and asserts what must hold; what it was
 * disturbed by is in `faults.injected`.
 */
export async function visitEveryFault(
  scenario: (faults: Faults) => Promise<void>,
  { kinds = ['once', 'crash'], depth = 1, continueEach = 1, callLimit = 200 }: VisitOptions = {},
): Promise<readonly VisitedPlan[]> {
  const visited: VisitedPlan[] = [];
  let continued = 0;
  const undisturbed = createFaults();
  await scenario(undisturbed);
  if (undisturbed.calls.length === 0) throw new Error('the scenario made no call through a wrapped port');

  async function visitFrom(plan: readonly Fault[]): Promise<void> {
    for (const kind of kinds)
      for (const time of ['before', 'after'] as const)
        for (let call = (plan.at(-1)?.call ?? 0) + 1; ; call++) {
          if (call > callLimit) throw new Error(`the scenario still makes calls after ${callLimit}: it does not end`);
          const extended = [...plan, { call, time, kind }];
          const faults = createFaults(...extended);
          await scenario(faults);
          // Not reached: the run has fewer calls than this, and so there is no later point either.
          if (faults.injected.length < extended.length) break;
          visited.push(extended.map((fault, i) => ({ ...fault, ...nameOf(faults.injected[i]) })));
          // Nothing happens to a dead worker any more.
          if (extended.length === depth || kind === 'crash') continue;
          continued += 1;
          if (continued % continueEach === 0) await visitFrom(extended);
        }
  }
  await visitFrom([]);
  return visited;
}

function nameOf(call: Call | undefined): { port: string; method: string } {
  return { port: call?.port ?? '', method: call?.method ?? '' };
}
