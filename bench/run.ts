/** Everything that was asked for, one after the other. What fails is reported with its reason, and the rest goes on. */
import { execFileSync } from 'node:child_process';
import { cpus, release, totalmem, type } from 'node:os';
import { attempted, leaveOut, quietest } from './attempts.ts';
import type { Report } from './attempts.ts';
import { measureAuthenticator } from './authenticator.ts';
import { measureBundles } from './bundles.ts';
import type { BenchOptions } from './options.ts';
import { attemptsFor } from './plans.ts';
import type { Machine, Results } from './results.ts';
import { measureSideBySide } from './side-by-side.ts';
import { measureSteps } from './steps.ts';

export async function run(options: BenchOptions, say: (what: string) => void): Promise<Results> {
  const report: Report = { leftOut: [], failed: [], say };
  const { sections, quick, patienceSeconds } = options;
  const attempts = attemptsFor(options);
  const patienceMilliseconds = patienceSeconds * 1_000;

  const bundles = sections.has('bundles')
    ? await attempted(report, 'bundles', () => {
        const plan = { imports: quick ? 7 : 21, answers: quick ? 5 : 15, patienceMilliseconds };
        return quietest(attempts, say, () => measureBundles(plan, say, (why) => leaveOut(report, 'bundles', why)));
      })
    : undefined;
  const authenticator = sections.has('authenticator')
    ? await attempted(report, 'authenticator', () => {
        const plan = { rounds: quick ? 11 : 41, patienceMilliseconds };
        return quietest(attempts, say, () =>
          measureAuthenticator(plan, say, (why) => leaveOut(report, 'the single executable', why)),
        );
      })
    : undefined;
  const steps = sections.has('steps')
    ? await attempted(report, 'steps', () => {
        say('steps');
        return measureSteps(quick ? 40 : 200);
      })
    : undefined;
  const onControlPlane = await attempted(report, 'control plane', () => measureSideBySide(options, report));
  const { kubernetes, ...measured } = onControlPlane ?? { contenders: [] };
  return {
    schema: 2,
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

/** `+` when something is changed and not committed: such numbers belong to no commit. */
function commit(): string {
  const git = (...args: string[]): string => execFileSync('git', args, { encoding: 'utf8', cwd: import.meta.dirname });
  try {
    return git('rev-parse', '--short', 'HEAD').trim() + (git('status', '--porcelain').trim() === '' ? '' : '+');
  } catch {
    return 'unknown';
  }
}
