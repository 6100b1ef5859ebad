/**
 * Which running instances an operator may enrol without their proof (`countersign tofu adopt`): those that policy would
 * let join, under the one name its rules give them. Pure; EC2 is asked by adapters/aws/ec2.ts.
 */
import type { AwsAttestation, NodeNameRule } from '../../configuration/model/attestation.ts';
import type { Violation } from '../../outcome/outcome.ts';
import type { Instant } from '../../ports/instant.ts';
import type { InstancePlace } from './endpoints.ts';
import { checkInstance, describeMachine } from './instance.ts';
import type { InstanceDescription } from './instance.ts';
import { partitionOf } from './partition.ts';

/** Gives every instance that matches, page by page. Throws for whatever is not an answer of EC2. */
export interface Ec2Fleet {
  listInstances(where: InstancePlace, filters: readonly InstanceFilter[]): AsyncIterable<InstanceDescription>;
}

/** As DescribeInstances takes them: of each one any value, `*` and `?` being patterns. */
export interface InstanceFilter {
  readonly name: string;
  readonly values: readonly string[];
}

export interface FoundMachine {
  readonly identity: string;
  readonly providerId: string;
  readonly startedAt: Instant;
  /** Names that its facts give it. A pattern gives none: that is for whoever names the machine by hand. */
  readonly names: readonly string[];
  /** What it may be called at all, patterns included. */
  readonly allowed: readonly string[];
  /** What policy has against it. */
  readonly violations: readonly Violation[];
}

/** EC2 takes at most this many values of one filter. */
const mostValues = 200;

/** Every account in every region, in the order of the file. */
export function placesOf({ accounts, regions }: AwsAttestation): readonly InstancePlace[] {
  return [...accounts].flatMap(([account, { assumeRole }]) =>
    regions.map((region) => ({ account, region, ...(assumeRole === undefined ? {} : { assumeRole }) })),
  );
}

/** So that EC2 leaves out what policy would: no rule rests on it, `checkInstance` sees each answer again. */
export function instanceFilters({ vpcs, subnets, tags }: AwsAttestation): readonly InstanceFilter[] {
  return [
    { name: 'instance-state-name', values: ['running'] },
    { name: 'vpc-id', values: vpcs },
    { name: 'subnet-id', values: subnets },
    // In a filter `*`, `?` and `\` mean more than themselves; in a tag they do not.
    ...[...tags].map(([key, value]) =>
      /[*?\\]/.test(value) || /[*?\\]/.test(key)
        ? { name: 'tag-key', values: /[*?\\]/.test(key) ? [] : [key] }
        : { name: `tag:${key}`, values: [value] },
    ),
  ].filter(({ values }) => values.length > 0 && values.length <= mostValues);
}

/** `rules`: those of the policy by which machines are named here. */
export function foundMachine(
  policy: AwsAttestation,
  { account, region }: InstancePlace,
  instance: InstanceDescription,
  rules: readonly NodeNameRule[] = policy.nodeName,
): FoundMachine {
  const { instanceId, launchTime } = instance;
  const identity = identityOf(account, region, instanceId);
  const expected = { identity, account, region, instanceId };
  const named = (nodeName: readonly NodeNameRule[]) => ({ ...policy, nodeName });
  const facts = rules.filter(({ kind }) => kind !== 'pattern');
  return {
    identity,
    providerId: describeMachine(named([]), expected, instance).providerId,
    startedAt: launchTime,
    names: describeMachine(named(facts), expected, instance).nodeNames,
    allowed: describeMachine(policy, expected, instance).nodeNames,
    violations: checkInstance(policy, expected, instance),
  };
}

/** The same that a proof of that instance would be recorded under. */
function identityOf(account: string, region: string, instanceId: string): string {
  const partition = partitionOf(region);
  if (partition === undefined) throw new Error(`region ${region} is of no known partition`);
  return `aws#${partition.name}/${account}/${region}/${instanceId}`;
}

export interface NamedInstance {
  readonly account: string;
  readonly region: string;
  readonly instanceId: string;
}

/** Of an identity as recorded; undefined for one that no proof would be recorded under. */
export function instanceOf(identity: string): NamedInstance | undefined {
  const [, account = '', region = '', instanceId = ''] =
    /^aws#[a-z-]+\/([0-9]{12})\/([a-z0-9-]+)\/(i-(?:[0-9a-f]{8}|[0-9a-f]{17}))$/.exec(identity) ?? [];
  if (partitionOf(region) === undefined || identityOf(account, region, instanceId) !== identity) return undefined;
  return { account, region, instanceId };
}
