/** `npm run bench`: how fast Countersign and kube-controller-manager issue certificates, measured in turns. docs/internals/performance.md */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { helpText, parseOptions } from './options.ts';
import { withComparisons } from './report/page.ts';
import { foldProfilesIn } from './report/profile-folding.ts';
import { renderResults } from './report/report.ts';
import { run } from './run.ts';
import { errorMessage } from '../core/outcome/error-message.ts';

const page = join(import.meta.dirname, '../docs/internals/performance.md');

const exitCodes = { ok: 0, failed: 1, usage: 2 } as const;

async function main(argv: readonly string[]): Promise<number> {
  const parsed = parseOptions(argv);
  if (parsed.kind === 'help') {
    process.stdout.write(helpText);
    return exitCodes.ok;
  }
  if (parsed.kind === 'wrong') {
    process.stderr.write(`bench: ${parsed.message}\nbench: --help shows all options\n`);
    return exitCodes.usage;
  }
  const { options } = parsed;
  const results = await run(options, say);
  const file = options.json ?? join(import.meta.dirname, 'results', `${results.date.replaceAll(':', '-')}.json`);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${JSON.stringify(results, null, 2)}\n`);
  process.stdout.write(`\n${renderResults(results)}`);
  if (options.docs) writeFileSync(page, withComparisons(readFileSync(page, 'utf8'), results));
  const folded =
    options.profile === undefined ? [] : foldProfilesIn(options.profile, resolve(import.meta.dirname, '..'));
  process.stderr.write(`\n${file}\n${folded.map((name) => `${join(options.profile ?? '', name)}\n`).join('')}`);
  return results.failed.length === 0 ? exitCodes.ok : exitCodes.failed;
}

function say(what: string): void {
  process.stderr.write(`… ${what}\n`);
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`bench: ${errorMessage(error)}\n`);
  process.exitCode = exitCodes.failed;
}
