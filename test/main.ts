/**
 * `npm test`: gets the test tools, runs every suite, and holds the run against the committed list of suites, so that a
 * suite that silently stopped running is a failure and not a quieter green.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';

const help = `Gets the test tools, runs every suite, and holds the run against test/suites.json: what did not run is a failure.

Usage: npm test [-- [FILE…] [options]]

  FILE      only test files with this in their name, and no tools are got before
  --unit    only what needs no tool and no network, in a minute or two
  --fast    without the suites marked slow in test/suites.json
  --update  rewrites test/suites.json from this run (whole runs only)
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

interface SuiteList {
  /** Test file → how many tests it had when the list was made, and whether `npm run check` leaves it out. */
  readonly suites: Readonly<Record<string, { readonly tests: number; readonly slow?: true }>>;
}
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
const { suites } = JSON.parse(readFileSync(listFile, 'utf8')) as SuiteList;
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
  const ran = new Map(report.testResults.map(({ name, assertionResults }) => [relative(root, name), assertionResults]));
  const count = (status: string) => [...ran.values()].flat().filter((result) => result.status === status).length;
  const failedFiles = report.testResults.filter(
    ({ status, assertionResults }) =>
      status === 'failed' && !assertionResults.some((result) => result.status === 'failed'),
  ).length;
  const passed = count('passed');
  const skipped = count('skipped') + count('pending') + count('todo');
  let failed = count('failed') + failedFiles;

  const missing = whole ? missingFrom(ran) : [];
  for (const line of missing) process.stderr.write(`MISSING  ${line}\n`);
  failed += missing.length;
  if (vitestCode !== 0 && failed === 0) failed = 1;
  if (values['update'] === true && whole && failed === missing.length) update(ran);
  process.stdout.write(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}\n`);
  return failed === 0 ? 0 : 1;
}

/** Fewer suites, or fewer tests in one, than the list says. More is fine: `--update` writes them down. */
function missingFrom(ran: ReadonlyMap<string, readonly { readonly status: string }[]>): string[] {
  const expected = Object.entries(suites).filter(
    ([file, { slow: isSlow }]) =>
      !(values['unit'] === true && !file.startsWith('test/unit/')) && !(values['fast'] === true && isSlow === true),
  );
  return expected.flatMap(([file, { tests }]) => {
    // Elsewhere than in CI a suite whose component cannot be had is skipped, and says so itself; there it fails.
    const did = ran.get(file)?.filter(({ status }) => status !== 'skipped' && status !== 'pending').length ?? 0;
    const skippedOnly = did === 0 && (ran.get(file)?.length ?? 0) > 0 && process.env['CI'] === undefined;
    return did < tests && !skippedOnly ? [`${file}: ${did} tests ran, the list says ${tests}`] : [];
  });
}

function update(ran: ReadonlyMap<string, readonly { readonly status: string }[]>): void {
  const list = Object.fromEntries(
    [...ran]
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([file, results]) => [file, { tests: results.length, ...(slow.includes(file) ? { slow: true } : {}) }]),
  );
  writeFileSync(listFile, `${JSON.stringify({ suites: list }, null, 2)}\n`);
}
