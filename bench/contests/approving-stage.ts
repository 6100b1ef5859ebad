/** Compares approvers, which approve and sign pending requests. */
import type { ApiClient } from '../../test/harness/kubernetes/api-client.ts';
import type { ControlPlane } from '../../test/harness/kubernetes/control-plane.ts';
import type { Contender } from '../contenders/contender.ts';
import type { FakeAws } from '../contenders/fake-aws.ts';
import { joiningRequests, snapshotOf, creationsOf } from './joining.ts';
import type { ApproverPlan } from '../plans.ts';
import type { NodeRequest } from '../requests/requests.ts';
import type { Snapshot } from '../requests/request-snapshot.ts';
import type { Stage } from './stage.ts';
import { burst, oneByOne } from './turns.ts';

export interface JoiningSetting {
  /** A control plane on which no contender works. */
  readonly preparation: ControlPlane;
  /** The bootstrap token's client of each control plane. */
  readonly tokens: ReadonlyMap<ControlPlane, ApiClient>;
  readonly aws: FakeAws | undefined;
}

export function approvingStage(
  name: string,
  contenders: readonly Contender[],
  { warmUp, burst: burstPlan, oneByOne: single }: ApproverPlan,
  { preparation, tokens, aws }: JoiningSetting,
): Stage {
  const tokenOf = (controlPlane: ControlPlane): ApiClient => {
    const token = tokens.get(controlPlane);
    if (token === undefined) throw new Error('this control plane has no bootstrap token');
    return token;
  };
  const prepare = async (
    contender: Contender,
    count: number,
  ): Promise<{ snapshot: Snapshot; given: readonly NodeRequest[] }> => {
    const given = await joiningRequests(contender, count, aws);
    const place = { controlPlane: preparation, token: tokenOf(preparation) };
    return { snapshot: await snapshotOf(given, contender, place), given };
  };
  return {
    name,
    contenders,
    warmUp: (contender) => prepare(contender, warmUp),
    phases: [
      {
        ...burstPlan,
        name: `pending, ${burstPlan.requests} at once`,
        description: `Pending: ${burstPlan.requests} requests of one bootstrap token appear at once before a warm approver and signer. t0: their release`,
        compared: 'all',
        async turn(site) {
          const { snapshot, given } = await prepare(site.contender, burstPlan.requests);
          return burst(site, snapshot, given);
        },
      },
      {
        ...single,
        name: 'pending, one by one',
        description: `Pending, one by one: each of ${single.requests} requests is created when the one before has its certificate. t0: sending the request`,
        compared: 'p50',
        async turn(site) {
          const given = await joiningRequests(site.contender, single.requests, aws);
          const token = tokenOf(site.surroundings.controlPlane);
          return oneByOne(site, creationsOf(given, site.contender, token), given);
        },
      },
    ],
  };
}
