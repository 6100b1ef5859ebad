/** Checks EC2's description of an instance (DescribeInstances), and reads the names and addresses of the machine from it. */
import { canonicalAddress, profileMatches, isHostName, isSubdomain } from '../../policy/patterns.ts';
import type { AwsAttestation, NodeNameRule } from '../../configuration/providers/aws.ts';
import { violation } from '../../outcome/outcome.ts';
import type { Violation } from '../../outcome/outcome.ts';
import type { Instant } from '../../ports/instant.ts';
import { quoted } from '../../outcome/printable-text.ts';
import { violationUnless } from '../../policy/rule.ts';
import type { NamedInstance } from './instance-identity.ts';
import type { Machine } from '../evidence/provider.ts';

/** The fields of DescribeInstances that are used; a field that EC2 omits is absent. */
export interface InstanceDescription {
  readonly instanceId: string;
  /** The account: OwnerId of the reservation. */
  readonly ownerId: string;
  readonly state: 'pending' | 'running' | 'shutting-down' | 'terminated' | 'stopping' | 'stopped';
  readonly availabilityZone: string;
  readonly launchTime: Instant;
  readonly vpcId?: string;
  /** Of the primary interface. */
  readonly subnetId?: string;
  readonly tags: ReadonlyMap<string, string>;
  /** ARN. */
  readonly instanceProfile?: string;
  /** MetadataOptions. */
  readonly httpTokens?: 'required' | 'optional';
  readonly httpPutResponseHopLimit?: number;
  /** `v2.0` if the instance has a NitroTPM. */
  readonly tpmSupport?: string;
  readonly privateDnsName?: string;
  readonly publicDnsName?: string;
  readonly rootDeviceType?: 'ebs' | 'instance-store';
  /** When the volume behind RootDeviceName was attached. */
  readonly rootAttachedAt?: Instant;
  /** When the interface of network card 0, device 0 was attached. */
  readonly interfaceAttachedAt?: Instant;
  /** Of network card 0, device 0: the primary private address, its public or carrier one, the primary or only IPv6 one. */
  readonly primaryAddresses: readonly string[];
  /** Of those addresses: private and public names. */
  readonly primaryDnsNames: readonly string[];
  /** Of all its network interfaces: private, secondary, public, elastic, carrier, IPv6. */
  readonly addresses: readonly string[];
  /** Of all its network interfaces: private and public names; need not repeat the two names above. */
  readonly dnsNames: readonly string[];
}

/** The instance that EC2 was asked about. */
export interface ExpectedInstance extends NamedInstance {
  readonly identity: string;
  /** As in the identity document; absent for `aws/v2`, which has no document. */
  readonly availabilityZone?: string;
  /** As in the identity document; absent for `aws/v2`. */
  readonly privateIp?: string;
}

/** All violations of a running instance; the caller checks the state. */
export function checkInstance(
  policy: AwsAttestation,
  expected: ExpectedInstance,
  instance: InstanceDescription,
): readonly Violation[] {
  const others = [...placeFaults(policy, instance), ...tagFaults(policy, instance), ...settingFaults(policy, instance)];
  return [
    ...identityFaults(expected, instance).map((message) => violation('AttestationInvalid', message)),
    ...others.map((message) => violation('IdentityNotAllowed', message)),
  ];
}

/**
 * Does EC2's answer describe the machine of the evidence? It does not if the assumed role belongs to another account, which
 * may have an instance with the same id.
 */
function identityFaults(expected: ExpectedInstance, instance: InstanceDescription): readonly string[] {
  const { availabilityZone: zone, privateIp } = expected;
  return [
    ...violationUnless(instance.instanceId === expected.instanceId, 'EC2 describes another instance'),
    ...violationUnless(instance.ownerId === expected.account, 'EC2 describes an instance of another account'),
    ...violationUnless(
      zone === undefined ? instance.availabilityZone.startsWith(expected.region) : instance.availabilityZone === zone,
      'EC2 describes an instance in another availability zone',
    ),
    ...violationUnless(
      privateIp === undefined || instance.addresses.includes(privateIp),
      'EC2 describes an instance without the address in its document',
    ),
  ];
}

/** Account and region alone would admit every instance in them. */
function placeFaults(policy: AwsAttestation, { vpcId, subnetId }: InstanceDescription): readonly string[] {
  return [
    ...violationUnless(isListed(policy.vpcs, vpcId), `the instance is in VPC ${vpcId ?? 'none'}, which may not join`),
    ...violationUnless(
      isListed(policy.subnets, subnetId),
      `the instance is in subnet ${subnetId ?? 'none'}, which may not join`,
    ),
  ];
}

function isListed(list: readonly string[], value: string | undefined): boolean {
  return list.length === 0 || (value !== undefined && list.includes(value));
}

function tagFaults(policy: AwsAttestation, { tags, instanceProfile = '' }: InstanceDescription): readonly string[] {
  return [
    ...[...policy.tags].flatMap(([key, value]) =>
      violationUnless(
        value === '*' ? tags.has(key) : tags.get(key) === value,
        `the instance does not have the tag ${quoted(key)} with the value ${quoted(value)}`,
      ),
    ),
    ...violationUnless(
      policy.instanceProfiles.length === 0 ||
        policy.instanceProfiles.some((pattern) => profileMatches(pattern, instanceProfile)),
      'the instance does not have one of the instance profiles that may join',
    ),
  ];
}

/** Could pods read the instance's document and credentials, or could a principal have replaced its disk? */
function settingFaults({ instance: rules }: AwsAttestation, instance: InstanceDescription): readonly string[] {
  const { maxHopLimit, maxAttachSkewSeconds } = rules;
  const { httpPutResponseHopLimit: hops } = instance;
  return [
    ...violationUnless(
      !rules.httpTokensRequired || instance.httpTokens === 'required',
      'the instance answers IMDSv1: set HttpTokens to required',
    ),
    // Each hop lets one more network namespace, such as a pod's, reach the metadata.
    ...violationUnless(
      maxHopLimit === undefined || (hops !== undefined && hops <= maxHopLimit),
      `the instance has a metadata hop limit of ${hops ?? 'unknown size'}, and ${maxHopLimit ?? 'any'} is the most`,
    ),
    ...violationUnless(
      maxAttachSkewSeconds === undefined || attachSkew(instance) <= maxAttachSkewSeconds * 1000,
      `the root volume and the first interface were not attached within ${maxAttachSkewSeconds ?? 0} s of each other`,
    ),
  ];
}

/** A principal that may stop an instance can replace its EBS root volume, but not one on instance-store. */
function attachSkew({ rootDeviceType, rootAttachedAt, interfaceAttachedAt }: InstanceDescription): number {
  if (rootDeviceType === 'instance-store') return 0;
  // A time that EC2 omits makes the difference infinite.
  return Math.abs((rootAttachedAt ?? Number.POSITIVE_INFINITY) - (interfaceAttachedAt ?? Number.NEGATIVE_INFINITY));
}

/** The machine as EC2 describes it. `instance.addresses` of the policy selects its addresses: all, or the primary ones. */
export function describeMachine(
  {
    nodeName: rules,
    instance: { addresses: which },
  }: Pick<AwsAttestation, 'nodeName'> & { instance: Pick<AwsAttestation['instance'], 'addresses'> },
  { identity }: ExpectedInstance,
  instance: InstanceDescription,
): Machine {
  const [addresses, names] =
    which === 'all' ? [instance.addresses, instance.dnsNames] : [instance.primaryAddresses, instance.primaryDnsNames];
  const dnsNames = [instance.privateDnsName, instance.publicDnsName, ...names]
    .map((name) => (name ?? '').toLowerCase())
    .filter(isHostName);
  return {
    identity,
    providerId: `aws:///${instance.availabilityZone}/${instance.instanceId}`,
    nodeNames: [...new Set(rules.flatMap((rule) => nodeNames(rule, instance)))],
    addresses: [...new Set(addresses.flatMap((text) => canonicalAddress(text) ?? []))],
    dnsNames: [...new Set(dnsNames)],
    startedAt: instance.launchTime,
  };
}

function nodeNames(rule: NodeNameRule, instance: InstanceDescription): readonly string[] {
  if (rule.kind === 'pattern') return [rule.pattern];
  const name = factOf(rule, instance).toLowerCase();
  // Node names are patterns, and every principal that may write tags chooses this text: `*` in it must not match every name.
  return isSubdomain(name) ? [name] : [];
}

function factOf(rule: Exclude<NodeNameRule, { kind: 'pattern' }>, instance: InstanceDescription): string {
  switch (rule.kind) {
    case 'privateDnsName':
      return instance.privateDnsName ?? '';
    case 'privateDnsLabel':
      return (instance.privateDnsName ?? '').split('.')[0] ?? '';
    case 'instanceId':
      return instance.instanceId;
    case 'tag':
      return instance.tags.get(rule.key) ?? '';
  }
}
