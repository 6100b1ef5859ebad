/* What the tests' node makes is what the product takes, over its own adapters; and what changes in the world, it notices. */
import { EC2Client } from '@aws-sdk/client-ec2';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { ec2Endpoint } from '../../../../adapters/aws/ec2.ts';
import { stsEndpoint } from '../../../../adapters/aws/sts.ts';
import type { AwsAttestation } from '../../../../core/configuration/providers/aws.ts';
import { awsProvider } from '../../../../core/attestation/aws/provider.ts';
import { bindingDigest } from '../../../../core/attestation/evidence/binding-digest.ts';
import { decodeRequest } from '../../../../core/x509/certificate-request.ts';
import { decodeEvidence } from '../../../../core/attestation/evidence/evidence.ts';
import { startFakeEc2, type FakeEc2 } from '../../../harness/fake-aws/ec2.ts';
import { networkInterface } from '../../../harness/fake-aws/machine/instance.ts';
import { makeNodeEvidence, type NodeEvidenceOptions } from '../../../harness/fake-aws/machine/node-evidence.ts';
import { signIdentityDocument } from '../../../harness/fake-aws/machine/region-ca.ts';
import { startFakeSts, type FakeSts } from '../../../harness/fake-aws/sts.ts';
import { createFakeAws } from '../../../harness/fake-aws/world.ts';

const [account, region] = ['111122223333', 'eu-central-1'];
const node = {
  clusterName: 'prod',
  audience: `${account}/${region}/prod`,
  signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
  nodeName: 'n1',
};
const policy: AwsAttestation = {
  accounts: new Map([[account, {}]]),
  regions: [region],
  vpcs: [],
  subnets: [],
  tags: new Map([['kubernetes.io/cluster/prod', 'owned']]),
  instanceProfiles: [],
  roles: [],
  nodeName: [{ kind: 'tag', key: 'Name' }],
  requireIdentityRole: true,
  acceptV1: true,
  machines: 'any',
  allowRestart: false,
  restartWindowMinutes: 15,
  instance: { httpTokensRequired: true, maxHopLimit: 1, maxAttachSkewSeconds: 60, addresses: 'primary' },
  certificates: new Map(),
};

const aws = createFakeAws();
const reader = aws.createUser(account, 'attest', ['ec2:DescribeInstances']);
let sts: FakeSts;
let ec2: FakeEc2;
beforeAll(async () => {
  [sts, ec2] = [await startFakeSts({ aws }), await startFakeEc2({ aws })];
});
afterEach(() => {
  sts.mend();
  ec2.mend();
});
afterAll(() => Promise.all([sts.close(), ec2.close()]));

function launch(): string {
  const launched = Math.floor(aws.now() / 1_000) * 1_000;
  const more = { publicIp: '203.0.113.7', ipv6: ['2001:db8::7'], secondary: ['10.0.0.8'] };
  return aws.launch({
    account,
    region,
    roleName: 'node',
    tags: { 'kubernetes.io/cluster/prod': 'owned', Name: 'n1' },
    interfaces: [networkInterface(region, 0, '10.0.0.7', launched, more)],
  }).instanceId;
}

/** As attest does: decode, examine, verify. */
async function attest(instanceId: string, options: Partial<NodeEvidenceOptions> = {}, meanwhile = () => {}) {
  const { request } = makeNodeEvidence(aws, instanceId, { ...node, ...options });
  meanwhile();
  const decoded = decodeRequest(Buffer.from(request));
  if (!decoded.ok) throw new Error(decoded.problem[0].message);
  const sent = decodeEvidence(decoded.value.evidence);
  const evidence = sent.ok ? sent.value : undefined;
  if (evidence === undefined) throw new Error('no evidence');
  const credentials = reader;
  const provider = awsProvider(policy, {
    sts: stsEndpoint({ endpoint: sts.url }),
    ec2: ec2Endpoint(
      (where) => new EC2Client({ region: where.region, endpoint: ec2.url, credentials, maxAttempts: 1 }),
    ),
    regionCertificates: aws.regionCertificates(region, 'us-east-1'),
  });
  const { publicKey } = decoded.value;
  const examined = await provider.examine({
    ...evidence,
    request: decoded.value,
    nodeName: node.nodeName,
    clusterName: node.clusterName,
    binding: (nonce) => bindingDigest({ ...node, nonce, spki: publicKey.spki }),
    now: aws.now(),
  });
  const machine = examined.ok ? await examined.value.verify() : examined;
  return machine.ok ? machine.value : machine.problem[0];
}

describe('the product’s provider in the fake AWS', () => {
  test.each([
    ['aws/v2', undefined],
    ['aws/v2', 'a-nonce'],
    ['aws/v1', undefined],
    ['aws/v1', 'a-nonce'],
  ])('takes a node’s evidence %s, nonce %s', async (version, nonce) => {
    const instanceId = launch();
    expect(await attest(instanceId, { version, ...(nonce === undefined ? {} : { nonce }) })).toMatchObject({
      identity: `aws#aws/${account}/${region}/${instanceId}`,
      providerId: `aws:///${region}a/${instanceId}`,
      nodeNames: ['n1'],
      addresses: ['10.0.0.7', '203.0.113.7', '2001:db8::7'],
    });
  });

  test.each<[string, (instanceId: string) => Partial<NodeEvidenceOptions>, RegExp]>([
    ['another name bound', () => ({ nodeName: 'n2' }), /not a signature over this request/],
    ['another audience', () => ({ audience: 'x' }), /not a signature over this request/],
    ['the instance profile’s role', () => ({ signedBy: 'profile' }), /instance identity role/],
    ['the role of another', () => ({ signedBy: aws.identityCredential(launch()) }), /another instance/],
    [
      'a region’s key that has nothing to say of it',
      () => ({ version: 'aws/v1', data: { rsa2048: elsewhere() } }),
      /another region/,
    ],
  ])('notices %s', async (_, options, message) => {
    const instanceId = launch();
    const refused = { code: 'AttestationInvalid', message: expect.stringMatching(message) as unknown };
    expect(await attest(instanceId, options(instanceId))).toMatchObject(refused);
  });

  /** A document of our account and region by the key of another region. */
  function elsewhere(): string {
    return signIdentityDocument(aws.identityDocument(launch()), 'us-east-1');
  }

  test.each<[string, (instanceId: string) => void, RegExp]>([
    ['another disk', swapAnHourLater, /root volume/],
    ['an end', (id) => aws.terminate(id), /terminated/],
    ['a stop', (id) => aws.stop(id), /stopped/],
    ['a tag that went', (id) => aws.change(id, { tags: {} }), /kubernetes\.io\/cluster\/prod/],
  ])('notices %s', async (_, meanwhile, message) => {
    const instanceId = launch();
    const refused = { code: 'IdentityNotAllowed', message: expect.stringMatching(message) as unknown };
    expect(await attest(instanceId, {}, () => meanwhile(instanceId))).toMatchObject(refused);
  });

  function swapAnHourLater(instanceId: string): void {
    aws.swapRootVolume(instanceId);
    const [swapped] = aws.instances.get(instanceId)!.volumes;
    aws.change(instanceId, { volumes: [{ ...swapped!, attachTime: swapped!.attachTime + 3_600_000 }] });
  }

  test('throws on errors and truncated answers, then answers', async () => {
    const instanceId = launch();
    ec2.hide(instanceId, 1);
    await expect(attest(instanceId)).rejects.toThrow(/does not yet know/);
    sts.inject({ when: 'after', times: 1 }, { times: 1, truncateAt: 20 });
    await expect(attest(instanceId)).rejects.toThrow();
    await expect(attest(instanceId)).rejects.toThrow();
    sts.fail(400, 'Throttling', 'Rate exceeded', { times: 1 });
    await expect(attest(instanceId)).rejects.toThrow(/too often/);
    ec2.fail(503, 'RequestLimitExceeded', 'x', 1);
    await expect(attest(instanceId)).rejects.toThrow(/slow down/);
    expect(await attest(instanceId)).toHaveProperty('identity');
  });
});
