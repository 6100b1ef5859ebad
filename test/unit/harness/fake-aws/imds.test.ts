import { fromInstanceMetadata } from '@aws-sdk/credential-providers';
import { X509Certificate } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startFakeImds, type FakeImds } from '../../../harness/fake-aws/machine/imds.ts';
import { regionCa } from '../../../harness/fake-aws/machine/region-ca.ts';
import { sendTo } from '../../../harness/fake-aws/sts-endpoint.ts';
import { createFakeAws } from '../../../harness/fake-aws/world.ts';

let now = Date.now();
const aws = createFakeAws({ now: () => now });
const { instanceId } = aws.launch({ roleName: 'node', privateIp: '10.0.0.7', tags: { role: 'worker' } });

let imds: FakeImds;
beforeAll(async () => (imds = await startFakeImds({ aws, instanceId })));
afterAll(() => imds.close());

const host = '169.254.169.254';
const put = (headers: Record<string, string>, to = imds) =>
  sendTo(to.port, { method: 'PUT', host, path: '/latest/api/token', headers });
const ttl = (seconds: string) => ({ 'x-aws-ec2-metadata-token-ttl-seconds': seconds });
const get = async (path: string, token: string, to = imds) =>
  sendTo(to.port, { method: 'GET', host, path: `/latest/${path}`, headers: { 'x-aws-ec2-metadata-token': token } });

async function read(path: string): Promise<string> {
  const { status, body } = await get(path, (await put(ttl('60'))).body);
  expect(status).toBe(200);
  return body;
}

describe('the fake metadata service', () => {
  test('tells what a node needs for its evidence', async () => {
    const document = await read('dynamic/instance-identity/document');
    expect(JSON.parse(document)).toMatchObject({
      accountId: '111122223333',
      instanceId,
      region: 'eu-central-1',
      availabilityZone: 'eu-central-1a',
      privateIp: '10.0.0.7',
      pendingTime: new Date(now).toISOString().replace(/\.\d+Z/, 'Z'),
      version: '2017-09-30',
    });
    const signed = await read('dynamic/instance-identity/rsa2048');
    expect(signed.startsWith('MIAGCSqGSIb3DQEHAqCAMIACAQExDTALBglghkgBZQMEAgEwgAYJKoZIhvcNAQcB')).toBe(true);
    expect(Buffer.from(signed, 'base64').includes(document)).toBe(true);
    // Made once a start, and the region's.
    now += 3_600_000;
    expect(await read('dynamic/instance-identity/rsa2048')).toBe(signed);
    const [certificate] = aws.regionCertificates('eu-central-1').get('eu-central-1') ?? [];
    expect(new X509Certificate(certificate ?? '').serialNumber).toBe(regionCa('eu-central-1').serialNumber);
    expect(Buffer.from(signed, 'base64').includes(Buffer.from(regionCa('eu-central-1').serialNumber, 'hex'))).toBe(
      true,
    );

    const identity = JSON.parse(
      await read('meta-data/identity-credentials/ec2/security-credentials/ec2-instance'),
    ) as Record<string, string>;
    expect(aws.credential(identity['AccessKeyId'] ?? '')).toMatchObject({
      secretAccessKey: identity['SecretAccessKey'],
      sessionToken: identity['Token'],
      principal: { arn: `arn:aws:sts::111122223333:assumed-role/aws:ec2-instance/${instanceId}` },
    });
    expect(await read('meta-data/placement/region')).toBe('eu-central-1');
    expect(await read('meta-data/local-hostname')).toBe('ip-10-0-0-7.eu-central-1.compute.internal');
  });

  test('gives the real SDK the role of the instance profile', async () => {
    process.env['AWS_EC2_METADATA_SERVICE_ENDPOINT'] = imds.url;
    const given = await fromInstanceMetadata({ maxRetries: 0 })();
    delete process.env['AWS_EC2_METADATA_SERVICE_ENDPOINT'];
    expect(aws.credential(given.accessKeyId)).toMatchObject({
      sessionToken: given.sessionToken,
      principal: { arn: `arn:aws:sts::111122223333:assumed-role/node/${instanceId}` },
    });
  });

  test.each<[string, Record<string, string>, number]>([
    ['no lifetime', {}, 400],
    ['a lifetime of 0', ttl('0'), 400],
    ['a lifetime of more than six hours', ttl('21601'), 400],
    ['a lifetime that is no number', ttl('1e2'), 400],
    ['a proxy in between', { ...ttl('60'), 'x-forwarded-for': '192.0.2.1' }, 403],
  ])('gives no token for %s', async (_, headers, status) => {
    expect(await put(headers)).toMatchObject({ status });
  });

  test('tells nothing without a token, with another’s or with an old one', async () => {
    const before = imds.told.length;
    const path = 'meta-data/instance-id';
    const bare = { method: 'GET', host, path: `/latest/${path}`, headers: {} };
    expect(await sendTo(imds.port, bare)).toMatchObject({ status: 401 });
    const elsewhere = await startFakeImds({ aws, instanceId });
    expect(await get(path, (await put(ttl('60'), elsewhere)).body)).toMatchObject({ status: 401 });
    await elsewhere.close();
    const { body: token } = await put(ttl('60'));
    now += 60_000;
    expect(await get(path, token)).toMatchObject({ status: 401 });
    expect(imds.told.length).toBe(before);
    expect(await get('meta-data/instance-ids', (await put(ttl('60'))).body)).toMatchObject({ status: 404 });
    expect(await get('meta-data/iam/security-credentials/other', (await put(ttl('60'))).body)).toMatchObject({
      status: 404,
    });
    expect(await get('meta-data/tags/instance/role', (await put(ttl('60'))).body)).toMatchObject({ status: 404 });
  });

  test('reaches as far as the hop limit, and not when it is off or the instance is', async () => {
    const pod = await startFakeImds({ aws, instanceId, hops: 2 });
    const { metadataOptions } = aws.instances.get(instanceId)!;
    await expect(put(ttl('60'), pod)).rejects.toThrow();
    aws.change(instanceId, { metadataOptions: { ...metadataOptions, httpPutResponseHopLimit: 2 } });
    expect(await put(ttl('60'), pod)).toMatchObject({ status: 200 });
    await pod.close();
    aws.change(instanceId, { metadataOptions: { ...metadataOptions, httpEndpoint: 'disabled' } });
    expect(await put(ttl('60'))).toMatchObject({ status: 403 });
    aws.change(instanceId, { metadataOptions });
    aws.stop(instanceId);
    await expect(put(ttl('60'))).rejects.toThrow();
    aws.start(instanceId);
  });
});
