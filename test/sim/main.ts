/** `npm run sim`: simulates one seed after the other and stops at the first that breaks something, with its trace. */
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';
import { describeCounts } from './coverage.ts';
import { allMutants } from './mutants.ts';
import { relevantTrace } from './trace.ts';
import type { Stretch, StretchResult } from './stretch.ts';
import { errorMessage } from '../../core/outcome/error-message.ts';

const help = `Simulates one seed after the other and stops at the first that breaks something. docs/internals/simulator.md

Usage: npm run sim -- [options]

  --seeds N    how many (default: 200)
  --seed S     the first of them; alone: only this one
  --seconds T  begins no more after that time
  --jobs J     so many at once (default: as many as there are processors)
  --mutant M   with this mistake planted in what is simulated (test/sim/mutants.ts)
  --trace      of one seed all that happened, good or not; otherwise only what concerns what broke
  --coverage   says how often each fault, each code and each step was met
  --help

Examples:
  npm run sim -- --seeds 10000
  npm run -s sim -- --seed 7 --trace
  npm run sim -- --mutant 'any key renews a machine' --seeds 2000

Exit codes: 0 clean, 1 a seed breaks, 2 usage.
`;
/** Long enough that starting a worker costs nothing beside it. */
const seedsOfStretch = 100;

interface Options {
  readonly first: number;
  readonly count: number;
  readonly seconds: number;
  readonly jobs: number;
  readonly mutant: string | undefined;
  readonly trace: boolean;
  readonly coverage: boolean;
}

/** Or what to say instead of simulating: `help`, or what is wrong. */
export function optionsOf(argv: readonly string[]): Options | { readonly wrong: string } | 'help' {
  let values;
  try {
    ({ values } = parseArgs({
      args: [...argv],
      options: {
        seeds: { type: 'string' },
        seed: { type: 'string' },
        seconds: { type: 'string' },
        jobs: { type: 'string' },
        trace: { type: 'boolean', default: false },
        coverage: { type: 'boolean', default: false },
        mutant: { type: 'string' },
        help: { type: 'boolean', short: 'h', default: false },
      },
    }));
  } catch (error) {
    return { wrong: errorMessage(error) };
  }
  if (values.help) return 'help';
  const { mutant, trace, coverage } = values;
  const [first, count, jobs] = [
    wholeNumber(values.seed ?? '1', 0),
    wholeNumber(values.seeds ?? (values.seed === undefined ? '200' : '1'), 1),
    wholeNumber(values.jobs ?? `${availableParallelism()}`, 1),
  ];
  if (first === undefined) return { wrong: '--seed is a number' };
  if (count === undefined) return { wrong: '--seeds is a number from 1 on' };
  if (jobs === undefined) return { wrong: '--jobs is a number from 1 on' };
  const seconds = Number(values.seconds ?? '1e9');
  if (!(seconds > 0)) return { wrong: '--seconds is a number above 0' };
  if (trace && count > 1) return { wrong: '--trace is for one seed: --seed S' };
  if (mutant !== undefined && !allMutants.some(({ breaks }) => breaks === mutant))
    return { wrong: `there is no such mutant: ${allMutants.map(({ breaks }) => `\n  ${breaks}`).join('')}` };
  return { first, count, seconds, jobs, mutant, trace, coverage };
}

function wholeNumber(text: string, least: number): number | undefined {
  const number = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  return Number.isSafeInteger(number) && number >= least ? number : undefined;
}

async function main(): Promise<number> {
  const options = optionsOf(process.argv.slice(2));
  if (options === 'help') {
    process.stdout.write(help);
    return 0;
  }
  if ('wrong' in options) {
    process.stderr.write(`sim: ${options.wrong}\nsim: --help shows all options\n`);
    return 2;
  }
  const { first, count, seconds, jobs, mutant, trace, coverage } = options;
  const begun = performance.now();
  const until = Date.now() + seconds * 1_000;
  const stretches: Stretch[] = [];
  for (let seed = first; seed < first + count; seed += seedsOfStretch)
    stretches.push({
      first: seed,
      count: Math.min(seedsOfStretch, first + count - seed),
      until,
      mutant,
      telling: trace,
    });
  const results = await simulateAll(stretches, jobs);

  const broken = results.find((result) => result.broken !== undefined)?.broken;
  if (broken !== undefined) {
    const { seed, failure, lines } = broken;
    process.stdout.write(`${(trace ? lines : relevantTrace(lines, failure)).join('\n')}\n`);
    process.stdout.write(`seed ${seed} breaks: ${failure}\n  npm run sim -- --seed ${seed} --trace\n`);
    return 1;
  }
  if (trace) process.stdout.write(`${results[0]?.lines?.join('\n')}\n`);
  if (coverage) process.stdout.write(`${describeCounts(together(results))}\n`);
  const sum = (of: 'done' | 'requests' | 'issued' | 'steps'): number =>
    results.reduce((total, result) => total + result[of], 0);
  // Nothing simulated is nothing shown.
  if (sum('done') === 0) {
    process.stderr.write('sim: --seconds was over before the first seed was begun\n');
    return 2;
  }
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

if (import.meta.main) process.exitCode = await main();
