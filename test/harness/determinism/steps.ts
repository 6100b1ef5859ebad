/**
 * Counts what a piece of code does, so that a test can bound its cost without a clock: V8 counts how often each function and
 * each block of the project's sources is run (precise coverage). The same work has the same count on any machine. What
 * functions of Node and of the language do inside is not counted.
 *
 * For a program of its own (`countedSteps`): the optimizing compilers lose counts, so they are switched off.
 */
import { execFileSync } from 'node:child_process';
import { Session } from 'node:inspector/promises';

/** Gives a function that says how many functions and blocks of core/ `work` runs. */
export async function startCounting(): Promise<(work: () => unknown) => Promise<number>> {
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  return async (work) => {
    // Takes what was counted until now.
    await session.post('Profiler.takePreciseCoverage');
    await work();
    const { result } = await session.post('Profiler.takePreciseCoverage');
    return result
      .filter(({ url }) => url.includes('/core/'))
      .flatMap(({ functions }) => functions.flatMap(({ ranges }) => ranges))
      .reduce((sum, { count }) => sum + count, 0);
  };
}

/** Runs a program that prints its counts by name as JSON. */
export function countedSteps(program: string): Readonly<Record<string, number>> {
  const printed = execFileSync(process.execPath, ['--no-opt', '--no-maglev', program], { encoding: 'utf8' });
  return JSON.parse(printed) as Readonly<Record<string, number>>;
}
