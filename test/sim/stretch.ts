/**
 * A worker that simulates a stretch of seeds. In a heap of its own: what dies in a simulation never hears the end of its
 * signals, and those Node keeps for as long as the heap lives (0.4 MB a seed).
 */
import { parentPort, workerData } from 'node:worker_threads';

export interface Stretch {
  readonly first: number;
  readonly count: number;
  /** No seed begins later; of `Date.now()`. */
  readonly until: number;
  readonly mutant: string | undefined;
  /** Of a seed that breaks nothing, too. */
  readonly telling: boolean;
}

export interface StretchResult {
  readonly done: number;
  readonly steps: number;
  readonly requests: number;
  readonly issued: number;
  readonly counts: ReadonlyMap<string, number>;
  /** Of the one that was to be told. */
  readonly lines?: readonly string[];
  /** The first that broke something; no more were begun. */
  readonly broken?: { readonly seed: number; readonly failure: string; readonly lines: readonly string[] };
}

async function simulateStretch({ first, count, until, mutant, telling }: Stretch): Promise<StretchResult> {
  if (mutant !== undefined) {
    const { allMutants } = await import('./mutants.ts');
    const { plant } = await import('../harness/mutants/plant.ts');
    const chosen = allMutants.find(({ breaks }) => breaks === mutant);
    if (chosen === undefined) throw new Error(`there is no mutant ${mutant}`);
    plant(chosen);
  }
  // Only now: what is planted must be there when it is loaded.
  const { createAuthorities } = await import('./actors/requests.ts');
  const { simulate } = await import('./simulation.ts');
  const authorities = await createAuthorities();
  const counts = new Map<string, number>();
  let [done, steps, requests, issued] = [0, 0, 0, 0];
  let lines: readonly string[] | undefined;
  for (let seed = first; seed < first + count && Date.now() < until; seed += 1) {
    const outcome = await simulate(seed, authorities, { telling, counts });
    done += 1;
    steps += outcome.steps;
    requests += outcome.requests;
    issued += outcome.issued;
    if (telling) ({ lines } = outcome);
    const { failure } = outcome;
    if (failure === undefined) continue;
    // Once more from the same seed, and told this time.
    const told = await simulate(seed, authorities, { telling: true });
    return { done, steps, requests, issued, counts, broken: { seed, failure, lines: told.lines } };
  }
  return { done, steps, requests, issued, counts, ...(lines === undefined ? {} : { lines }) };
}

// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a port between threads, not between origins
parentPort?.postMessage(await simulateStretch(workerData as Stretch));
