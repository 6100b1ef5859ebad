/**
 * The property-based part of the hostile-input suite for as long as wanted:
 *
 *   node test/suites/adversarial/hostile/long-run.ts --runs 1000000 [--seed 7] [--workers 2]
 *
 * Exits 1 at the first batch with a failure, after printing its seed, the smallest plan and what was sent.
 */
import { randomInt } from 'node:crypto';
import { parseArgs } from 'node:util';
import { failuresInWords, inWords } from './campaign.ts';
import { openPool } from './pool.ts';
import { objectProperty, requestProperty, runProperty } from './property.ts';

/** Plans are drawn all at once, and hold memory. */
const batch = 5_000;

const { values } = parseArgs({
  options: { runs: { type: 'string' }, seed: { type: 'string' }, workers: { type: 'string' } },
});
const runs = Number(values.runs ?? 100_000);
const firstSeed = Number(values.seed ?? randomInt(2 ** 30));
const pool = await openPool({ workers: Number(values.workers ?? 2) });
try {
  for (let done = 0; done < runs && process.exitCode === undefined; done += batch) {
    const options = { seed: firstSeed + done / batch, runs: Math.min(batch, runs - done) };
    const requests = await runProperty(pool, requestProperty, options);
    const objects = await runProperty(pool, objectProperty, { ...options, runs: Math.ceil(options.runs / 4) });
    for (const [title, summary] of Object.entries({ requests, objects })) {
      console.log(inWords(`${title}, seed ${options.seed}, ${done + options.runs} of ${runs}`, summary));
      if (summary.failures.length === 0) continue;
      console.log(failuresInWords(summary));
      process.exitCode = 1;
    }
  }
} finally {
  await pool.close();
}
