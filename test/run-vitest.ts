/** One run of vitest in a process of its own, and what its reporter wrote. */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Tier } from './harness/determinism/tier.ts';
import { reportVariable } from './vitest-report.ts';
import type { Report } from './vitest-report.ts';

const root = resolve(import.meta.dirname, '..');

export interface VitestRun {
  readonly code: number;
  readonly ran: ReadonlyMap<string, Report[string]>;
}

export async function runVitest(tier: Tier, args: readonly string[]): Promise<VitestRun> {
  const scratch = mkdtempSync(join(tmpdir(), 'countersign-test-'));
  try {
    const reportFile = join(scratch, 'report.json');
    // Tests start hundreds of Node processes; with it each starts in half the time.
    const compiled = { NODE_COMPILE_CACHE: join(scratch, 'compiled') };
    const env = { ...process.env, ...compiled, COUNTERSIGN_TEST_TIER: tier, [reportVariable]: reportFile };
    const reporters = ['--reporter=default', `--reporter=${join(root, 'test/vitest-report.ts')}`];
    const code = await start(['run', ...reporters, ...args], env);
    return read(reportFile, code);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

function start(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const child = spawn(process.execPath, [join(root, 'node_modules/vitest/vitest.mjs'), ...args], {
    cwd: root,
    stdio: 'inherit',
    env,
  });
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => child.kill(signal));
  return new Promise((done, fail) => {
    child.on('error', fail);
    child.on('exit', (code) => done(code ?? 1));
  });
}

function read(reportFile: string, code: number): VitestRun {
  try {
    return { code, ran: new Map(Object.entries(JSON.parse(readFileSync(reportFile, 'utf8')) as Report)) };
  } catch {
    process.stderr.write('vitest left no report; see above\n');
    return { code: code === 0 ? 1 : code, ran: new Map() };
  }
}
