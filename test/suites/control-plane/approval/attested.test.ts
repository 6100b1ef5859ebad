import { EC2Client } from '@aws-sdk/client-ec2';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ec2Endpoint } from '../../../../adapters/aws/ec2.ts';
import { stsEndpoint } from '../../../../adapters/aws/sts.ts';
import type { ApiClient } from '../../../harness/kubernetes/api-client.ts';
import { postNodeRequest, startApprovalStack, stateOf, type ApprovalStack } from '../../../harness/stack/approval.ts';
import { startFakeEc2, type FakeEc2 } from '../../../harness/fake-aws/ec2.ts';
import {
  makeNodeEvidence,
  type NodeEvidence,
  type NodeEvidenceOptions,
} from '../../../harness/fake-aws/machine/node-evidence.ts';
import { startFakeSts, type FakeSts } from '../../../harness/fake-aws/sts.ts';
import { createFakeAws } from '../../../harness/fake-aws/world.ts';
import type { Relay } from '../../../harness/stack/stack.ts';
import { certificatePemOf, conditionOf, eventually, readRequest } from '../../../harness/stack/requests.ts';
import { requireTools } from '../../../tools/tools.ts';

const { skip } = await requireTools('etcd', 'kube-apiserver', 'kubectl');

const [account, region] = ['111122223333', 'eu-central-1'];
const signerName = 'cluster.x-k8s.io/kube-apiserver-client-kubelet-aws';
const serving = 'kubernetes.io/kubelet-serving';
const configuration = `version: 1
clusters:
  demo:
    cas: { ca: { subject: { commonName: approval demo CA } } }
    profiles:
      ${signerName}: { maxTtl: 30d }
      ${serving}: { maxTtl: 30d, attestation: { providers: [aws] } }
    approval: { ${signerName}: approve, ${serving}: manual }
    attestation:
      audience: approval
      aws:
        accounts: { '${account}': {} }
        regions: [${region}]
        tags: { kubernetes.io/cluster/demo: owned }
        nodeName: ['tag:Name']
`;

const aws = createFakeAws();
const credentials = aws.createUser(account, 'attest', ['ec2:DescribeInstances']);

describe.skipIf(skip)('attested nodes on a real API server', () => {
  let sts: FakeSts;
  let ec2: FakeEc2;
  let stack: ApprovalStack;
  let relay: Relay;
  let token: ApiClient;

  beforeAll(async () => {
    [sts, ec2] = [await startFakeSts({ aws }), await startFakeEc2({ aws })];
    stack = await startApprovalStack(configuration, {
      sts: stsEndpoint({ endpoint: sts.url }),
      ec2: ec2Endpoint(
        (where) => new EC2Client({ region: where.region, endpoint: ec2.url, credentials, maxAttempts: 1 }),
      ),
      regionCertificates: aws.regionCertificates(region),
    });
    relay = await stack.relay();
    token = await stack.bootstrap('abcdef');
  });
  afterAll(async () => {
    await stack?.stop();
    await Promise.all([sts?.close(), ec2?.close()]);
  });

  const launch = (nodeName: string): string =>
    aws.launch({ account, region, roleName: 'node', tags: { 'kubernetes.io/cluster/demo': 'owned', Name: nodeName } })
      .instanceId;
  const evidenceOf = (instanceId: string, nodeName: string, more: Partial<NodeEvidenceOptions> = {}): NodeEvidence =>
    makeNodeEvidence(aws, instanceId, {
      clusterName: 'demo',
      audience: 'approval',
      signerName,
      nodeName,
      providerId: `aws:///${aws.instances.get(instanceId)!.availabilityZone}/${instanceId}`,
      ...more,
    });
  const post = (client: ApiClient, name: string, { request }: { readonly request: string }) =>
    postNodeRequest(client, name, 'unused', { signerName, pem: request });
  const reaches = (name: string, state: string): Promise<void> =>
    eventually(async () => (await stateOf(stack.plane, name)) === state, `${name} is ${state}`);
  const denied = async (name: string) => {
    await reaches(name, 'Denied');
    return conditionOf(await readRequest(stack.plane, name), 'Denied');
  };
  const annotationsOf = async (name: string) => {
    const { metadata } = await stack.plane.admin.expectOk<{ metadata: { annotations?: Record<string, string> } }>(
      `/apis/certificates.k8s.io/v1/certificatesigningrequests/${name}`,
    );
    return metadata.annotations;
  };
  const nodes = new Map<string, { readonly instanceId: string; readonly client: ApiClient }>();
  /** Brings a machine into the cluster; the client logs in with what it got. */
  const join = async (nodeName: string) => {
    const instanceId = launch(nodeName);
    const evidence = evidenceOf(instanceId, nodeName);
    await post(token, `join-${nodeName}`, evidence);
    await reaches(`join-${nodeName}`, 'Approved, issued');
    const certificatePem = certificatePemOf(await readRequest(stack.plane, `join-${nodeName}`));
    const client = await stack.plane.client({ certificatePem, keyPem: evidence.csr.keyPem });
    nodes.set(nodeName, { instanceId, client });
    return { instanceId, client };
  };
  afterAll(() => {
    for (const { client } of nodes.values()) client.close();
  });

  test('a bootstrap token with the proof of its machine joins, without an access review', async () => {
    const { instanceId } = await join('n1');
    const identity = `aws#aws/${account}/${region}/${instanceId}`;
    expect(conditionOf(await readRequest(stack.plane, 'join-n1'), 'Approved')).toMatchObject({
      status: 'True',
      reason: 'AutoApproved',
      message: expect.stringContaining(identity) as unknown,
    });
    expect(await annotationsOf('join-n1')).toEqual({
      'countersign.dev/identity': identity,
      'countersign.dev/evidence': 'aws/v2',
    });
    await expect.poll(() => stack.writes('join-n1')).toEqual(['update approval 200', 'update status 200']);
    const reviews = stack.plane
      .auditEvents({ user: stack.identity.user })
      .filter(({ objectRef }) => objectRef?.resource === 'subjectaccessreviews');
    expect(reviews).toEqual([]);
  });

  test('the same token claiming that node’s name from another machine is denied with the reason', async () => {
    const thief = launch('n1'); // it may even be called so in its account
    await post(token, 'claims', evidenceOf(thief, 'n1'));
    const condition = await denied('claims');
    expect(condition).toMatchObject({ status: 'True', reason: 'TofuNodeTaken' });
    await expect.poll(() => stack.writes('claims')).toEqual(['update approval 200']);
    await eventually(async () => (await relay.metric('events_total', 'created')) >= 1, 'the owner is told');
    const described = await stack.plane.kubectl(['describe', 'csr', 'claims']);
    expect(described).toContain('TofuNodeTaken');
    await expect.poll(() => relay.metric('decisions_total', 'decision="denied"', 'code="TofuNodeTaken"')).toBe(1);
  });

  test('without a machine, or with another’s proof, the token gets nothing', async () => {
    await postNodeRequest(token, 'bare', 'n2', { signerName });
    expect(await denied('bare')).toMatchObject({ reason: 'AttestationMissing' });
    const captured = evidenceOf(launch('n2'), 'n2');
    const blocks = captured.request.slice(captured.csr.pem.length);
    const { csr } = evidenceOf(launch('n3'), 'n2');
    await post(token, 'captured', { request: csr.pem + blocks });
    expect(await denied('captured')).toMatchObject({ reason: 'AttestationInvalid' });
  });

  test('evidence of a kind that is not taken here is denied with what is, in the same write', async () => {
    await post(token, 'newer', evidenceOf(launch('n4'), 'n4', { version: 'aws/v9' }));
    expect(await denied('newer')).toMatchObject({ reason: 'AttestationVersion' });
    expect(await annotationsOf('newer')).toEqual({
      'countersign.dev/supported-attestation-versions': 'aws/v2,aws/v1',
    });
    await expect.poll(() => stack.writes('newer')).toEqual(['update approval 200']);
  });

  test('the node itself renews with a new key, and no other name', async () => {
    const { instanceId, client } = nodes.get('n1')!;
    const { object } = await post(client, 'renews', evidenceOf(instanceId, 'n1'));
    expect(object.spec.username).toBe('system:node:n1');
    await reaches('renews', 'Approved, issued');
    await post(client, 'renames', evidenceOf(instanceId, 'n5'));
    expect((await denied('renames'))?.reason).toMatch(/RequesterNotAllowed|TofuNodeMismatch/);
    // Reinstalled, or impersonated from a pod on it: the token is no way to a new key.
    await post(token, 'again', evidenceOf(instanceId, 'n1'));
    expect(await denied('again')).toMatchObject({ reason: 'TofuReuse' });
  });

  test('where approval is manual the verdict is on record before the approval', async () => {
    const { instanceId, client } = nodes.get('n1')!;
    const [first] = aws.instances.get(instanceId)!.interfaces;
    const ip = first!.addresses[0]!.address;
    const own = { signerName: serving, usage: 'server auth', spec: { sans: { ip: [ip] } } };
    await postNodeRequest(client, 'serving', 'n1', own);
    await postNodeRequest(client, 'foreign', 'n1', { ...own, spec: { sans: { ip: ['192.0.2.1'] } } });
    for (const name of ['serving', 'foreign'])
      await eventually(() => stack.calls.includes(`attest ${name}`), `${name} is attested`);
    await eventually(async () => (await relay.metric('decisions_total', 'decision="noted"')) === 2, 'both are noted');
    for (const name of ['serving', 'foreign'])
      expect([await stateOf(stack.plane, name), stack.writes(name)]).toEqual(['', []]);
    await stack.plane.kubectl(['annotate', 'csr', 'serving', 'changed=yes']);
    await stack.plane.kubectl(['certificate', 'approve', 'serving', 'foreign']);
    await reaches('serving', 'Approved, issued');
    await reaches('foreign', 'Approved, Failed');
    expect(conditionOf(await readRequest(stack.plane, 'foreign'), 'Failed')).toMatchObject({ reason: 'NameNotOwned' });
    expect(stack.calls.filter((call) => call === 'attest serving')).toHaveLength(1);
  });
});
