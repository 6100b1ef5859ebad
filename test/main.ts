/**
 * `npm test`: gets the test tools, runs every suite, and holds the run against the committed list of suites, so that a
 * suite that silently stopped running is a failure and not a quieter green.
 */
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { holdAgainst, isSkipped } from './suite-list.ts';
import type { SuiteList } from './suite-list.ts';
import { inContinuousIntegration } from './tools/tools.ts';

const help = `Gets the test tools, runs every suite, and holds the run against test/suites.json: what did not run is a failure.

Usage: npm test [-- [FILE…] [options]]

  FILE      only test files with this in their name, and no tools are got before
  --unit    only what needs no tool and no network, in a minute or two
  --fast    without the suites marked slow in test/suites.json
  --update  rewrites the entries of test/suites.json that this run covers (not with FILE)
  --help
  Anything else is given to vitest: -t PATTERN, --no-file-parallelism …

Examples:
  npm test
  npm test -- test/suites/approval
  npm test -- test/unit/cli -t help
  npm run test:unit

Exit codes: 0 all that the list has ran and passed, 1 not so.
`;
const root = resolve(import.meta.dirname, '..');
const listFile = join(root, 'test/suites.json');

interface Report {
  readonly testResults: readonly {
    readonly name: string;
    readonly message?: string;
    readonly status?: string;
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[];
  }[];
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  strict: false,
  options: {
    unit: { type: 'boolean' },
    fast: { type: 'boolean' },
    update: { type: 'boolean' },
    help: { type: 'boolean', short: 'h' },
  },
});
const { suites } = JSON.parse(readFileSync(listFile, 'utf8')) as { readonly suites: SuiteList };
const slow = Object.entries(suites).flatMap(([file, { slow: isSlow }]) => (isSlow === true ? [file] : []));
const whole = positionals.length === 0;

process.exitCode = await main();

async function main(): Promise<number> {
  if (values['help'] === true) {
    process.stdout.write(help);
    return 0;
  }
  const scratch = mkdtempSync(join(tmpdir(), 'countersign-test-'));
  try {
    return await run(scratch);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

async function run(scratch: string): Promise<number> {
  if (values['unit'] !== true && whole) {
    const { installAll } = await import('./tools/install.ts');
    await installAll();
  }
  const reportFile = join(scratch, 'report.json');
  const code = await vitest([
    'run',
    ...(values['unit'] === true ? ['--project', 'unit'] : []),
    ...(values['fast'] === true ? slow.flatMap((file) => ['--exclude', file]) : []),
    '--reporter=default',
    '--reporter=json',
    `--outputFile.json=${reportFile}`,
    ...process.argv.slice(2).filter((word) => !['--unit', '--fast', '--update'].includes(word)),
  ]);
  let report: Report;
  try {
    report = JSON.parse(readFileSync(reportFile, 'utf8')) as Report;
  } catch {
    process.stderr.write('vitest left no report; see above\n');
    return 1;
  }
  return judge(report, code);
}

function vitest(args: readonly string[]): Promise<number> {
  const child = spawn(process.execPath, [join(root, 'node_modules/vitest/vitest.mjs'), ...args], {
    cwd: root,
    stdio: 'inherit',
  });
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal));
  return new Promise((done, fail) => {
    child.on('error', fail);
    child.on('exit', (code) => done(code ?? 1));
  });
}

function judge(report: Report, vitestCode: number): number {
  const ran = new Map(
    report.testResults.map(({ name, assertionResults }) => [
      relative(root, name),
      assertionResults.map(({ status }) => status),
    ]),
  );
  const statuses = [...ran.values()].flat();
  const passed = statuses.filter((status) => status === 'passed').length;
  const skipped = statuses.filter(isSkipped).length;
  // A file that could not be loaded has no test that failed.
  const failedFiles = report.testResults.filter(
    ({ status, assertionResults }) =>
      status === 'failed' && !assertionResults.some((result) => result.status === 'failed'),
  ).length;
  const failedTests = statuses.filter((status) => status === 'failed').length + failedFiles;

  if (values['update'] === true && whole && failedTests === 0) {
    update(ran);
    return close(passed, vitestCode === 0 ? 0 : 1, skipped);
  }
  const held = whole
    ? holdAgainst(suites, ran, { expected: isExpected, inCi: inContinuousIntegration() })
    : { failures: [], skipped: [] };
  for (const line of [...held.skipped, ...held.failures]) process.stderr.write(`${line}\n`);
  const failed = failedTests + held.failures.length;
  return close(passed, vitestCode !== 0 && failed === 0 ? 1 : failed, skipped);
}

function close(passed: number, failed: number, skipped: number): number {
  process.stdout.write(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}\n`);
  return failed === 0 ? 0 : 1;
}

function isExpected(file: string): boolean {
  if (values['unit'] === true && !file.startsWith('test/unit/')) return false;
  return !(values['fast'] === true && slow.includes(file));
}

/** Files that this run was not to include keep their entries. */
function update(ran: ReadonlyMap<string, readonly string[]>): void {
  const kept = Object.entries(suites).filter(([file]) => !isExpected(file) && existsSync(join(root, file)));
  const now = [...ran].map(([file, tests]) => {
    const entry = { tests: tests.length, ...(slow.includes(file) ? { slow: true } : {}) };
    return [file, entry] as const;
  });
  const list = Object.fromEntries([...kept, ...now].toSorted(([a], [b]) => (a < b ? -1 : 1)));
  writeFileSync(listFile, `${JSON.stringify({ suites: list }, null, 2)}\n`);
}
