/**
 * One EC2 instance, its impersonators, and an STS that believes no signature unverified: what the
 * cases of this folder vary. Nothing here is the product's, and nothing listens.
 */
import type { InstanceDescription } from '../../../core/attestation/aws/instance.ts';
import type { StsAnswer, StsRequest } from '../../../core/attestation/aws/endpoints.ts';
import type { AwsAttestation } from '../../../core/configuration/providers/aws.ts';
import { verifySigV4 } from '../../harness/aws/sigv4-verifier.ts';
import { createRegionKey } from './cms-writer.ts';

export const account = '111122223333';
export const otherAccount = '444455556666';
export const region = 'eu-central-1';
export const instanceId = 'i-0123456789abcdef0';
export const otherInstanceId = 'i-0fedcba9876543210';
export const now = Date.parse('2026-08-30T12:00:30Z');
export const clusterName = 'blue';
/** Stands for B: what the core computes out of key, node, signer and audience. */
export const binding = (nonce: string): string => `b1${'0'.repeat(60)}${nonce === '' ? '00' : nonce.slice(0, 2)}`;

export const document: Readonly<Record<string, unknown>> = {
  accountId: account,
  architecture: 'x86_64',
  availabilityZone: 'eu-central-1a',
  billingProducts: null,
  devpayProductCodes: null,
  marketplaceProductCodes: null,
  imageId: 'ami-0123456789abcdef0',
  instanceId,
  instanceType: 'm7i.large',
  kernelId: null,
  pendingTime: '2026-08-30T12:00:00Z',
  privateIp: '10.0.0.5',
  ramdiskId: null,
  region,
  version: '2017-09-30',
};

/** What aws/v2 says instead. */
export const claims = { v: 2, account, region, instance: instanceId } as const;

export const keys = {
  'eu-central-1': createRegionKey({ serial: 0xa0febfa2de47f5abn }),
  'us-east-1': createRegionKey({ serial: 0xb169cc401559a419n }),
  /** Pinned, and not understood: no public partition. */
  'us-iso-east-1': createRegionKey({ serial: 0x51n }),
  /** Pinned, and over. */
  'eu-west-1': createRegionKey({ serial: 0x52n, notAfter: '20260801000000Z' }),
};
/** An attacker's, with the serial number of the true one. */
export const forged = createRegionKey({ serial: 0xa0febfa2de47f5abn });
/** Of an unconfigured region. */
export const foreign = createRegionKey({ serial: 0x7777n });

export const regionCertificates: ReadonlyMap<string, readonly Uint8Array[]> = new Map(
  Object.entries(keys).map(([name, { certificate }]) => [name, [certificate]]),
);

export const policy: AwsAttestation = {
  accounts: new Map([[account, { assumeRole: `arn:aws:iam::${account}:role/describe` }]]),
  regions: [region, 'us-iso-east-1', 'eu-west-1'],
  vpcs: ['vpc-1'],
  subnets: [],
  tags: new Map([['kubernetes.io/cluster/blue', '*']]),
  instanceProfiles: [],
  roles: [],
  nodeName: [{ kind: 'privateDnsName' }],
  requireIdentityRole: true,
  acceptV1: true,
  machines: 'any',
  allowRestart: false,
  restartWindowMinutes: 15,
  instance: { httpTokensRequired: true, maxHopLimit: 1, maxAttachSkewSeconds: 60, addresses: 'primary' },
  certificates: new Map(),
};

export const instance: InstanceDescription = {
  instanceId,
  ownerId: account,
  state: 'running',
  availabilityZone: 'eu-central-1a',
  launchTime: Date.parse('2026-08-30T12:00:00Z'),
  vpcId: 'vpc-1',
  subnetId: 'subnet-1',
  tags: new Map([['kubernetes.io/cluster/blue', 'owned']]),
  instanceProfile: `arn:aws:iam::${account}:instance-profile/nodes/worker`,
  httpTokens: 'required',
  httpPutResponseHopLimit: 1,
  privateDnsName: 'ip-10-0-0-5.eu-central-1.compute.internal',
  publicDnsName: '',
  rootDeviceType: 'ebs',
  rootAttachedAt: Date.parse('2026-08-30T12:00:01Z'),
  interfaceAttachedAt: Date.parse('2026-08-30T12:00:00Z'),
  primaryAddresses: ['10.0.0.5', '198.51.100.7', '2001:db8:0:0:0:0:0:5'],
  primaryDnsNames: ['EC2-198-51-100-7.eu-central-1.compute.amazonaws.com'],
  addresses: ['10.0.0.5', '10.0.0.6', '198.51.100.7', '2001:db8:0:0:0:0:0:5'],
  dnsNames: ['ip-10-0-0-6.eu-central-1.compute.internal', 'EC2-198-51-100-7.eu-central-1.compute.amazonaws.com'],
};

export interface Credential {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
  readonly arn: string;
  readonly userId: string;
  readonly account: string;
}

function session(number: number, role: string, name: string, of = account, partition = 'aws'): Credential {
  return {
    accessKeyId: `ASIA${String(number).padStart(16, 'Q')}`,
    secretAccessKey: `secret-${number}`,
    // Base64 with each of the characters that a query must encode.
    sessionToken: `IQoJb3JpZ2lu+/${number}==`,
    arn: `arn:${partition}:sts::${of}:assumed-role/${role}/${name}`,
    userId: role === 'aws:ec2-instance' ? `${of}:${role}:${name}` : `AROAQQQQQQQQQQQQQQQQ:${name}`,
    account: of,
  };
}

export const credentials = {
  machine: session(1, 'aws:ec2-instance', instanceId),
  otherMachine: session(2, 'aws:ec2-instance', otherInstanceId),
  otherAccount: session(3, 'aws:ec2-instance', instanceId, otherAccount),
  otherPartition: session(4, 'aws:ec2-instance', instanceId, account, 'aws-cn'),
  nodeRole: session(5, 'nodes', instanceId),
  otherRole: session(6, 'developers', instanceId),
  otherSession: session(7, 'nodes', 'alice'),
  user: {
    accessKeyId: 'AKIAQQQQQQQQQQQQQQQ8',
    secretAccessKey: 'secret-8',
    arn: `arn:aws:iam::${account}:user/alice`,
    userId: 'AIDAQQQQQQQQQQQQQQQQ',
    account,
  },
  /** What AWS never gives: an access key of a user, with a session. */
  userWithToken: { ...session(9, 'aws:ec2-instance', instanceId), accessKeyId: 'AKIAQQQQQQQQQQQQQQQ9' },
} as const satisfies Readonly<Record<string, Credential>>;

/** Answers as AWS's STS does; presigned GETs to the host that they were signed for. */
export function askSts({ host, path, headers }: StsRequest, at = now): StsAnswer {
  const known: readonly Credential[] = Object.values(credentials);
  const byKey = (id: string): Credential | undefined => known.find(({ accessKeyId }) => accessKeyId === id);
  const request = { method: 'GET', target: path, headers: { host, ...headers }, body: Buffer.alloc(0) };
  const verified = verifySigV4(request, (id) => byKey(id)?.secretAccessKey, at);
  if (typeof verified === 'string') return failure(403, 'SignatureDoesNotMatch');
  if (verified.service !== 'sts' || host !== `sts.${verified.region}.amazonaws.com`)
    return failure(403, 'SignatureDoesNotMatch');
  const who = byKey(verified.accessKeyId);
  if (who === undefined || who.sessionToken !== verified.sessionToken) return failure(403, 'InvalidClientTokenId');
  const query = new URLSearchParams(path.slice(path.indexOf('?')));
  // Another action's answer is JSON as well, and some hold text of the caller's choice.
  if (query.get('Action') !== 'GetCallerIdentity') return json(200, { GetSessionTokenResponse: {} });
  return json(200, callerIdentity(who));
}

/** For questions that need no STS. */
export const noSts = (): Promise<StsAnswer> => Promise.reject(new Error('this test allows no call of STS'));

export function callerIdentity({ account: Account, arn: Arn, userId: UserId }: Credential): Record<string, unknown> {
  return {
    GetCallerIdentityResponse: {
      GetCallerIdentityResult: { Account, Arn, UserId },
      ResponseMetadata: { RequestId: '01234567-89ab-cdef-0123-456789abcdef' },
    },
  };
}

export function json(status: number, body: unknown): StsAnswer {
  return { status, contentType: 'application/json', body: JSON.stringify(body) };
}

export function failure(status: number, code: string): StsAnswer {
  return json(status, { Error: { Code: code, Message: 'no', Type: 'Sender' }, RequestId: 'r' });
}
