/**
 * `npm run sim`: simulates one seed after the other and stops at the first that breaks something, with its story.
 *
 *   --seeds N    how many, 200 unless told otherwise
 *   --seed S     the first of them; alone: only this one
 *   --seconds T  begins no more after that time
 *   --jobs J     so many at once, as many as there are processors unless told otherwise
 *   --mutant M   with this mistake planted in what is simulated (mutants.ts)
 *   --story      tells all that happened in the last one, good or not; otherwise only what concerns what broke
 *   --coverage   says how often each fault, each code and each step was met
 */
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';
import { describeCounts } from './coverage.ts';
import { mutants } from './mutants.ts';
import { shortStory } from './story.ts';
import type { Stretch, StretchResult } from './stretch.ts';

const usage =
  'usage: npm run sim -- [--seeds N] [--seed S] [--seconds T] [--jobs J] [--mutant M] [--story] [--coverage]';
/** Long enough that starting a worker costs nothing beside it. */
const seedsOfStretch = 100;

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      seeds: { type: 'string' },
      seed: { type: 'string' },
      seconds: { type: 'string' },
      jobs: { type: 'string' },
      story: { type: 'boolean', default: false },
      coverage: { type: 'boolean', default: false },
      mutant: { type: 'string' },
    },
  });
  const first = Number(values.seed ?? '1');
  const count = Number(values.seeds ?? (values.seed === undefined ? '200' : '1'));
  const seconds = Number(values.seconds ?? '1e9');
  const jobs = Number(values.jobs ?? availableParallelism());
  if (![first, count, jobs].every(Number.isSafeInteger) || Number.isNaN(seconds) || jobs < 1) {
    process.stderr.write(`${usage}\n`);
    return 2;
  }
  const { mutant } = values;
  if (mutant !== undefined && !mutants.some(({ name }) => name === mutant)) {
    process.stderr.write(`there is no such mutant: ${mutants.map(({ name }) => `\n  ${name}`).join('')}\n`);
    return 2;
  }

  const begun = performance.now();
  const telling = values.story && count === 1;
  const until = Date.now() + seconds * 1_000;
  const stretches: Stretch[] = [];
  for (let seed = first; seed < first + count; seed += seedsOfStretch)
    stretches.push({ first: seed, count: Math.min(seedsOfStretch, first + count - seed), until, mutant, telling });
  const results = await simulateAll(stretches, jobs);

  const broken = results.find((result) => result.broken !== undefined)?.broken;
  if (broken !== undefined) {
    const { seed, failure, lines } = broken;
    process.stdout.write(`${(values.story ? lines : shortStory(lines, failure)).join('\n')}\n`);
    process.stdout.write(`seed ${seed} breaks: ${failure}\n  npm run sim -- --seed ${seed} --story\n`);
    return 1;
  }
  if (telling) process.stdout.write(`${results[0]?.lines?.join('\n')}\n`);
  if (values.coverage) process.stdout.write(`${describeCounts(together(results))}\n`);
  const sum = (of: 'done' | 'requests' | 'issued' | 'steps'): number =>
    results.reduce((total, result) => total + result[of], 0);
  const each = ((performance.now() - begun) / sum('done')).toFixed(1);
  process.stdout.write(
    `${sum('done')} seeds clean: ${sum('requests')} requests, ${sum('issued')} issued, ${sum('steps')} steps, ${each} ms a seed\n`,
  );
  return 0;
}

/** In the order of the seeds. Once something broke, only what comes before it is still waited for. */
async function simulateAll(stretches: readonly Stretch[], jobs: number): Promise<StretchResult[]> {
  const results: StretchResult[] = [];
  const running = new Map<number, Worker>();
  let next = 0;
  let end = stretches.length;

  async function work(): Promise<void> {
    for (let index = next++; index < end; index = next++) {
      const worker = new Worker(new URL('stretch.ts', import.meta.url), { workerData: stretches[index] });
      running.set(index, worker);
      const result = await resultOf(worker);
      running.delete(index);
      if (result === undefined) continue;
      results[index] = result;
      if (result.broken === undefined) continue;
      end = Math.min(end, index);
      for (const [later, other] of running) if (later > index) void other.terminate();
    }
  }
  await Promise.all(Array.from({ length: jobs }, work));
  return results.filter((_, index) => index <= end);
}

/** Nothing when it was ended before it had one. */
function resultOf(worker: Worker): Promise<StretchResult | undefined> {
  return new Promise((resolve, reject) => {
    worker.once('message', resolve);
    worker.once('error', reject);
    worker.once('exit', () => resolve(undefined));
  });
}

function together(results: readonly StretchResult[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const result of results)
    for (const [what, count] of result.counts) counts.set(what, (counts.get(what) ?? 0) + count);
  return counts;
}

process.exitCode = await main();
