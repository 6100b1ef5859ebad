/**
 * `npm run sim`: simulates one seed after the other and stops at the first that breaks something, with its story.
 *
 *   --seeds N    how many, 200 unless told otherwise
 *   --seed S     the first of them; alone: only this one
 *   --seconds T  begins no more after that time
 *   --mutant M   with this mistake planted in what is simulated (mutants.ts)
 *   --story      tells all that happened in the last one, good or not; otherwise only what concerns what broke
 *   --coverage   says how often each fault, each code and each step was met
 */
import { parseArgs } from 'node:util';

const usage = 'usage: npm run sim -- [--seeds N] [--seed S] [--seconds T] [--mutant M] [--story] [--coverage]';

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      seeds: { type: 'string' },
      seed: { type: 'string' },
      seconds: { type: 'string' },
      story: { type: 'boolean', default: false },
      coverage: { type: 'boolean', default: false },
      mutant: { type: 'string' },
    },
  });
  const first = Number(values.seed ?? '1');
  const count = Number(values.seeds ?? (values.seed === undefined ? '200' : '1'));
  const seconds = Number(values.seconds ?? '1e9');
  if (![first, count].every(Number.isSafeInteger) || Number.isNaN(seconds)) {
    process.stderr.write(`${usage}\n`);
    return 2;
  }
  if (values.mutant !== undefined) {
    const { mutants, plant } = await import('./mutants.ts');
    const mutant = mutants.find(({ name }) => name === values.mutant);
    if (mutant === undefined) {
      process.stderr.write(`there is no such mutant: ${mutants.map(({ name }) => `\n  ${name}`).join('')}\n`);
      return 2;
    }
    plant(mutant);
  }
  // Only now: what is planted must be there when it is loaded.
  const { describeCounts } = await import('./coverage.ts');
  const { createAuthorities } = await import('./requests.ts');
  const { simulate } = await import('./simulation.ts');
  const { shortStory } = await import('./story.ts');
  const authorities = await createAuthorities();
  const counts = new Map<string, number>();
  const begun = performance.now();
  let [done, steps, requests, issued] = [0, 0, 0, 0];
  const elapsed = (): number => performance.now() - begun;
  for (let seed = first; seed < first + count && elapsed() < seconds * 1_000; seed += 1) {
    const telling = values.story && count === 1;
    const outcome = await simulate(seed, authorities, { telling, counts });
    done += 1;
    steps += outcome.steps;
    requests += outcome.requests;
    issued += outcome.issued;
    const { failure } = outcome;
    if (failure === undefined) {
      if (telling) process.stdout.write(`${outcome.lines.join('\n')}\n`);
      continue;
    }
    const { lines } = await simulate(seed, authorities, { telling: true });
    process.stdout.write(`${(values.story ? lines : shortStory(lines, failure)).join('\n')}\n`);
    process.stdout.write(`seed ${seed} breaks: ${failure}\n  npm run sim -- --seed ${seed} --story\n`);
    return 1;
  }
  if (values.coverage) process.stdout.write(`${describeCounts(counts)}\n`);
  const each = (elapsed() / done).toFixed(1);
  process.stdout.write(
    `${done} seeds clean: ${requests} requests, ${issued} issued, ${steps} steps, ${each} ms a seed\n`,
  );
  return 0;
}

process.exitCode = await main();
