/**
 * `npm test` and `npm run test:deep`: installs the test tools, runs the suites of a tier, and holds the run against the
 * committed list of suites, so that a suite that stopped running is a failure.
 */
import { execFileSync } from 'node:child_process';
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import type { Tier } from './harness/determinism/tier.ts';
import { runVitest } from './run-vitest.ts';
import type { VitestRun } from './run-vitest.ts';
import { filesOf, filesOfPart, holdAgainst, isSkipped, partOfCommit, partNumbers, updated } from './suite-list.ts';
import type { Ran, SuiteList, PartNumber } from './suite-list.ts';
import { inContinuousIntegration } from './tools/tools.ts';

/** `--fast` leaves out what takes longer. */
const fastSeconds = 20;
const help = `Installs the test tools, runs every suite of a tier, and holds the run against test/suites.json: what did not run is a failure.

Usage: npm test [-- [FILE…] [options]]
       npm run test:deep [-- [--part 1|2|3|4|5|commit] [FILE…] [options]]

  FILE           only test files with this in their name, and no tools are installed before
  --unit         only what needs no tool and no network, in a minute or two
  --fast         without the suites that take more than ${fastSeconds} seconds in test/suites.json
  --deep         the deep tier: mutants, races, long simulations (npm run test:deep)
  --part PART    one of five equally long parts of the deep tier; commit: the part that CI runs at this commit
  --update       writes tests and seconds of what ran to test/suites.json, and a whole deep run to test/deep-run.json
  --help
  Anything else is given to vitest: -t PATTERN, --no-file-parallelism …

Examples:
  npm test
  npm test -- test/suites/control-plane/approval
  npm test -- test/unit/cli -t help
  npm run test:deep -- test/suites/simulation/seeds

Exit codes: 0 all that the list has ran and passed, 1 not so, 2 wrong options.
`;
const root = resolve(import.meta.dirname, '..');
const listFile = join(root, 'test/suites.json');
const deepRunFile = join(root, 'test/deep-run.json');

const argv = process.argv.slice(2);
const { values, positionals, tokens } = parseArgs({
  args: argv,
  allowPositionals: true,
  strict: false,
  tokens: true,
  options: {
    unit: { type: 'boolean' },
    fast: { type: 'boolean' },
    deep: { type: 'boolean' },
    part: { type: 'string' },
    update: { type: 'boolean' },
    help: { type: 'boolean', short: 'h' },
  },
});
const has = (option: 'unit' | 'fast' | 'deep' | 'update' | 'help'): boolean => values[option] === true;
const tier: Tier = has('deep') ? 'deep' : 'default';
const { suites } = JSON.parse(readFileSync(listFile, 'utf8')) as { readonly suites: SuiteList };
const present = globSync('test/{unit,suites}/**/*.test.ts', { cwd: root }).toSorted();

process.exitCode = await main();

async function main(): Promise<number> {
  if (has('help')) {
    process.stdout.write(help);
    return 0;
  }
  const part = askedPart();
  if (part === 'wrong') {
    process.stderr.write('--part takes 1 to 5 or commit, and goes with --deep\n');
    return 2;
  }
  return positionals.length > 0 ? runFiles() : runTier(part);
}

function askedPart(): PartNumber | 'wrong' | undefined {
  const { part } = values;
  if (part === undefined) return undefined;
  if (tier !== 'deep') return 'wrong';
  if (part === 'commit') return partOfCommit(currentCommit());
  return partNumbers.find((each) => String(each) === part) ?? 'wrong';
}

/** Sources without a repository, such as a release archive, run the first part. */
function currentCommit(): string {
  try {
    return git('rev-parse', 'HEAD');
  } catch {
    return '0';
  }
}

function git(...args: readonly string[]): string {
  return execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim();
}

/** What the user wrote for vitest: everything but our own options. */
function forVitest(): string[] {
  const own = new Set(
    tokens.flatMap((token) => {
      if (token.kind !== 'option' || !['unit', 'fast', 'deep', 'part', 'update'].includes(token.name)) return [];
      return token.inlineValue === false ? [token.index, token.index + 1] : [token.index];
    }),
  );
  return argv.filter((_, index) => !own.has(index));
}

async function runFiles(): Promise<number> {
  const run = await runVitest(tier, forVitest());
  const { passed, failed, skipped } = count([run]);
  // Of a file of which only some tests ran, neither tests nor seconds are known.
  const narrowed = tokens.some((token) => token.kind === 'option' && ['t', 'testNamePattern'].includes(token.name));
  if (has('update') && failed === 0 && !narrowed) writeList(run.ran);
  printFailures(run.ran);
  return close(passed, failed, skipped);
}

async function runTier(part: PartNumber | undefined): Promise<number> {
  const began = performance.now();
  const expected = expectedFiles(part);
  const unit = expected.filter(isUnit);
  const real = expected.filter((file) => !isUnit(file));

  const tools = installTools(real);
  const runs: VitestRun[] = [];
  if (unit.length > 0) runs.push(await runVitest(tier, [...forVitest(), ...unit]));
  const toolProblem = await tools;
  if (real.length > 0) runs.push(await runVitest(tier, [...forVitest(), ...real]));

  const ran: VitestRun['ran'] = new Map(runs.flatMap((run) => [...run.ran]));
  printSlowest(ran);
  const { passed, failed, skipped } = count(runs);
  if (toolProblem !== undefined) process.stderr.write(`${toolProblem}\n`);
  if (has('update') && failed === 0 && toolProblem === undefined) {
    writeList(ran);
    if (tier === 'deep' && part === undefined) recordDeepRun(passed, skipped, performance.now() - began);
    return close(passed, 0, skipped);
  }
  const held = holdAgainst(suites, ran, { tier, expected, present, inCi: inContinuousIntegration() });
  for (const line of held.skipped) process.stderr.write(`${line}\n`);
  printFailures(ran);
  for (const line of held.failures) process.stdout.write(`FAILED: ${line}\n`);
  return close(passed, failed + held.failures.length + (toolProblem === undefined ? 0 : 1), skipped);
}

function isUnit(file: string): boolean {
  return file.startsWith('test/unit/');
}

function expectedFiles(part: PartNumber | undefined): string[] {
  if (tier === 'deep') return part === undefined ? filesOf(suites, 'deep') : filesOfPart(suites, part);
  // What is not listed runs, so that `--update` can list it.
  const unlisted = present.filter((file) => suites[file] === undefined);
  const listed = filesOf(suites, 'default').filter((file) => !has('fast') || suites[file]!.seconds <= fastSeconds);
  return [...unlisted, ...listed].filter((file) => !has('unit') || isUnit(file));
}

/** While unit tests run, which need none. Gives why the run must fail: in CI a suite must not be skipped. */
async function installTools(files: readonly string[]): Promise<string | undefined> {
  if (files.length === 0) return undefined;
  // Imported here: `--help` and FILE need none of it.
  const [{ installFor }, { toolsNeededBy }] = await Promise.all([
    import('./tools/install.ts'),
    import('./tools/needs.ts'),
  ]);
  const { missing } = await installFor(toolsNeededBy(files));
  if (missing.size === 0 || !inContinuousIntegration()) return undefined;
  return ['CI must have every test tool:', ...missing.values()].join('\n');
}

interface Counts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

function count(runs: readonly VitestRun[]): Counts {
  const tests = runs.flatMap(({ ran }) => [...ran.values()].flatMap((file) => file.tests));
  const red = (run: VitestRun): number => {
    const seen = [...run.ran.values()];
    const failed = seen.flatMap((file) => file.tests).filter((status) => status === 'failed').length;
    const broken = seen.filter((file) => file.broken).length;
    // vitest also fails for what belongs to no test, such as a rejection that is caught nowhere.
    return failed + broken === 0 && run.code !== 0 ? 1 : failed + broken;
  };
  return {
    passed: tests.filter((status) => status === 'passed').length,
    failed: runs.reduce((sum, run) => sum + red(run), 0),
    skipped: tests.filter(isSkipped).length,
  };
}

function printSlowest(ran: Ran): void {
  const slowest = [...ran].toSorted(([, a], [, b]) => b.seconds - a.seconds).slice(0, 10);
  process.stdout.write('The slowest files:\n');
  for (const [file, { seconds }] of slowest)
    process.stdout.write(`${String(Math.round(seconds)).padStart(6)} s  ${file}\n`);
}

/** After everything else: the end of a log, which is often all that a reader has, names each failed test. */
function printFailures(ran: VitestRun['ran']): void {
  for (const [file, { failures }] of ran)
    for (const failure of failures) process.stdout.write(`FAILED: ${file} > ${failure}\n`);
}

function writeList(ran: Ran): void {
  writeFileSync(listFile, `${JSON.stringify({ suites: updated(suites, ran, { tier, present }) }, null, 2)}\n`);
}

/** Only what was tested: a commit, all of it and nothing but it. */
function recordDeepRun(passed: number, skipped: number, milliseconds: number): void {
  const changed = git('status', '--porcelain', '--', ':!test/suites.json', ':!test/deep-run.json');
  if (changed !== '' || skipped > 0) {
    const why = changed === '' ? `${skipped} tests were skipped` : 'the working tree has changes';
    process.stderr.write(`The deep run is not recorded: ${why}.\n`);
    return;
  }
  const record = { commit: currentCommit(), minutes: Math.ceil(milliseconds / 60_000), tests: passed };
  writeFileSync(deepRunFile, `${JSON.stringify(record, null, 2)}\n`);
}

function close(passed: number, failed: number, skipped: number): number {
  process.stdout.write(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}\n`);
  return failed === 0 ? 0 : 1;
}
