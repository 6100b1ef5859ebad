/** Compares signers. Their requests are approved already. */
import type { ControlPlane } from '../../test/harness/kubernetes/control-plane.ts';
import type { Contender } from '../contenders/contender.ts';
import type { PhasePlan, SignerPlan } from '../plans.ts';
import { approve, createApproved, createRequests } from '../requests/requests.ts';
import { firstOf, withNewUids, removeAll } from '../requests/request-snapshot.ts';
import type { Snapshot } from '../requests/request-snapshot.ts';
import type { Phase, Stage } from './stage.ts';
import { backlog, burst, oneByOne, steady } from './turns.ts';

/** Approved requests for every turn of every signer. */
export async function approvedSnapshot(preparation: ControlPlane, count: number): Promise<Snapshot> {
  await createApproved(preparation, 'approved', count);
  return removeAll(preparation);
}

/** The most requests that a turn of this plan needs. */
export function requestsIn({ warmUp, ...phases }: SignerPlan): number {
  return Math.max(warmUp, ...Object.values(phases).map(({ requests }: PhasePlan) => requests));
}

export function signingStage(
  name: string,
  contenders: readonly Contender[],
  plan: SignerPlan,
  snapshot: Snapshot,
): Stage {
  const { warmUp, steady: steadyPlan, oneByOne: single } = plan;
  const freshRequests = (count: number): Snapshot => withNewUids(firstOf(snapshot, count));
  let sequences = 0;
  const phases: Phase[] = [
    burstPhase('', plan.burst, snapshot),
    {
      ...steadyPlan,
      name: `${steadyPlan.perSecond} a second`,
      description: `Steady: ${steadyPlan.requests} approved requests appear, ${steadyPlan.perSecond} a second. t0: each one's appearance`,
      compared: 'p50',
      turn: (site) => steady(site, freshRequests(steadyPlan.requests), steadyPlan.perSecond),
    },
    {
      ...single,
      name: 'one by one',
      description: `One by one: each of ${single.requests} requests is approved when the one before has its certificate. t0: sending the approval`,
      compared: 'p50',
      async turn(site) {
        const { controlPlane } = site.surroundings;
        const requests = await createRequests(controlPlane, `single-${++sequences}`, single.requests);
        const waiting = requests.map((request) => ({
          name: request.metadata.name,
          send: () => approve(controlPlane, request),
        }));
        return oneByOne(site, waiting);
      },
    },
  ];
  if (plan.backlog !== undefined) phases.push(backlogPhase(plan.backlog, freshRequests));
  return { name, contenders, phases, warmUp: async () => ({ snapshot: freshRequests(warmUp) }) };
}

export function throttledStage(contenders: readonly Contender[], plan: PhasePlan, snapshot: Snapshot): Stage {
  const warmUp = Math.min(50, plan.requests);
  return {
    name: 'beside the default throttle',
    contenders,
    phases: [burstPhase(', beside the default throttle', plan, snapshot)],
    warmUp: async () => ({ snapshot: withNewUids(firstOf(snapshot, warmUp)) }),
  };
}

function burstPhase(beside: string, plan: PhasePlan, snapshot: Snapshot): Phase {
  return {
    ...plan,
    name: `burst of ${plan.requests}${beside}`,
    description: `Burst: ${plan.requests} approved requests appear at once before a warm signer. t0: their release`,
    compared: 'all',
    turn: (site) => burst(site, withNewUids(firstOf(snapshot, plan.requests))),
  };
}

function backlogPhase(plan: PhasePlan, freshRequests: (count: number) => Snapshot): Phase {
  return {
    ...plan,
    name: `backlog of ${plan.requests}`,
    description: `Backlog: ${plan.requests} approved requests wait, then the signer is started. t0: start of its first process`,
    compared: 'all',
    async turn(site) {
      await site.running.stop();
      return backlog(site, freshRequests(plan.requests), () => site.restart());
    },
  };
}
