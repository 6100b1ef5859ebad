/** Measures everything that the options name. A part that fails is reported with its reason; the rest continues. */
import { execFileSync } from 'node:child_process';
import { cpus, release, totalmem, type } from 'node:os';
import { tryAndReport, leaveOut } from './attempts.ts';
import type { Report } from './attempts.ts';
import { measureAuthenticator } from './programs/authenticator.ts';
import { measureBundles } from './programs/bundles.ts';
import { measureContests } from './contests/contests.ts';
import type { BenchOptions } from './options.ts';
import { schema } from './results.ts';
import type { Machine, Results } from './results.ts';
import { measureSteps } from './programs/steps.ts';

export async function run(options: BenchOptions, say: (what: string) => void): Promise<Results> {
  const report: Report = { leftOut: [], failed: [], say };
  const { sections, quick } = options;

  const bundles = sections.has('bundles')
    ? await tryAndReport(report, 'bundles', () => {
        const plan = { imports: quick ? 7 : 21, answers: quick ? 7 : 15 };
        return measureBundles(plan, say, (why) => leaveOut(report, 'bundles', why));
      })
    : undefined;
  const authenticator = sections.has('authenticator')
    ? await tryAndReport(report, 'authenticator', () =>
        measureAuthenticator({ rounds: quick ? 11 : 41 }, say, (why) => leaveOut(report, 'the single executable', why)),
      )
    : undefined;
  const steps = sections.has('steps')
    ? await tryAndReport(report, 'steps', () => {
        say('steps');
        return measureSteps(quick ? 40 : 200);
      })
    : undefined;
  const onControlPlane = await tryAndReport(report, 'control plane', () => measureContests(options, report));
  const { kubernetes, ...measured } = onControlPlane ?? { phases: [] };
  return {
    schema,
    date: `${new Date().toISOString().slice(0, 19)}Z`,
    commit: commit(),
    machine: machine(kubernetes),
    ...measured,
    steps: steps ?? [],
    ...(bundles === undefined ? {} : { bundles }),
    ...(authenticator === undefined ? {} : { authenticator }),
    leftOut: report.leftOut,
    failed: report.failed,
  };
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

/** With `+` when there are changes that are not committed. */
function commit(): string {
  const git = (...args: string[]): string => execFileSync('git', args, { encoding: 'utf8', cwd: import.meta.dirname });
  try {
    return git('rev-parse', '--short', 'HEAD').trim() + (git('status', '--porcelain').trim() === '' ? '' : '+');
  } catch {
    return 'unknown';
  }
}
