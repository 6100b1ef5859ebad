/**
 * kubelet-authenticator as it is put on nodes: how large, how long it takes to start, and how long the kubelet waits for a
 * cached answer, beside a Node that does nothing. Processes of their own, from their start until they have ended.
 */
import { execFile } from 'node:child_process';
import { statSync } from 'node:fs';
import { promisify } from 'node:util';
import { buildExecutable, buildScript, MissingTool } from '../deploy/authenticator/build.ts';
import { prepareNode } from '../test/harness/prepared-node.ts';
import { temporaryFolder } from '../test/harness/processes.ts';
import { endedChildrenCpuSeconds, quietMoment, watchForOthers } from './process-usage.ts';
import { percentile } from './statistics.ts';

export interface AuthenticatorPlan {
  readonly rounds: number;
  readonly patienceMilliseconds: number;
}

export interface AuthenticatorMeasure {
  readonly label: string;
  readonly kilobytes: number;
  /** `--version`; of the bare Node, a program that is empty. */
  readonly started: Taken;
  /** `exec` with a certificate in the cache that is not due. */
  readonly cached?: Taken;
}

/** In milliseconds. */
export interface Taken {
  /** The median. */
  readonly passed: number;
  /** The mean of all threads' processor time: what others do on the machine changes it least. */
  readonly cpu: number;
}

export interface AuthenticatorResult {
  readonly rounds: number;
  /** A Node that does nothing: what each of the others is measured against. */
  readonly bare: AuthenticatorMeasure;
  readonly programs: readonly AuthenticatorMeasure[];
  readonly othersShare: number;
}

interface Subject {
  readonly label: string;
  /** What must be there on the node. */
  readonly file: string;
  readonly start: readonly [string, ...string[]];
  readonly cached?: readonly [string, ...string[]];
}

export async function measureAuthenticator(
  { rounds, patienceMilliseconds }: AuthenticatorPlan,
  say: (what: string) => void,
  leaveOut: (why: string) => void,
): Promise<AuthenticatorResult> {
  say('kubelet-authenticator');
  const folder = temporaryFolder('authenticator-bench');
  try {
    const { settingsFile, environment } = await prepareNode(folder.path);
    const { path: script } = await buildScript(folder.path);
    const executable = executableIn(folder.path, leaveOut);
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
    const samples = subjects.map((subject) => ({ subject, started: [] as Taken[], cached: [] as Taken[] }));

    await quietMoment(patienceMilliseconds);
    const others = watchForOthers();
    // In turns, so that a slow moment of the machine is everybody's; the first of each only warms the page cache.
    for (let round = -1; round < rounds; round++)
      for (const { subject, started, cached } of samples) {
        const start = await take(subject.start, environment);
        const answer =
          subject.cached === undefined ? undefined : await take(subject.cached, environment, 'ExecCredential');
        if (round < 0) continue;
        started.push(start);
        if (answer !== undefined) cached.push(answer);
      }
    const measured = samples.map(({ subject: { label, file }, started, cached }) => ({
      label,
      kilobytes: statSync(file).size / 1_024,
      started: inShort(started),
      ...(cached.length === 0 ? {} : { cached: inShort(cached) }),
    }));
    const [bare, ...programs] = measured;
    if (bare === undefined) throw new Error('nothing was measured');
    return { rounds, bare, programs, othersShare: others() };
  } finally {
    folder.remove();
  }
}

function executableIn(folder: string, leaveOut: (why: string) => void): string | undefined {
  try {
    return buildExecutable(folder).path;
  } catch (error) {
    if (!(error instanceof MissingTool)) throw error;
    leaveOut(error.message);
    return undefined;
  }
}

function inShort(sample: readonly Taken[]): Taken {
  return {
    passed: percentile(
      sample.map(({ passed }) => passed),
      0.5,
    ),
    cpu: sample.reduce((sum, { cpu }) => sum + cpu, 0) / sample.length,
  };
}

/** An answer that is none is quick, and nothing to measure. */
async function take(
  [file, ...args]: readonly [string, ...string[]],
  env: Readonly<Record<string, string>>,
  expected = '',
): Promise<Taken> {
  const [begin, cpu] = [performance.now(), endedChildrenCpuSeconds()];
  const { stdout } = await promisify(execFile)(file, args, { env, timeout: 60_000 });
  const taken = { passed: performance.now() - begin, cpu: (endedChildrenCpuSeconds() - cpu) * 1_000 };
  if (!stdout.includes(expected)) throw new Error(`${file} ${args.join(' ')} gave no ${expected}`);
  return taken;
}
