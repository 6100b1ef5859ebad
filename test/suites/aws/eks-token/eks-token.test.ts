/*
 * The fakes of AWS, and the product's own reading of a token, held to AWS's own command line: what it signs is accepted,
 * what it is answered it understands, and our presigned requests are the same, byte for byte.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { success } from '../../../../core/outcome/result.ts';
import { partitionOf } from '../../../../core/attestation/aws/partition.ts';
import { readCaller } from '../../../../core/attestation/aws/sts-response.ts';
import { rebuildStsRequest } from '../../../../core/attestation/aws/sts-token.ts';
import { startFakeEc2, type FakeEc2 } from '../../../harness/fake-aws/ec2.ts';
import { startFakeImds } from '../../../harness/fake-aws/machine/imds.ts';
import { makeNodeEvidence } from '../../../harness/fake-aws/machine/node-evidence.ts';
import { presign, stsToken, urlOfToken } from '../../../harness/fake-aws/protocol/presign.ts';
import { connectSts } from '../../../harness/fake-aws/sts-endpoint.ts';
import { startFakeSts, type FakeSts } from '../../../harness/fake-aws/sts.ts';
import { createFakeAws } from '../../../harness/fake-aws/world.ts';
import { requireTools } from '../../../tools/tools.ts';
import { aws as commandLine, getToken } from './command-line.ts';

const { skip } = await requireTools('aws-cli');

const region = 'eu-central-1';
const account = '111122223333';
const world = createFakeAws();
const { instanceId } = world.launch({ account, region, roleName: 'node' });
const identity = world.identityCredential(instanceId);
const node = {
  clusterName: 'prod',
  audience: `${account}/${region}/prod`,
  signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
  nodeName: 'n1',
};
const { binding } = makeNodeEvidence(world, instanceId, node);
const id = `csr-attest/v1/prod/${binding}`;

describe.skipIf(skip)('a token of the real aws eks get-token', () => {
  let sts: FakeSts;
  let token: string;
  beforeAll(async () => {
    sts = await startFakeSts({ aws: world });
    token = await getToken(region, id, identity);
  });
  afterAll(() => sts.close());

  /** Sends it to STS, as the API server's webhook does. */
  function forward(url: string, header: string) {
    const { host, pathname, search } = new URL(url);
    const headers = { 'x-k8s-aws-id': header, accept: 'application/json' };
    return connectSts(sts)({ host, path: pathname + search, headers });
  }

  test('is what the verifier accepts, and nothing near it', async () => {
    const url = urlOfToken(token);
    expect(await forward(url, id)).toMatchObject({ status: 200 });
    expect(sts.calls.at(-1)).toMatchObject({ signedBy: identity.accessKeyId, presigned: true, k8sAwsId: id });
    expect(await forward(url, `${id}0`)).toMatchObject({ status: 403 });
    const flipped = url.replace(/.$/, (last) => (last === '0' ? '1' : '0'));
    expect(await forward(flipped, id)).toMatchObject({ status: 403 });
  });

  test('is byte for byte what the tests sign at the same second', () => {
    const url = urlOfToken(token);
    const [, y, mo, d, h, mi, s] = /X-Amz-Date=(....)(..)(..)T(..)(..)(..)Z/.exec(url) ?? [];
    const at = Date.parse(`${y}-${mo}-${d}T${h}:${mi}:${s}Z`);
    expect(stsToken(presign({ credential: identity, region, id, at }))).toBe(token);
  });

  const header = (value: string) => ({ partition: partitionOf(region)!, region, header: value });

  test('is rebuilt by the product into a request that STS takes for the instance’s', async () => {
    const proof = rebuildStsRequest(token, header(id), world.now());
    if (!proof.ok) throw new Error(proof.problem);
    expect(proof.value.signature).toBe(urlOfToken(token).slice(-64));
    const answer = readCaller(await connectSts(sts)(proof.value.request));
    expect(answer).toEqual(success({ partition: 'aws', account, role: 'aws:ec2-instance', session: instanceId }));
  });

  test('serves no other key, node or cluster, and one for EKS serves none', async () => {
    const others = [`csr-attest/v1/prod/${'0'.repeat(64)}`, `csr-attest/v1/test/${binding}`, 'prod'];
    for (const other of others) {
      const proof = rebuildStsRequest(token, header(other), world.now());
      if (!proof.ok) throw new Error(proof.problem);
      expect(readCaller(await connectSts(sts)(proof.value.request))).toHaveProperty('problem');
    }
    const forEks = await getToken(region, 'prod', identity);
    expect(await forward(urlOfToken(forEks), 'prod')).toMatchObject({ status: 200 });
    const proof = rebuildStsRequest(forEks, header(id), world.now());
    if (!proof.ok) throw new Error(proof.problem);
    expect(readCaller(await connectSts(sts)(proof.value.request))).toHaveProperty('problem');
  });

  test('is of the instance profile where the metadata service lends its role', async () => {
    const imds = await startFakeImds({ aws: world, instanceId });
    const lent = await getToken(region, id, undefined, { AWS_EC2_METADATA_SERVICE_ENDPOINT: imds.url });
    await imds.close();
    const proof = rebuildStsRequest(lent, header(id), world.now());
    if (!proof.ok) throw new Error(proof.problem);
    const answer = readCaller(await connectSts(sts)(proof.value.request));
    expect(answer).toEqual(success({ partition: 'aws', account, role: 'node', session: instanceId }));
  });

  test.each(['us-east-1', 'cn-north-1', 'us-gov-west-1', 'eusc-de-east-1'])('is for the host of %s', async (there) => {
    const { instanceId: other } = world.launch({ account, region: there });
    const made = await getToken(there, id, world.identityCredential(other));
    const proof = rebuildStsRequest(made, { partition: partitionOf(there)!, region: there, header: id }, world.now());
    if (!proof.ok) throw new Error(proof.problem);
    const { name } = partitionOf(there)!;
    expect(readCaller(await connectSts(sts)(proof.value.request))).toEqual(
      success({ partition: name, account, role: 'aws:ec2-instance', session: other }),
    );
  });
});

describe.skipIf(skip)('AWS’s command line at the fakes', () => {
  let sts: FakeSts;
  let ec2: FakeEc2;
  const user = world.createUser(account, 'operator', ['ec2:DescribeInstances']);
  beforeAll(async () => {
    [sts, ec2] = [await startFakeSts({ aws: world }), await startFakeEc2({ aws: world })];
  });
  afterAll(() => Promise.all([sts.close(), ec2.close()]));

  test('understands what STS says of it, and what it lends', async () => {
    const endpoint = ['--region', region, '--endpoint-url', sts.url];
    expect(await commandLine(['sts', 'get-caller-identity', ...endpoint], user)).toEqual({
      UserId: user.principal.userId,
      Account: account,
      Arn: `arn:aws:iam::${account}:user/operator`,
    });
    const arn = `arn:aws:iam::${account}:role/reader`;
    world.createRole({ arn });
    const args = ['sts', 'assume-role', '--role-arn', arn, '--role-session-name', 'me', ...endpoint];
    const { Credentials: lent } = (await commandLine(args, user)) as { Credentials: Record<string, string> };
    expect(world.credential(lent['AccessKeyId'] ?? '')).toMatchObject({
      secretAccessKey: lent['SecretAccessKey'],
      sessionToken: lent['SessionToken'],
    });
    const wrong = commandLine(['sts', 'get-caller-identity', ...endpoint], { ...user, secretAccessKey: 'x' });
    await expect(wrong).rejects.toThrow(/SignatureDoesNotMatch/);
  });

  test('understands what EC2 says of an instance', async () => {
    const args = ['ec2', 'describe-instances', '--region', region, '--endpoint-url', ec2.url, '--instance-ids'];
    const known = world.instances.get(instanceId)!;
    expect(await commandLine([...args, instanceId], user)).toMatchObject({
      Reservations: [
        {
          OwnerId: account,
          Instances: [
            {
              InstanceId: instanceId,
              State: { Code: 16, Name: 'running' },
              PrivateDnsName: known.privateDnsName,
              MetadataOptions: { HttpTokens: 'required', HttpPutResponseHopLimit: 1 },
              NetworkInterfaces: [{ Attachment: { DeviceIndex: 0 } }],
            },
          ],
        },
      ],
    });
    await expect(commandLine([...args, 'i-00000000000000000'], user)).rejects.toThrow(/InvalidInstanceID\.NotFound/);
  });
});
