import { parseArgs } from 'node:util';
import { makePairs } from './certificate.ts';
import { runScenario } from './run.ts';
import type { Result } from './run.ts';
import { scenarios } from './scenarios.ts';
import { tableOf } from './report.ts';
import { errorMessage } from '../../../core/outcome/error-message.ts';

const help = `Many requests at once over models of KMS, Lambda, DynamoDB and the API server, in virtual time: how long until all
are signed, beside what the quotas allow, and what it costs. The relay's code is the real one. docs/internals/scale.md

Usage: npm run -s sim:scale -- [NAME…] [options]

  NAME         a scenario, or the beginning of some up to a dash (default: all)
  --list       their names
  --seed N     (default: 1)
  -o FORMAT    table (default) or json
  --help

Examples:
  npm run -s sim:scale -- one-10k            ten thousand requests at once, one cluster, default limits
  npm run -s sim:scale -- many- outage-      five hundred clusters that share one KMS quota; KMS away for a minute
  npm run -s sim:scale -- one- -o json | jq '.[].ratio'

Exit codes: 0, 2 usage.
`;

async function main(): Promise<number> {
  let parsed;
  try {
    parsed = parseArgs({
      allowPositionals: true,
      options: {
        list: { type: 'boolean', default: false },
        seed: { type: 'string', default: '1' },
        output: { type: 'string', short: 'o', default: 'table' },
        help: { type: 'boolean', short: 'h', default: false },
      },
    });
  } catch (error) {
    return wrong(errorMessage(error));
  }
  const { values, positionals } = parsed;
  if (values.help) {
    process.stdout.write(help);
    return 0;
  }
  const chosen = scenarios.filter(
    ({ name }) => positionals.length === 0 || positionals.some((wanted) => matches(wanted, name)),
  );
  const seed = Number(values.seed);
  const unknown = positionals.find((wanted) => !scenarios.some(({ name }) => matches(wanted, name)));
  if (unknown !== undefined) return wrong(`no scenario "${unknown}"; --list shows them`);
  if (!Number.isSafeInteger(seed)) return wrong('--seed is a number');
  if (!['table', 'json'].includes(values.output)) return wrong('-o is table or json');
  if (values.list) {
    process.stdout.write(chosen.map(({ name }) => `${name}\n`).join(''));
    return 0;
  }
  const pairs = await makePairs();
  const results: Result[] = [];
  for (const scenario of chosen) {
    const result = await runScenario(scenario, pairs, seed);
    results.push(result);
    if (values.output === 'table') process.stdout.write(tableOf([result], results.length === 1));
  }
  if (values.output === 'json') process.stdout.write(`${JSON.stringify(results, undefined, 2)}\n`);
  return 0;
}

function wrong(message: string): number {
  process.stderr.write(`sim:scale: ${message}\n`);
  return 2;
}

/** A whole name, or a beginning that ends in a dash, is that and nothing more. */
function matches(wanted: string, name: string): boolean {
  return wanted.endsWith('-') ? name.startsWith(wanted) : name === wanted;
}

process.exitCode = await main();
