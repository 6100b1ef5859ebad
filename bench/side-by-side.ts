/**
 * Everything that is measured on one control plane, which each finds empty. Of the contenders LocalStack comes last, so
 * that it disturbs nobody while it idles.
 */
import { mkdirSync } from 'node:fs';
import { startControlPlane } from '../test/harness/control-plane.ts';
import { measureApproving } from './approving.ts';
import type { Approver, ApprovingResult, ApprovingSurroundings } from './approving.ts';
import { attempted, leaveOut } from './attempts.ts';
import type { Report } from './attempts.ts';
import type { StartOptions } from './contender-processes.ts';
import { contenders } from './contenders.ts';
import type { Contender } from './contenders.ts';
import { startFakeAws } from './fake-aws.ts';
import type { FakeAws } from './fake-aws.ts';
import { deployLocalStack, missingForLocalStack } from './localstack.ts';
import type { LocalStackDeployment } from './localstack.ts';
import type { BenchOptions } from './options.ts';
import { approversFor, approvingPlan, attemptsFor, planFor, warmUpFor } from './plans.ts';
import { measureRelayMemory } from './relay-memory.ts';
import type { ContenderResults, Results } from './results.ts';
import { measure, prepareShelves, wasQuiet } from './scenarios.ts';
import type { Shelves } from './scenarios.ts';

export type SideBySide = Pick<Results, 'contenders' | 'approval' | 'memory'> & { readonly kubernetes?: string };

export async function measureSideBySide(options: BenchOptions, report: Report): Promise<SideBySide> {
  const approving = options.sections.has('approval') ? approversFor(options) : [];
  const competing = contenders.filter(({ name }) => options.contenders.includes(name));
  const memory = options.sections.has('memory');
  if (competing.length === 0 && approving.length === 0 && !memory) return { contenders: [] };
  const { say } = report;
  say('control plane');
  const controlPlane = await startControlPlane();
  let aws: FakeAws | undefined;
  let localStack: LocalStackDeployment | undefined;
  try {
    const version = await controlPlane.admin.expectOk<{ gitVersion: string }>('/version');
    if (options.profile !== undefined) mkdirSync(options.profile, { recursive: true });
    const onLocalStack = ({ name }: Contender | Approver): boolean => name === 'localstack';
    const needsLocalStack = [...competing, ...approving].some(onLocalStack);
    if (needsLocalStack || approving.some(({ provedTo }) => provedTo !== undefined))
      aws = await attempted(report, 'fake AWS', startFakeAws);

    const here: ApprovingSurroundings = { controlPlane, ...(aws === undefined ? {} : { aws }) };
    const shelves: { current?: Shelves } = {};
    const others = <T extends Contender | Approver>(all: readonly T[]): T[] =>
      all.filter((each) => !onLocalStack(each));
    const measured = await measureContenders(others(competing), here, shelves, options, report);
    const approval = await measureApprovers(others(approving), here, options, report);
    if (needsLocalStack) localStack = await openLocalStack(aws, report);
    if (localStack !== undefined) {
      const there = { ...here, localStack };
      measured.push(...(await measureContenders(competing.filter(onLocalStack), there, shelves, options, report)));
      approval.push(...(await measureApprovers(approving.filter(onLocalStack), there, options, report)));
    }
    // Neither it nor the machines are needed any more, and the relay is to be measured alone.
    await localStack?.stop();
    localStack = undefined;
    const counts = options.quick ? [10_000] : [10_000, 50_000];
    const relay = memory
      ? await attempted(report, 'memory', () => measureRelayMemory(controlPlane, { counts }, say))
      : undefined;

    const order = (all: readonly (Contender | Approver)[], name: string): number =>
      all.findIndex((each) => each.name === name);
    return {
      contenders: measured.toSorted((a, b) => order(competing, a.contender) - order(competing, b.contender)),
      kubernetes: version.gitVersion,
      ...(approving.length === 0
        ? {}
        : { approval: approval.toSorted((a, b) => order(approving, a.approver) - order(approving, b.approver)) }),
      ...(relay === undefined ? {} : { memory: relay }),
    };
  } finally {
    await localStack?.stop();
    await aws?.stop();
    await controlPlane.stop();
  }
}

async function measureContenders(
  competing: readonly Contender[],
  surroundings: ApprovingSurroundings,
  shelves: { current?: Shelves },
  options: BenchOptions,
  report: Report,
): Promise<ContenderResults[]> {
  const measured: ContenderResults[] = [];
  for (const contender of competing) {
    const plan = planFor(contender, options);
    const say = (what: string): void => report.say(`${contender.label}: ${what}`);
    const once = async (again: boolean): Promise<ContenderResults | undefined> => {
      const result = await attempted(report, contender.label, async () => {
        // The same requests for all; who has a memory would know them the second time.
        if (shelves.current === undefined || (again && contender.remembers)) {
          say('requests');
          const sizes = { ...planFor(contenders[0]!, options), warmUp: warmUpFor(options) };
          shelves.current = await prepareShelves(surroundings.controlPlane, sizes);
        }
        return measure(contender, plan, shelves.current, surroundings, startOptions(options, contender.name), say);
      });
      if (result?.failure !== undefined) {
        say(`FAILED: ${result.failure}`);
        report.failed.push({ what: contender.label, why: result.failure });
      }
      return result?.results;
    };
    let result = await once(false);
    for (let attempt = 1; attempt < attemptsFor(options); attempt++) {
      if (result === undefined || wasQuiet(result, contender.ceilingPerSecond !== undefined)) break;
      say('not quiet; again');
      result = (await once(true)) ?? result;
    }
    if (result !== undefined) measured.push(result);
  }
  return measured;
}

async function measureApprovers(
  approving: readonly Approver[],
  surroundings: ApprovingSurroundings,
  options: BenchOptions,
  report: Report,
): Promise<ApprovingResult[]> {
  const measured: ApprovingResult[] = [];
  for (const approver of approving) {
    const starting = startOptions(options, `approval-${approver.name}`);
    const result = await attempted(report, approver.label, () =>
      measureApproving(approver, approvingPlan(options), surroundings, starting, report.say),
    );
    if (result !== undefined) measured.push(result);
  }
  return measured;
}

function startOptions({ profile }: BenchOptions, of: string): StartOptions {
  return profile === undefined ? {} : { profile: { folder: profile, of } };
}

async function openLocalStack(aws: FakeAws | undefined, report: Report): Promise<LocalStackDeployment | undefined> {
  const what = 'Countersign on LocalStack';
  const why = await missingForLocalStack();
  if (why !== undefined) {
    leaveOut(report, what, why);
    return undefined;
  }
  return attempted(report, what, () => {
    if (aws === undefined) throw new Error('there is no fake AWS for its functions');
    report.say('LocalStack, deploying');
    return deployLocalStack(aws);
  });
}
