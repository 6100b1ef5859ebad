/** Everything that needs a control plane: the stages, one after the other, and then the relay's memory. */
import { mkdirSync } from 'node:fs';
import type { ApiClient } from '../../test/harness/kubernetes/api-client.ts';
import { startControlPlane } from '../../test/harness/kubernetes/control-plane.ts';
import type { ControlPlane } from '../../test/harness/kubernetes/control-plane.ts';
import { approvingStage } from './approving-stage.ts';
import { tryAndReport, leaveOut } from '../attempts.ts';
import type { Report } from '../attempts.ts';
import type { Surroundings } from '../contenders/contender.ts';
import { startFakeAws } from '../contenders/fake-aws.ts';
import type { FakeAws } from '../contenders/fake-aws.ts';
import { bootstrapToken } from './joining.ts';
import { deployLocalStack, missingForLocalStack } from '../contenders/localstack.ts';
import type { LocalStackDeployment } from '../contenders/localstack.ts';
import type { BenchOptions } from '../options.ts';
import { approverPlan, emulatedPlan, lineup, signerPlan, throttledPlan } from '../plans.ts';
import type { Lineup } from '../plans.ts';
import { measureRelayMemory } from '../programs/relay-memory.ts';
import type { PhaseResult, Results } from '../results.ts';
import { approvedSnapshot, requestsIn, signingStage, throttledStage } from './signing-stage.ts';
import { measureStage } from './stage.ts';
import type { Stage } from './stage.ts';

export type Contests = Pick<Results, 'phases' | 'memory'> & { readonly kubernetes?: string };

export async function measureContests(options: BenchOptions, report: Report): Promise<Contests> {
  const groups = lineup(options);
  const memory = options.sections.has('memory');
  const contenderCount = mostContenders(groups);
  if (contenderCount === 0 && !memory) return { phases: [] };
  const planes: ControlPlane[] = [];
  const stopFrom = async (first: number): Promise<void> => {
    for (const plane of planes.splice(first)) await plane.stop();
  };
  try {
    // One control plane for each contender of a stage, and one on which requests are prepared.
    report.say(`${contenderCount + 1} control planes`);
    for (let index = 0; index <= contenderCount; index++) planes.push(await startControlPlane());
    const [preparation, ...others] = planes as [ControlPlane, ...ControlPlane[]];
    const version = await preparation.admin.expectOk<{ gitVersion: string }>('/version');
    const phases = contenderCount === 0 ? [] : await measureStages(groups, options, report, preparation, others);
    await stopFrom(1); // the relay's memory is measured by itself
    const counts = options.quick ? [10_000] : [10_000, 50_000];
    const relay = memory
      ? await tryAndReport(report, 'memory', () => measureRelayMemory(preparation, { counts }, report.say))
      : undefined;
    return { phases, kubernetes: version.gitVersion, ...(relay === undefined ? {} : { memory: relay }) };
  } finally {
    await stopFrom(0);
  }
}

function mostContenders({ signers, throttled, approvers, emulated }: Lineup): number {
  const stages = [signers, throttled, approvers, emulated.signers, emulated.approvers];
  return Math.max(...stages.map(({ length }) => length));
}

async function measureStages(
  { signers, throttled, approvers, emulated }: Lineup,
  options: BenchOptions,
  report: Report,
  preparation: ControlPlane,
  planes: readonly ControlPlane[],
): Promise<readonly PhaseResult[]> {
  const { profile } = options;
  if (profile !== undefined) mkdirSync(profile, { recursive: true });
  const needsLocalStack = emulated.signers.length + emulated.approvers.length > 0;
  const tokens = new Map<ControlPlane, ApiClient>();
  let aws: FakeAws | undefined;
  let localStack: LocalStackDeployment | undefined;
  const phases: PhaseResult[] = [];
  const measureNext = async (what: string, make: () => Promise<Stage>): Promise<void> => {
    const stage = await tryAndReport(report, what, make);
    if (stage === undefined || stage.contenders.length === 0) return;
    const setting = {
      planes: planes.map((controlPlane): Surroundings => ({
        controlPlane,
        ...(aws === undefined ? {} : { aws }),
        ...(localStack === undefined ? {} : { localStack }),
      })),
      profile,
      report,
    };
    phases.push(...((await tryAndReport(report, what, () => measureStage(stage, setting))) ?? []));
  };
  const plan = signerPlan(options);
  const throttle = throttledPlan(options);
  try {
    if (approvers.length > 0 || needsLocalStack) {
      aws = await tryAndReport(report, 'fake AWS', startFakeAws);
      for (const plane of [preparation, ...planes]) tokens.set(plane, await bootstrapToken(plane));
    }
    report.say('requests');
    const snapshot = await approvedSnapshot(preparation, Math.max(requestsIn(plan), throttle.requests));
    const joining = { preparation, tokens, aws };

    await measureNext('signers', async () => signingStage('signers', signers, plan, snapshot));
    await measureNext('throttle', async () => throttledStage(throttled, throttle, snapshot));
    await measureNext('approvers', async () => approvingStage('approvers', approvers, approverPlan(options), joining));
    // Last, because an emulator that idles takes CPU time from the others.
    if (needsLocalStack) localStack = await openLocalStack(aws, report);
    if (localStack !== undefined) {
      const { signer, approver } = emulatedPlan;
      await measureNext('LocalStack', async () => signingStage('LocalStack', emulated.signers, signer, snapshot));
      await measureNext('LocalStack, approval', async () =>
        approvingStage('LocalStack, approval', emulated.approvers, approver, joining),
      );
    }
    return phases;
  } finally {
    for (const token of tokens.values()) token.close();
    await localStack?.stop();
    await aws?.stop();
  }
}

async function openLocalStack(aws: FakeAws | undefined, report: Report): Promise<LocalStackDeployment | undefined> {
  const what = 'Countersign on LocalStack';
  const why = await missingForLocalStack();
  if (why !== undefined) {
    leaveOut(report, what, why);
    return undefined;
  }
  return tryAndReport(report, what, () => {
    if (aws === undefined) throw new Error('there is no fake AWS for its functions');
    report.say('LocalStack, deploying');
    return deployLocalStack(aws);
  });
}
