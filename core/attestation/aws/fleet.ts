/**
 * Lists of instances. The running ones that an operator may adopt without evidence (`countersign tofu adopt`): those that the
 * policy permits, under the one name that its rules give to each. And the terminated ones. adapters/aws/ec2.ts asks EC2.
 */
import type { AwsAttestation, NodeNameRule } from '../../configuration/providers/aws.ts';
import type { Violation } from '../../outcome/outcome.ts';
import type { Instant } from '../../ports/instant.ts';
import type { Ec2Fleet, InstanceFilter, InstancePlace } from './endpoints.ts';
import { checkInstance, describeMachine } from './instance.ts';
import type { InstanceDescription } from './instance.ts';
import { identityOf, isInstanceId } from './instance-identity.ts';

export interface FoundMachine {
  readonly identity: string;
  readonly providerId: string;
  readonly startedAt: Instant;
  /** The names that follow from EC2's description. A pattern gives no name: the operator must name such a machine. */
  readonly names: readonly string[];
  /** All names that it may have, patterns included. */
  readonly allowed: readonly string[];
  readonly violations: readonly Violation[];
}

/** The most values of one filter in EC2. */
const mostValues = 200;

/** Every account in every region, in the order of the file. */
export function placesOf({ accounts, regions }: AwsAttestation): readonly InstancePlace[] {
  return [...accounts].flatMap(([account, role]) => regions.map((region) => ({ account, region, ...role })));
}

/** Filters that leave out most instances that the policy refuses. `checkInstance` checks each answer again. */
export function instanceFilters({ vpcs, subnets, tags }: AwsAttestation): readonly InstanceFilter[] {
  return [
    { name: 'instance-state-name', values: ['running'] },
    { name: 'vpc-id', values: vpcs },
    { name: 'subnet-id', values: subnets },
    // `*`, `?` and `\` are special in a filter, but not in a tag.
    ...[...tags].map(([key, value]) =>
      /[*?\\]/.test(value) || /[*?\\]/.test(key)
        ? { name: 'tag-key', values: /[*?\\]/.test(key) ? [] : [key] }
        : { name: `tag:${key}`, values: [value] },
    ),
  ].filter(({ values }) => values.length > 0 && values.length <= mostValues);
}

const terminated: readonly InstanceFilter[] = [{ name: 'instance-state-name', values: ['terminated'] }];

/**
 * The identities of terminated instances. EC2 lists an instance for about an hour after its end, without its VPC and its subnet, so
 * no other filter of the policy applies. The calls grow with what ended in the last hour, and not with the fleet; and unlike a
 * question about known ids, the list cannot fail because EC2 has forgotten one of them.
 * https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/terminating-instances.html
 *
 * If a place cannot be read, the others are still listed; then it throws.
 */
export async function* goneInstances(policy: AwsAttestation, fleet: Ec2Fleet): AsyncGenerator<string> {
  const errors: unknown[] = [];
  for (const place of placesOf(policy)) {
    try {
      for await (const { instanceId, ownerId, state } of fleet.listInstances(place, terminated))
        // If the role belongs to another account, its instances say nothing about this one.
        if (state === 'terminated' && ownerId === place.account && isInstanceId(instanceId))
          yield identityOf({ account: place.account, region: place.region, instanceId });
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length === 1) throw errors[0];
  if (errors.length > 1) throw new AggregateError(errors, `EC2 cannot be asked in ${errors.length} places`);
}

/** `rules`: the naming rules of the policy that apply. */
export function foundMachine(
  policy: AwsAttestation,
  { account, region }: InstancePlace,
  instance: InstanceDescription,
  rules: readonly NodeNameRule[] = policy.nodeName,
): FoundMachine {
  const { instanceId, launchTime } = instance;
  const identity = identityOf({ account, region, instanceId });
  const expected = { identity, account, region, instanceId };
  const { providerId, nodeNames } = describeMachine(policy, expected, instance);
  const withoutPatterns = { ...policy, nodeName: rules.filter(({ kind }) => kind !== 'pattern') };
  return {
    identity,
    providerId,
    startedAt: launchTime,
    names: describeMachine(withoutPatterns, expected, instance).nodeNames,
    allowed: nodeNames,
    violations: checkInstance(policy, expected, instance),
  };
}
