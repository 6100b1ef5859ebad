/** What EC2 says of the instance, under each rule of the policy. */
import { account, instance, otherAccount, otherInstanceId, region } from './aws-machine.ts';
import type { Case } from './judge.ts';

const rules = { httpTokensRequired: false, addresses: 'primary' } as const;
const no = (check: string) => ['IdentityNotAllowed', check] as const;
const disagree = (check: string) => ['AttestationInvalid', check] as const;
const profile = `arn:aws:iam::${account}:instance-profile/nodes/worker`;

export const instanceCases: readonly Case[] = [
  // States.
  { name: 'being started', expect: ['temporary', 'does not yet know'], instance: { state: 'pending' } },
  { name: 'not known yet', expect: ['temporary', 'does not yet know'], instance: 'notFound' },
  { name: 'stopping', expect: no('the instance is stopping'), instance: { state: 'stopping' } },
  { name: 'stopped', expect: no('the instance is stopped'), instance: { state: 'stopped' } },
  { name: 'shutting down', expect: no('the instance is shutting-down'), instance: { state: 'shutting-down' } },
  {
    name: 'terminated, its credentials alive',
    expect: no('the instance is terminated'),
    instance: { state: 'terminated' },
  },

  // IDs agree.
  {
    name: 'EC2 describes another instance',
    expect: disagree('describes another instance'),
    instance: { instanceId: otherInstanceId },
  },
  {
    name: 'EC2 answers from another account',
    expect: disagree('an instance of another account'),
    instance: { ownerId: otherAccount },
  },
  {
    name: 'EC2 describes another region',
    expect: disagree('in another availability zone'),
    instance: { availabilityZone: 'us-east-1a' },
  },
  {
    name: 'any zone of the region, where the evidence names none',
    expect: 'accepted',
    instance: { availabilityZone: `${region}b` },
  },
  {
    name: 'EC2 describes another zone',
    version: 'aws/v1',
    expect: disagree('in another availability zone'),
    instance: { availabilityZone: `${region}b` },
  },
  {
    name: 'EC2 describes another address',
    version: 'aws/v1',
    expect: disagree('without the address in its document'),
    instance: { addresses: ['10.0.0.9'] },
  },
  { name: 'any address, where the evidence names none', expect: 'accepted', instance: { addresses: ['10.0.0.9'] } },
  {
    name: 'without IPv4',
    version: 'aws/v1',
    expect: 'accepted',
    document: { privateIp: null },
    instance: { addresses: ['2001:db8::5'] },
  },

  // VPC and subnet.
  { name: 'in another VPC', expect: no('in VPC vpc-2, which may not join'), instance: { vpcId: 'vpc-2' } },
  {
    name: 'in no VPC',
    expect: no('in VPC none, which may not join'),
    instance: { vpcId: undefined } as never,
  },
  { name: 'in any VPC where none is listed', expect: 'accepted', policy: { vpcs: [] }, instance: { vpcId: 'vpc-2' } },
  { name: 'in a subnet that may', expect: 'accepted', policy: { subnets: ['subnet-0', 'subnet-1'] } },
  {
    name: 'in another subnet',
    expect: no('in subnet subnet-1, which may not join'),
    policy: { subnets: ['subnet-2'] },
  },

  // Tags.
  {
    name: 'without the tag',
    expect: no('does not have the tag "kubernetes.io/cluster/blue"'),
    instance: { tags: new Map() },
  },
  {
    name: 'with the value asked for',
    expect: 'accepted',
    policy: { tags: new Map([['kubernetes.io/cluster/blue', 'owned']]) },
  },
  {
    name: 'with another value',
    expect: no('with the value "shared"'),
    policy: { tags: new Map([['kubernetes.io/cluster/blue', 'shared']]) },
  },
  {
    name: 'one of two tags',
    expect: no('does not have the tag "team"'),
    policy: {
      tags: new Map([
        ['kubernetes.io/cluster/blue', '*'],
        ['team', '*'],
      ]),
    },
  },
  {
    name: 'with the tag in another letter case',
    expect: no('does not have the tag'),
    instance: { tags: new Map([['Kubernetes.io/cluster/blue', 'owned']]) },
  },

  // Instance profiles.
  { name: 'with the profile by ARN', expect: 'accepted', policy: { instanceProfiles: [profile] } },
  {
    name: 'with a profile by pattern',
    expect: 'accepted',
    policy: { instanceProfiles: [`arn:aws:iam::${account}:instance-profile/nodes/*`] },
  },
  { name: 'with the profile by name', expect: 'accepted', policy: { instanceProfiles: ['worker'] } },
  {
    name: 'with another profile',
    expect: no('one of the instance profiles'),
    policy: { instanceProfiles: ['control-plane'] },
  },
  {
    name: 'with a profile whose path is as the name',
    expect: no('one of the instance profiles'),
    policy: { instanceProfiles: ['nodes'] },
  },
  {
    name: 'with no profile where any counts',
    expect: no('one of the instance profiles'),
    policy: { instanceProfiles: ['*'] },
    instance: { instanceProfile: undefined } as never,
  },

  // Metadata options.
  { name: 'IMDSv1', expect: no('set HttpTokens to required'), instance: { httpTokens: 'optional' } },
  {
    name: 'IMDS of unknown version',
    expect: no('set HttpTokens to required'),
    instance: { httpTokens: undefined } as never,
  },
  {
    name: 'IMDSv1 where it may',
    expect: 'accepted',
    instance: { httpTokens: 'optional' },
    policy: { instance: rules },
  },
  { name: 'a hop limit of 2', expect: no('a metadata hop limit of 2'), instance: { httpPutResponseHopLimit: 2 } },
  {
    name: 'no known hop limit',
    expect: no('a metadata hop limit of unknown size'),
    instance: { httpPutResponseHopLimit: undefined } as never,
  },
  {
    name: 'a hop limit of 64 where it may',
    expect: 'accepted',
    instance: { httpPutResponseHopLimit: 64 },
    policy: { instance: rules },
  },

  // Attach times.
  {
    name: 'root volume attached an hour later',
    expect: no('were not attached within 60 s'),
    instance: { rootAttachedAt: (instance.interfaceAttachedAt ?? 0) + 3_600_000 },
  },
  {
    name: 'root volume attached an hour before',
    expect: no('were not attached within 60 s'),
    instance: { rootAttachedAt: (instance.interfaceAttachedAt ?? 0) - 3_600_000 },
  },
  {
    name: 'root volume attached 60 s later',
    expect: 'accepted',
    instance: { rootAttachedAt: (instance.interfaceAttachedAt ?? 0) + 60_000 },
  },
  {
    name: 'root volume attached at an unknown time',
    expect: no('were not attached within 60 s'),
    instance: { rootAttachedAt: undefined } as never,
  },
  {
    name: 'first interface attached at an unknown time',
    expect: no('were not attached within 60 s'),
    instance: { interfaceAttachedAt: undefined } as never,
  },
  {
    name: 'an instance-store root, which cannot be changed',
    expect: 'accepted',
    instance: { rootDeviceType: 'instance-store', rootAttachedAt: undefined } as never,
  },
  {
    name: 'root volume attached an hour later where it may',
    expect: 'accepted',
    instance: { rootAttachedAt: (instance.interfaceAttachedAt ?? 0) + 3_600_000 },
    policy: { instance: rules },
  },

  // What comes out of it: invalid names and addresses are left out.
  {
    name: 'a node name in a tag that is a pattern',
    expect: 'accepted',
    policy: { nodeName: [{ kind: 'tag', key: 'Name' }] },
    instance: { tags: new Map([...instance.tags, ['Name', '*']]) },
  },
  {
    name: 'any node name of a pattern',
    expect: 'accepted',
    policy: { nodeName: [{ kind: 'pattern', pattern: 'edge-*' }] },
  },
  {
    name: 'invalid addresses',
    expect: 'accepted',
    instance: { primaryAddresses: ['10.0.0.5', '10.0.0.0/24', 'x', ''] },
  },
];
