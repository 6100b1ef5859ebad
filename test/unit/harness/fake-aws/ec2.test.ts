import {
  DescribeInstancesCommand,
  EC2Client,
  GetInstanceTpmEkPubCommand,
  paginateDescribeInstances,
} from '@aws-sdk/client-ec2';
import type { DescribeInstancesCommandInput, GetInstanceTpmEkPubCommandInput } from '@aws-sdk/client-ec2';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { startFakeEc2, type FakeEc2 } from '../../../harness/fake-aws/ec2.ts';
import { networkInterface, type FakeInstance } from '../../../harness/fake-aws/machine/instance.ts';
import { createFakeAws } from '../../../harness/fake-aws/world.ts';
import type { Credential } from '../../../harness/fake-aws/world.ts';

const [account, region] = ['111122223333', 'eu-central-1'];
// The SDK signs with the clock of the machine.
const aws = createFakeAws();
const reader = aws.createUser(account, 'reader', ['ec2:DescribeInstances']);
const launched = Math.floor(aws.now() / 1_000) * 1_000;
const machine = aws.launch({
  account,
  region,
  roleName: 'node',
  tags: { 'kubernetes.io/cluster/prod': 'owned', Name: `<"R&D'>` },
  interfaces: [
    networkInterface(region, 0, '10.0.0.7', launched, {
      publicIp: '203.0.113.7',
      ipv6: ['2001:db8::7'],
      secondary: ['10.0.0.8'],
    }),
    networkInterface(region, 1, '10.0.1.7', launched + 9_000),
  ],
});

let ec2: FakeEc2;
beforeAll(async () => (ec2 = await startFakeEc2({ aws })));
afterEach(() => ec2.mend());
afterAll(() => ec2.close());

function client(credentials: Credential = reader, more: { region?: string; maxAttempts?: number } = {}): EC2Client {
  return new EC2Client({ region, endpoint: ec2.url, credentials, maxAttempts: 1, ...more });
}

async function describeOne(instanceId: string, of = client()) {
  const { Reservations = [] } = await of.send(new DescribeInstancesCommand({ InstanceIds: [instanceId] }));
  expect(Reservations).toHaveLength(1);
  return { owner: Reservations[0]?.OwnerId, ...Reservations[0]?.Instances?.[0] };
}

const ids = async (input: DescribeInstancesCommandInput, of = client()) => {
  const { Reservations = [] } = await of.send(new DescribeInstancesCommand(input));
  return Reservations.flatMap(({ Instances = [] }) => Instances.map(({ InstanceId }) => InstanceId));
};

describe('DescribeInstances of the fake EC2, read by the real SDK', () => {
  test('tells all there is of an instance', async () => {
    expect(await describeOne(machine.instanceId)).toMatchObject({
      owner: account,
      InstanceId: machine.instanceId,
      State: { Code: 16, Name: 'running' },
      Placement: { AvailabilityZone: 'eu-central-1a' },
      LaunchTime: new Date(launched),
      VpcId: machine.vpcId,
      SubnetId: machine.subnetId,
      PrivateIpAddress: '10.0.0.7',
      PublicIpAddress: '203.0.113.7',
      PrivateDnsName: 'ip-10-0-0-7.eu-central-1.compute.internal',
      PublicDnsName: 'ec2-203-0-113-7.eu-central-1.compute.amazonaws.com',
      IamInstanceProfile: { Arn: `arn:aws:iam::${account}:instance-profile/node` },
      MetadataOptions: { HttpTokens: 'required', HttpPutResponseHopLimit: 1, HttpEndpoint: 'enabled' },
      RootDeviceType: 'ebs',
      RootDeviceName: '/dev/xvda',
      BlockDeviceMappings: [{ DeviceName: '/dev/xvda', Ebs: { AttachTime: new Date(launched + 1_000) } }],
      Tags: [
        { Key: 'kubernetes.io/cluster/prod', Value: 'owned' },
        { Key: 'Name', Value: `<"R&D'>` },
      ],
      NetworkInterfaces: [
        {
          Attachment: { DeviceIndex: 0, NetworkCardIndex: 0, AttachTime: new Date(launched) },
          Association: { PublicIp: '203.0.113.7' },
          Ipv6Addresses: [{ Ipv6Address: '2001:db8::7' }],
          PrivateIpAddresses: [
            { PrivateIpAddress: '10.0.0.7', Primary: true, Association: { PublicIp: '203.0.113.7' } },
            { PrivateIpAddress: '10.0.0.8', Primary: false },
          ],
        },
        { Attachment: { DeviceIndex: 1 }, PrivateIpAddress: '10.0.1.7' },
      ],
    });
    expect(ec2.calls.at(-1)).toEqual({
      action: 'DescribeInstances',
      signedBy: reader.accessKeyId,
      account,
      region,
      parameters: { 'InstanceId.1': machine.instanceId },
    });
  });

  test('follows an instance through stop, start, another disk, end and oblivion', async () => {
    let now = Date.now();
    const timed = createFakeAws({ now: () => now });
    const { instanceId } = timed.launch({ account, region });
    const who = timed.createUser(account, 'reader', ['*']);
    const own = await startFakeEc2({ aws: timed });
    const of = new EC2Client({ region, endpoint: own.url, credentials: who, maxAttempts: 1 });
    const started = Math.floor(now / 1_000) * 1_000;
    const document = timed.identityDocument(instanceId);
    timed.stop(instanceId);
    expect(await describeOne(instanceId, of)).toMatchObject({ State: { Name: 'stopped' } });
    timed.swapRootVolume(instanceId);
    now += 10_000;
    timed.start(instanceId);
    expect(timed.identityDocument(instanceId)).not.toBe(document);
    const running = await describeOne(instanceId, of);
    expect(running.LaunchTime).toEqual(new Date(started + 10_000));
    expect(running.BlockDeviceMappings).toMatchObject([{ Ebs: { AttachTime: new Date(started) } }]);
    timed.terminate(instanceId);
    const ended = await describeOne(instanceId, of);
    expect(ended).toMatchObject({ State: { Code: 48, Name: 'terminated' } });
    expect([ended.VpcId, ended.PrivateIpAddress]).toEqual([undefined, undefined]);
    timed.forget(instanceId);
    await expect(describeOne(instanceId, of)).rejects.toMatchObject({ name: 'InvalidInstanceID.NotFound' });
    await own.close();
  });

  test('finds by filters, and gives pages', async () => {
    const more = Array.from({ length: 6 }, (_, index) => aws.launch({ account, region, tags: { pool: `p-${index}` } }));
    const filter = (Name: string, ...Values: string[]) => ids({ Filters: [{ Name, Values }] });
    expect(await filter('tag:pool', 'p-1', 'p-[2]')).toEqual([more[1]?.instanceId]);
    expect(await filter('tag-key', 'pool')).toHaveLength(6);
    expect(await filter('tag:pool', 'p-?')).toHaveLength(6);
    expect(await filter('instance-state-name', 'stopped')).toEqual([]);
    const pages: number[] = [];
    for await (const page of paginateDescribeInstances({ client: client(), pageSize: 5 }, {}))
      pages.push(page.Reservations?.length ?? 0);
    expect(pages).toEqual([5, 2]);
  });

  test('is for the caller’s account and region only', async () => {
    const foreign = aws.launch({ account: '444455556666', region });
    const away = aws.launch({ account, region: 'us-east-1' });
    const notFound = { name: 'InvalidInstanceID.NotFound' };
    await expect(describeOne(foreign.instanceId)).rejects.toMatchObject(notFound);
    await expect(describeOne(away.instanceId)).rejects.toMatchObject(notFound);
    const there = client(reader, { region: 'us-east-1' });
    expect(await describeOne(away.instanceId, there)).toMatchObject({
      PrivateDnsName: expect.stringMatching(/\.ec2\.internal$/) as unknown,
    });
    const role = aws.createRole({ arn: 'arn:aws:iam::444455556666:role/reader', allows: ['ec2:DescribeInstances'] });
    expect(await describeOne(foreign.instanceId, client(aws.session(role, 'attest')))).toMatchObject({
      owner: '444455556666',
    });
  });

  test.each<[string, Credential, string]>([
    ['without the right', aws.createUser(account, 'without-rights'), 'UnauthorizedOperation'],
    ['by the instance itself', aws.identityCredential(machine.instanceId), 'UnauthorizedOperation'],
    ['with another secret', { ...reader, secretAccessKey: 'x' }, 'AuthFailure'],
    ['with a token that is not the key’s', { ...reader, sessionToken: 'x' }, 'AuthFailure'],
    ['by an unknown key', { ...reader, accessKeyId: 'AKIANOBODY' }, 'AuthFailure'],
  ])('is refused %s', async (_, who, name) => {
    const before = ec2.calls.length;
    await expect(describeOne(machine.instanceId, client(who))).rejects.toMatchObject({ name });
    expect(ec2.calls.length).toBe(before);
  });

  test.each<[string, DescribeInstancesCommandInput, string]>([
    ['a malformed id', { InstanceIds: ['i-xyz'] }, 'InvalidInstanceID.Malformed'],
    ['an unknown id', { InstanceIds: [machine.instanceId, 'i-00000000000000000'] }, 'InvalidInstanceID.NotFound'],
    ['an unknown filter', { Filters: [{ Name: 'colour', Values: ['red'] }] }, 'InvalidParameterValue'],
    ['a filter of Object’s', { Filters: [{ Name: 'constructor', Values: ['x'] }] }, 'InvalidParameterValue'],
    ['a filter without values', { Filters: [{ Name: 'vpc-id' }] }, 'InvalidParameterValue'],
    ['ids by pages', { InstanceIds: [machine.instanceId], MaxResults: 5 }, 'InvalidParameterCombination'],
    ['pages of one', { MaxResults: 1 }, 'InvalidParameterValue'],
    ['no such page', { NextToken: 'x' }, 'InvalidParameterValue'],
    ['a parameter it does not know', { DryRun: true }, 'UnknownParameter'],
  ])('refuses %s', async (_, input, name) => {
    await expect(ids(input)).rejects.toMatchObject({ name });
  });

  test('does not know a new instance at once, and fails as told', async () => {
    ec2.hide(machine.instanceId, 2);
    const notFound = { name: 'InvalidInstanceID.NotFound' };
    await expect(describeOne(machine.instanceId)).rejects.toMatchObject(notFound);
    await expect(describeOne(machine.instanceId)).rejects.toMatchObject(notFound);
    expect(await describeOne(machine.instanceId)).toMatchObject({ State: { Name: 'running' } });
    ec2.fail(503, 'RequestLimitExceeded', 'Request limit exceeded.', 1);
    await expect(describeOne(machine.instanceId)).rejects.toMatchObject({ name: 'RequestLimitExceeded' });
    ec2.fail(500, 'InternalError', 'x', 1);
    expect(await describeOne(machine.instanceId, client(reader, { maxAttempts: 2 }))).toMatchObject({ owner: account });
    ec2.inject({ times: 1 });
    await expect(describeOne(machine.instanceId)).rejects.toThrow();
  });
});

describe('GetInstanceTpmEkPub of the fake EC2, read by the real SDK', () => {
  let measured: FakeInstance;
  beforeAll(() => {
    measured = aws.launch({ account, region, nitroTpm: { 'rsa-2048': Buffer.from('the key') } });
  });
  const may = aws.createUser(account, 'keys', ['ec2:GetInstanceTpmEkPub']);
  const ask = () => ({ InstanceId: measured.instanceId, KeyType: 'rsa-2048', KeyFormat: 'der' }) as const;
  const keyOf = (input: GetInstanceTpmEkPubCommandInput, who = may) =>
    client(who).send(new GetInstanceTpmEkPubCommand(input));

  test('names the key of an instance that has one, and DescribeInstances says which have', async () => {
    expect(await keyOf(ask())).toMatchObject({ ...ask(), KeyValue: Buffer.from('the key').toString('base64') });
    expect(ec2.calls.at(-1)).toMatchObject({ action: 'GetInstanceTpmEkPub', parameters: ask() });
    expect(await describeOne(measured.instanceId)).toMatchObject({ TpmSupport: 'v2.0' });
    expect(await describeOne(machine.instanceId)).not.toHaveProperty('TpmSupport');
  });

  test.each<[string, object, string]>([
    ['of no instance', { InstanceId: 'i-00000000000000000' }, 'InvalidInstanceID.NotFound'],
    ['of an instance without a TPM', { InstanceId: machine.instanceId }, 'UnsupportedOperation'],
    ['of a kind that it has not', { KeyType: 'ecc-sec-p384' }, 'UnsupportedOperation'],
    ['of a kind that none has', { KeyType: 'p-256' }, 'InvalidParameterValue'],
    ['without a kind', { KeyType: undefined }, 'MissingParameter'],
    ['in a form that is not asked for here', { KeyFormat: 'tpmt' }, 'InvalidParameterValue'],
    ['with a parameter it does not know', { DryRun: true }, 'UnknownParameter'],
  ])('names no key %s', async (_, change, name) => {
    await expect(keyOf({ ...ask(), ...change })).rejects.toMatchObject({ name });
  });

  test('is refused without its own right, and to an unknown signature', async () => {
    await expect(keyOf(ask(), reader)).rejects.toMatchObject({ name: 'UnauthorizedOperation' });
    await expect(keyOf(ask(), { ...may, secretAccessKey: 'x' })).rejects.toMatchObject({ name: 'AuthFailure' });
  });
});
