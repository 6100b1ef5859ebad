/**
 * kubelet-authenticator as it is installed on nodes, compared with an empty Node.js program: its size, its start time, and
 * the time of a cached answer for the kubelet. Each measurement is a process from its start until it has ended.
 */
import { execFile } from 'node:child_process';
import { statSync } from 'node:fs';
import { promisify } from 'node:util';
import { buildAuthenticator } from '../../deploy/authenticator/build.ts';
import { MissingTool } from '../../deploy/command.ts';
import { buildExecutable } from '../../deploy/executable.ts';
import { prepareNode } from '../../test/harness/node/prepared-node.ts';
import { temporaryFolder } from '../../test/harness/processes/processes.ts';
import { endedChildrenCpuSeconds, watchForOthers } from '../measure/process-usage.ts';
import { median, medianInterval } from '../measure/statistics.ts';

export interface AuthenticatorPlan {
  readonly rounds: number;
}

export interface AuthenticatorMeasure {
  readonly label: string;
  readonly kilobytes: number;
  /** With `--version`; the bare Node runs an empty program. */
  readonly started: RunTime;
  /** `exec` with a certificate in the cache that needs no renewal. */
  readonly cached?: RunTime;
}

/** In milliseconds. */
export interface RunTime {
  /** The median of the elapsed time. */
  readonly passed: number;
  /** The mean CPU time of all threads, which other work on the machine changes least. */
  readonly cpu: number;
  /** How much longer than the bare Node.js, by round: the median and its 95 % interval. Absent for the bare Node.js. */
  readonly more?: { readonly median: number; readonly interval?: readonly [number, number] };
}

interface Sample {
  readonly passed: number;
  readonly cpu: number;
}

export interface AuthenticatorResult {
  readonly rounds: number;
  /** An empty Node.js program, with which the others are compared. */
  readonly bare: AuthenticatorMeasure;
  readonly programs: readonly AuthenticatorMeasure[];
  readonly othersShare: number;
}

interface Subject {
  readonly label: string;
  /** The file that must be on the node. */
  readonly file: string;
  readonly start: readonly [string, ...string[]];
  readonly cached?: readonly [string, ...string[]];
}

export async function measureAuthenticator(
  { rounds }: AuthenticatorPlan,
  say: (what: string) => void,
  leaveOut: (why: string) => void,
): Promise<AuthenticatorResult> {
  say('kubelet-authenticator');
  const folder = temporaryFolder('authenticator-bench');
  try {
    const { settingsFile, environment } = await prepareNode(folder.path);
    const { path: script } = await buildAuthenticator(folder.path);
    const executable = executableOf(script, leaveOut);
    const node = process.execPath;
    const exec = ['exec', '--settings', settingsFile];
    const subjects: readonly Subject[] = [
      { label: 'node -e 0', file: node, start: [node, '-e', '0'] },
      { label: 'one file', file: script, start: [node, script, '--version'], cached: [node, script, ...exec] },
      ...(executable === undefined
        ? []
        : [
            {
              label: 'single executable',
              file: executable,
              start: [executable, '--version'],
              cached: [executable, ...exec],
            } as const,
          ]),
    ];
    const samples = subjects.map((subject) => ({ subject, started: [] as Sample[], cached: [] as Sample[] }));

    const others = watchForOthers();
    // In turns, so that a slow moment of the machine slows down all; the first round only warms the page cache.
    for (let round = -1; round < rounds; round++)
      for (const { subject, started, cached } of samples) {
        const start = await measureRun(subject.start, environment);
        const answer =
          subject.cached === undefined ? undefined : await measureRun(subject.cached, environment, 'ExecCredential');
        if (round < 0) continue;
        started.push(start);
        if (answer !== undefined) cached.push(answer);
      }
    const bareNode = samples[0]?.started ?? [];
    const measured = samples.map(({ subject: { label, file }, started, cached }) => ({
      label,
      kilobytes: statSync(file).size / 1_024,
      started: summary(started, started === bareNode ? undefined : bareNode),
      ...(cached.length === 0 ? {} : { cached: summary(cached, bareNode) }),
    }));
    const [bare, ...programs] = measured;
    if (bare === undefined) throw new Error('nothing was measured');
    return { rounds, bare, programs, othersShare: others() };
  } finally {
    folder.remove();
  }
}

function executableOf(script: string, leaveOut: (why: string) => void): string | undefined {
  try {
    return buildExecutable(script, 'x64').path;
  } catch (error) {
    if (!(error instanceof MissingTool)) throw error;
    leaveOut(error.message);
    return undefined;
  }
}

function summary(sample: readonly Sample[], bare: readonly Sample[] | undefined): RunTime {
  const differences = bare?.map(({ passed }, round) => (sample[round]?.passed ?? Number.NaN) - passed);
  const interval = differences === undefined ? undefined : medianInterval(differences);
  return {
    passed: median(sample.map(({ passed }) => passed)),
    cpu: sample.reduce((sum, { cpu }) => sum + cpu, 0) / sample.length,
    ...(differences === undefined
      ? {}
      : { more: { median: median(differences), ...(interval === undefined ? {} : { interval }) } }),
  };
}

/** Throws if the program does not print `expected`, since a failed program would count as a fast one. */
async function measureRun(
  [file, ...args]: readonly [string, ...string[]],
  env: Readonly<Record<string, string>>,
  expected = '',
): Promise<Sample> {
  const [begin, cpu] = [performance.now(), endedChildrenCpuSeconds()];
  const { stdout } = await promisify(execFile)(file, args, { env, timeout: 60_000 });
  const taken = { passed: performance.now() - begin, cpu: (endedChildrenCpuSeconds() - cpu) * 1_000 };
  if (!stdout.includes(expected)) throw new Error(`${file} ${args.join(' ')} gave no ${expected}`);
  return taken;
}
