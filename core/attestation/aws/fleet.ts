/**
 * Which running instances an operator may adopt without evidence (`countersign tofu adopt`): those that the policy permits, under
 * the one name that its rules give to each. adapters/aws/ec2.ts asks EC2.
 */
import type { AwsAttestation, NodeNameRule } from '../../configuration/providers/aws.ts';
import type { Violation } from '../../outcome/outcome.ts';
import type { Instant } from '../../ports/instant.ts';
import type { InstancePlace } from './endpoints.ts';
import { checkInstance, describeMachine } from './instance.ts';
import type { InstanceDescription } from './instance.ts';
import { identityOf } from './instance-identity.ts';

/** Lists all matching instances, page by page. Throws if a page cannot be read. */
export interface Ec2Fleet {
  listInstances(where: InstancePlace, filters: readonly InstanceFilter[]): AsyncIterable<InstanceDescription>;
}

/** A filter of DescribeInstances: one of its values must match; `*` and `?` are wildcards. */
export interface InstanceFilter {
  readonly name: string;
  readonly values: readonly string[];
}

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
