/** Draws plans, runs them like any other case, and reduces what fails to the smallest plan that still does. */
import * as fc from 'fast-check';
import { runCases, type PlantedCase, type Summary } from './campaign.ts';
import { planArbitrary, planCase } from './mutation.ts';
import { objectPlanArbitrary, objectPlanCase } from './object-mutation.ts';
import type { Pool } from './pool.ts';

export interface Property<T> {
  readonly name: string;
  readonly arbitrary: fc.Arbitrary<T>;
  readonly toCase: (id: string, plan: T) => PlantedCase;
}

export const requestProperty = { name: 'request', arbitrary: planArbitrary, toCase: planCase };
export const objectProperty = { name: 'object', arbitrary: objectPlanArbitrary, toCase: objectPlanCase };

/** One failing plan says it all, and a broken reader fails by the thousand. */
const shrunkAtMost = 2;

export async function runProperty<T>(
  pool: Pool,
  { name, arbitrary, toCase }: Property<T>,
  { seed, runs }: { readonly seed: number; readonly runs: number },
): Promise<Summary> {
  const plans = fc.sample(arbitrary, { seed, numRuns: runs });
  const summary = await runCases(
    pool,
    plans.map((plan, index) => toCase(`${name}/seed-${seed}/${index}`, plan)),
  );
  for (const failure of summary.failures.splice(0, shrunkAtMost).toReversed()) {
    const index = failure.id.slice(failure.id.lastIndexOf('/') + 1);
    const { counterexample } = await fc.check(
      fc.asyncProperty(arbitrary, async (plan) => (await runCases(pool, [toCase('', plan)])).failures.length === 0),
      { seed, path: index, interruptAfterTimeLimit: 20_000 },
    );
    const smallest = counterexample === null ? 'not seen again' : fc.stringify(counterexample[0]);
    summary.failures.unshift({ ...failure, faults: [...failure.faults, `smallest plan: ${smallest}`] });
  }
  return summary;
}
