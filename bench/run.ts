/** Everything that was asked for, one after the other. What fails is reported with its reason, and the rest goes on. */
import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { cpus, release, totalmem, type } from 'node:os';
import { startControlPlane } from '../test/harness/control-plane.ts';
import type { ControlPlane } from '../test/harness/control-plane.ts';
import { approvers, measureApproving } from './approving.ts';
import type { Approver, ApprovingPlan, ApprovingResult } from './approving.ts';
import { attempted, leaveOut, quietest } from './attempts.ts';
import type { Report } from './attempts.ts';
import { measureAuthenticator } from './authenticator.ts';
import { measureBundles } from './bundles.ts';
import { contenders } from './contenders.ts';
import type { Contender } from './contenders.ts';
import { startFakeAws } from './fake-aws.ts';
import type { FakeAws } from './fake-aws.ts';
import { deployLocalStack, missingForLocalStack } from './localstack.ts';
import type { LocalStackDeployment } from './localstack.ts';
import type { BenchOptions } from './options.ts';
import { measureRelayMemory } from './relay-memory.ts';
import type { ContenderResults, Machine, Results } from './results.ts';
import { measure, prepareShelves, wasQuiet } from './scenarios.ts';
import type { Plan, Shelves } from './scenarios.ts';
import { measureSteps } from './steps.ts';

/** A second burst has so many times the requests of the first. */
const largeBurst = 5;

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
  const onControlPlane = await attempted(report, 'control plane', () => measureOnControlPlane(options, report));
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

function attemptsFor({ patienceSeconds }: BenchOptions): number {
  return patienceSeconds > 0 ? 3 : 1;
}

type OnControlPlane = Pick<Results, 'contenders' | 'approval' | 'memory'> & { readonly kubernetes?: string };

/** Of several, the contenders of one run share it, and each finds it empty. */
async function measureOnControlPlane(options: BenchOptions, report: Report): Promise<OnControlPlane> {
  const approving = options.sections.has('approval') ? approversFor(options) : [];
  const competing = contenders.filter(({ name }) => options.contenders.includes(name));
  const memory = options.sections.has('memory');
  if (competing.length === 0 && approving.length === 0 && !memory) return { contenders: [] };
  const { say } = report;
  say('control plane');
  const controlPlane = await startControlPlane();
  const stack: Stack = { controlPlane };
  try {
    const version = await controlPlane.admin.expectOk<{ gitVersion: string }>('/version');
    if (options.profile !== undefined) mkdirSync(options.profile, { recursive: true });
    const starting = options.profile === undefined ? {} : { profileFolder: options.profile };

    const needsLocalStack = [...competing, ...approving].some(({ name }) => name === 'localstack');
    if (needsLocalStack || approving.some(({ provedTo }) => provedTo !== undefined))
      stack.aws = await attempted(report, 'fake AWS', startFakeAws);
    if (needsLocalStack) await openLocalStack(stack, report);
    const there = ({ name }: Contender | Approver): boolean => name !== 'localstack' || stack.localStack !== undefined;
    const surroundings = {
      controlPlane,
      ...(stack.aws === undefined ? {} : { aws: stack.aws }),
      ...(stack.localStack === undefined ? {} : { localStack: stack.localStack }),
    };

    const measured: ContenderResults[] = [];
    let shelves: Shelves | undefined;
    for (const contender of competing.filter(there)) {
      const plan = planFor(contender, options);
      const progress = (what: string): void => say(`${contender.label}: ${what}`);
      const once = async (again: boolean): Promise<ContenderResults | undefined> => {
        const result = await attempted(report, contender.label, async () => {
          // The same requests for all; who has a memory would know them the second time.
          if (shelves === undefined || (again && contender.remembers)) {
            progress('requests');
            shelves = await prepareShelves(controlPlane, {
              ...planFor(contenders[0]!, options),
              warmUp: warmUpFor(options),
            });
          }
          return measure(contender, plan, shelves, surroundings, starting, progress);
        });
        if (result?.failure !== undefined) {
          progress(`FAILED: ${result.failure}`);
          report.failed.push({ what: contender.label, why: result.failure });
        }
        return result?.results;
      };
      let result = await once(false);
      for (let attempt = 1; attempt < attemptsFor(options); attempt++) {
        if (result === undefined || wasQuiet(result, contender.ceilingPerSecond !== undefined)) break;
        progress('not quiet; again');
        result = (await once(true)) ?? result;
      }
      if (result !== undefined) measured.push(result);
    }
    const approval: ApprovingResult[] = [];
    for (const approver of approving.filter(there)) {
      const result = await attempted(report, approver.label, () =>
        measureApproving(approver, approvingPlan(options), surroundings, starting, say),
      );
      if (result !== undefined) approval.push(result);
    }
    const counts = options.quick ? [10_000] : [10_000, 50_000];
    const relay = memory
      ? await attempted(report, 'memory', () => measureRelayMemory(controlPlane, { counts }, say))
      : undefined;
    return {
      contenders: measured,
      kubernetes: version.gitVersion,
      ...(approving.length === 0 ? {} : { approval }),
      ...(relay === undefined ? {} : { memory: relay }),
    };
  } finally {
    await stack.localStack?.stop();
    await stack.aws?.stop();
    await controlPlane.stop();
  }
}

interface Stack {
  readonly controlPlane: ControlPlane;
  aws?: FakeAws | undefined;
  localStack?: LocalStackDeployment | undefined;
}

async function openLocalStack(stack: Stack, report: Report): Promise<void> {
  const what = 'Countersign on LocalStack';
  const why = await missingForLocalStack();
  if (why !== undefined) {
    leaveOut(report, what, why);
    return;
  }
  stack.localStack = await attempted(report, what, () => {
    if (stack.aws === undefined) throw new Error('there is no fake AWS for its functions');
    report.say('LocalStack, deploying');
    return deployLocalStack(stack.aws);
  });
}

/** A throttled contender answers one by one at the rate of its throttle, which says nothing about its latency. */
function planFor({ name, ceilingPerSecond }: Contender, { quick, requests, patienceSeconds }: BenchOptions): Plan {
  const throttled = ceilingPerSecond !== undefined;
  const mass = quick && throttled ? Math.min(100, requests) : requests;
  return {
    // LocalStack's functions are there before the relay: no start to measure from. A throttle's is the burst once more.
    backlog: quick || throttled || name === 'localstack' ? 0 : mass,
    bursts: quick || throttled ? [mass] : [mass, mass * largeBurst],
    steady: { perSecond: 50, seconds: quick ? (throttled ? 0 : 5) : 20 },
    sequence: throttled ? 0 : quick ? 50 : 200,
    // The default token bucket of the reference holds 30 and is full again after 1.5 s.
    restMilliseconds: quick && !throttled ? 500 : 2_000,
    patienceMilliseconds: throttled ? 0 : patienceSeconds * 1_000,
  };
}

function warmUpFor({ quick }: BenchOptions): number {
  return quick ? 50 : 100;
}

/** All where none was named; in a minute, who has to prove himself and who is fastest. */
function approversFor({ contenders: named, chosen, quick }: BenchOptions): readonly Approver[] {
  if (chosen && named.length > 0) return approvers.filter(({ name }) => named.some((each) => name.startsWith(each)));
  return quick ? approvers.filter(({ name }) => name === 'countersign' || name === 'kcm-unthrottled') : approvers;
}

function approvingPlan(options: BenchOptions): ApprovingPlan {
  const { quick, requests, patienceSeconds } = options;
  return {
    warmUp: quick ? 20 : 100,
    burst: quick ? Math.min(100, requests) : requests,
    sequence: quick ? 20 : 100,
    restMilliseconds: quick ? 500 : 2_000,
    patienceMilliseconds: patienceSeconds * 1_000,
    attempts: attemptsFor(options),
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
