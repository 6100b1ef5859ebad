/** Approvers compared with each other: they approve and sign requests that are pending. */
import type { ApiClient } from '../../test/harness/kubernetes/api-client.ts';
import type { ControlPlane } from '../../test/harness/kubernetes/control-plane.ts';
import type { Contender } from '../contenders/contender.ts';
import type { FakeAws } from '../contenders/fake-aws.ts';
import { joiningRequests, shelfOf, toCreate } from './joining.ts';
import type { ApproverPlan } from '../plans.ts';
import type { NodeRequest } from '../requests/requests.ts';
import type { Shelf } from '../requests/shelf.ts';
import type { Stage } from './stage.ts';
import { burst, oneByOne } from './turns.ts';

export interface JoiningSetting {
  /** A control plane on which no contender works. */
  readonly workshop: ControlPlane;
  /** The bootstrap token's client of each control plane. */
  readonly tokens: ReadonlyMap<ControlPlane, ApiClient>;
  readonly aws: FakeAws | undefined;
}

export function approvingStage(
  name: string,
  contenders: readonly Contender[],
  { warmUp, burst: together, oneByOne: single }: ApproverPlan,
  { workshop, tokens, aws }: JoiningSetting,
): Stage {
  const tokenOf = (controlPlane: ControlPlane): ApiClient => {
    const token = tokens.get(controlPlane);
    if (token === undefined) throw new Error('this control plane has no bootstrap token');
    return token;
  };
  const made = async (
    contender: Contender,
    count: number,
  ): Promise<{ shelf: Shelf; given: readonly NodeRequest[] }> => {
    const given = await joiningRequests(contender, count, aws);
    const place = { controlPlane: workshop, token: tokenOf(workshop) };
    return { shelf: await shelfOf(given, contender, place), given };
  };
  return {
    name,
    contenders,
    warmUp: (contender) => made(contender, warmUp),
    phases: [
      {
        ...together,
        name: `pending, ${together.requests} at once`,
        description: `Pending: ${together.requests} requests of one bootstrap token appear at once before a warm approver and signer. t0: their release`,
        compared: 'all',
        async turn(site) {
          const { shelf, given } = await made(site.contender, together.requests);
          return burst(site, shelf, given);
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
          return oneByOne(site, toCreate(given, site.contender, token), given);
        },
      },
    ],
  };
}
