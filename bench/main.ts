/**
 * `npm run bench`: who signs a thousand approved requests how fast, in one run on one control plane, and how soon
 * a new function answers. docs/performance.md
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus, release, totalmem, type } from 'node:os';
import { dirname, join } from 'node:path';
import { startControlPlane } from '../test/harness/control-plane.ts';
import { measureAuthenticator } from './authenticator.ts';
import type { AuthenticatorResult } from './authenticator.ts';
import { measureBundles } from './bundles.ts';
import type { BundlesResult } from './bundles.ts';
import { measureApproving } from './approving.ts';
import type { ApprovingPlan } from './approving.ts';
import { contenders } from './contenders.ts';
import { helpText, parseOptions } from './options.ts';
import type { BenchOptions } from './options.ts';
import { quietShare } from './process-usage.ts';
import { renderComparison, renderResults } from './report.ts';
import type { Machine, Results } from './report.ts';
import { measure, wasQuiet } from './scenarios.ts';
import type { ContenderResults, Plan } from './scenarios.ts';
import { measureSteps } from './steps.ts';

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
  const earlier = options.compare === undefined ? undefined : readResults(options.compare);
  const results = await run(options);
  const file = options.json ?? join(import.meta.dirname, 'results', `${results.date.replaceAll(':', '-')}.json`);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${JSON.stringify(results, null, 2)}\n`);
  process.stdout.write(`\n${renderResults(results)}`);
  if (earlier !== undefined) process.stdout.write(`\n${renderComparison(results, earlier)}`);
  process.stderr.write(`\n${file}\n`);
  return exitCodes.ok;
}

async function run(options: BenchOptions): Promise<Results> {
  const bundles = options.bundles ? await measureBundlesQuietly(options) : undefined;
  const authenticator = options.authenticator ? await measureAuthenticatorQuietly(options) : undefined;
  const { kubernetes, ...measured } = await measureOnControlPlane(options);
  return {
    schema: 1,
    date: `${new Date().toISOString().slice(0, 19)}Z`,
    commit: commit(),
    machine: machine(kubernetes),
    ...measured,
    ...(bundles === undefined ? {} : { bundles }),
    ...(authenticator === undefined ? {} : { authenticator }),
  };
}

async function measureBundlesQuietly({ quick, patienceSeconds }: BenchOptions): Promise<BundlesResult | undefined> {
  const plan = { imports: quick ? 7 : 21, answers: quick ? 5 : 15, patienceMilliseconds: patienceSeconds * 1_000 };
  let quietest = await measureBundles(plan, say);
  for (let attempt = 1; attempt < attemptsFor(patienceSeconds); attempt++) {
    if (quietest === undefined || quietest.othersShare <= quietShare) break;
    say('bundles: not quiet; again');
    const again = await measureBundles(plan, say);
    if (again !== undefined && again.othersShare < quietest.othersShare) quietest = again;
  }
  return quietest;
}

async function measureAuthenticatorQuietly({ quick, patienceSeconds }: BenchOptions): Promise<AuthenticatorResult> {
  const plan = { rounds: quick ? 11 : 41, patienceMilliseconds: patienceSeconds * 1_000 };
  let quietest = await measureAuthenticator(plan, say);
  for (let attempt = 1; attempt < attemptsFor(patienceSeconds) && quietest.othersShare > quietShare; attempt++) {
    say('kubelet-authenticator: not quiet; again');
    const again = await measureAuthenticator(plan, say);
    if (again.othersShare < quietest.othersShare) quietest = again;
  }
  return quietest;
}

/** Chosen by what others did, never by what came out. */
function attemptsFor(patienceSeconds: number): number {
  return patienceSeconds > 0 ? 3 : 1;
}

async function measureOnControlPlane(
  options: BenchOptions,
): Promise<Pick<Results, 'contenders' | 'steps' | 'approval'> & { readonly kubernetes?: string }> {
  if (options.contenders.length === 0 && !options.approval) return { contenders: [], steps: [] };
  say('steps');
  const steps = await measureSteps(options.quick ? 100 : 400);
  say('control plane');
  const controlPlane = await startControlPlane();
  try {
    const version = await controlPlane.admin.expectOk<{ gitVersion: string }>('/version');
    if (options.profile !== undefined) mkdirSync(options.profile, { recursive: true });
    const starting = options.profile === undefined ? {} : { profileFolder: options.profile };
    const measured: ContenderResults[] = [];
    for (const contender of contenders.filter(({ name }) => options.contenders.includes(name))) {
      const plan = planFor(contender.ceilingPerSecond !== undefined, options);
      const progress = (what: string): void => say(`${contender.label}: ${what}`);
      let results = await measure(contender, plan, controlPlane, starting, progress);
      for (
        let attempt = 1;
        attempt < attemptsFor(options.patienceSeconds) && !wasQuiet(results, contender);
        attempt++
      ) {
        progress('not quiet; again');
        results = await measure(contender, plan, controlPlane, starting, progress);
      }
      measured.push(results);
    }
    const approval = options.approval ? await measureApproving(controlPlane, approvingPlan(options), say) : undefined;
    return {
      contenders: measured,
      steps,
      kubernetes: version.gitVersion,
      ...(approval === undefined ? {} : { approval }),
    };
  } finally {
    await controlPlane.stop();
  }
}

function approvingPlan({ quick, requests, patienceSeconds }: BenchOptions): ApprovingPlan {
  const patienceMilliseconds = patienceSeconds * 1_000;
  return { warmUp: quick ? 30 : 100, backlog: requests, sequence: quick ? 30 : 100, patienceMilliseconds };
}

/** A throttled contender answers a sequence at the rate of its throttle, which says nothing about its latency. */
function planFor(throttled: boolean, { quick, requests, patienceSeconds }: BenchOptions): Plan {
  const mass = quick && throttled ? 100 : requests;
  const warmUp = quick ? 30 : 100;
  const sequence = throttled ? 0 : quick ? 50 : 200;
  const patienceMilliseconds = throttled ? 0 : patienceSeconds * 1_000;
  return { warmUp, backlog: mass, burst: mass, sequence, patienceMilliseconds };
}

function machine(kubernetes: string | undefined): Machine {
  return {
    cpu: cpus()[0]?.model ?? 'unknown processor',
    processors: cpus().length,
    memoryGibibytes: Math.round(totalmem() / 2 ** 30),
    system: `${type()} ${release()}`,
    node: process.version,
    ...(kubernetes === undefined ? {} : { kubernetes }),
  };
}

/** `+` when something is changed and not committed: such numbers belong to no commit. */
function commit(): string {
  const git = (...args: string[]): string => execFileSync('git', args, { encoding: 'utf8', cwd: import.meta.dirname });
  try {
    return git('rev-parse', '--short', 'HEAD').trim() + (git('status', '--porcelain').trim() === '' ? '' : '+');
  } catch {
    return 'unknown';
  }
}

function readResults(file: string): Results {
  const results = JSON.parse(readFileSync(file, 'utf8')) as Results;
  if (results.schema !== 1) throw new Error(`${file} holds no results of this benchmark`);
  return results;
}

function say(what: string): void {
  process.stderr.write(`… ${what}\n`);
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`bench: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = exitCodes.failed;
}
