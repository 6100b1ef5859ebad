/** What EC2 says of an instance, by the real SDK from a strict EC2 and STS: mapped right, and never mistaken for an answer. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { connectEc2, connectSharedEc2, ec2Endpoint, endorsementKeyEndpoint } from '../../../../adapters/aws/ec2.ts';
import type { InstanceDescription } from '../../../../core/attestation/aws/instance.ts';
import { MisconfigurationError, ThrottledError } from '../../../../core/ports/errors.ts';
import { startFakeEc2 } from '../../../harness/fake-aws/ec2.ts';
import type { FakeEc2 } from '../../../harness/fake-aws/ec2.ts';
import { networkInterface } from '../../../harness/fake-aws/machine/instance.ts';
import type { FakeInstance, InstanceSpec } from '../../../harness/fake-aws/machine/instance.ts';
import { startFakeSts } from '../../../harness/fake-aws/sts.ts';
import type { FakeSts } from '../../../harness/fake-aws/sts.ts';
import { createFakeAws } from '../../../harness/fake-aws/world.ts';
import type { Credential } from '../../../harness/fake-aws/world.ts';

const [account, region] = ['111122223333', 'eu-central-1'];
const otherAccount = '444455556666';
const aws = createFakeAws();
const launched = Math.floor(aws.now() / 1_000) * 1_000;
const reader = aws.createUser(account, 'attest', ['ec2:DescribeInstances', 'ec2:GetInstanceTpmEkPub']);
const readerArn = `arn:aws:iam::${account}:user/attest`;

let [ec2, sts] = [{} as FakeEc2, {} as FakeSts];
beforeAll(async () => {
  [ec2, sts] = await Promise.all([startFakeEc2({ aws }), startFakeSts({ aws })]);
});
beforeEach(() => actAs(reader));
afterEach(() => {
  vi.unstubAllEnvs();
  ec2.mend();
  sts.mend();
});
afterAll(() => Promise.all([ec2.close(), sts.close()]));

/** As Lambda gives credentials to a function, and the SDK its endpoints. */
function actAs({ accessKeyId, secretAccessKey }: Credential): void {
  vi.stubEnv('AWS_ACCESS_KEY_ID', accessKeyId);
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', secretAccessKey);
  vi.stubEnv('AWS_SESSION_TOKEN', undefined);
  vi.stubEnv('AWS_PROFILE', undefined);
  vi.stubEnv('AWS_ENDPOINT_URL', undefined);
  vi.stubEnv('AWS_ENDPOINT_URL_EC2', ec2.url);
  vi.stubEnv('AWS_ENDPOINT_URL_STS', sts.url);
}

const here = { account, region };

async function describeOne(instanceId: string, endpoint = ec2Endpoint()): Promise<InstanceDescription> {
  const found = await endpoint.describeInstance(here, instanceId);
  if (found === 'notFound') throw new Error('not found');
  return found;
}

/** Launched, and described. */
async function described(spec: InstanceSpec = {}): Promise<InstanceDescription & { readonly launched: FakeInstance }> {
  const instance = aws.launch({ ...here, ...spec });
  return { ...(await describeOne(instance.instanceId)), launched: instance };
}

/** Why there was no description. */
async function failure(asked: Promise<unknown>): Promise<unknown> {
  return asked.then(
    (answer) => ({ answer }),
    (error: unknown) => error,
  );
}

describe('what EC2 tells', () => {
  test('all that rules can ask about', async () => {
    const { launched: instance, ...found } = await described({
      roleName: 'node',
      tags: { 'kubernetes.io/cluster/prod': 'owned', empty: '', Name: `<"n1">` },
      privateIp: '10.0.0.7',
      publicIp: '203.0.113.7',
      metadataOptions: {
        httpTokens: 'optional',
        httpPutResponseHopLimit: 2,
        httpEndpoint: 'enabled',
        instanceMetadataTags: 'disabled',
      },
    });
    const addresses = ['10.0.0.7', '203.0.113.7'];
    const dnsNames = [
      'ip-10-0-0-7.eu-central-1.compute.internal',
      'ec2-203-0-113-7.eu-central-1.compute.amazonaws.com',
    ];
    const own = { primaryAddresses: addresses, primaryDnsNames: dnsNames, addresses, dnsNames };
    expect(found).toEqual({
      instanceId: instance.instanceId,
      ownerId: account,
      state: 'running',
      availabilityZone: 'eu-central-1a',
      launchTime: instance.launchTime,
      vpcId: instance.vpcId,
      subnetId: instance.subnetId,
      tags: new Map([
        ['kubernetes.io/cluster/prod', 'owned'],
        ['empty', ''],
        ['Name', `<"n1">`],
      ]),
      instanceProfile: `arn:aws:iam::${account}:instance-profile/node`,
      httpTokens: 'optional',
      httpPutResponseHopLimit: 2,
      privateDnsName: 'ip-10-0-0-7.eu-central-1.compute.internal',
      publicDnsName: 'ec2-203-0-113-7.eu-central-1.compute.amazonaws.com',
      rootDeviceType: 'ebs',
      rootAttachedAt: instance.launchTime + 1_000,
      interfaceAttachedAt: instance.launchTime,
      ...own,
    });
  });

  test('addresses and names of every interface, secondary, public and IPv6 ones too, each once', async () => {
    const { addresses, dnsNames } = await described({
      interfaces: [
        networkInterface(region, 0, '10.0.0.7', launched, {
          publicIp: '203.0.113.7',
          secondary: ['10.0.0.8', '10.0.0.9'],
          ipv6: ['2001:db8::7', '2001:db8::8'],
        }),
        networkInterface(region, 1, '10.0.1.7', launched, { publicIp: '203.0.113.8', ipv6: ['2001:db8:1::7'] }),
        networkInterface(region, 2, '10.0.2.7', launched),
      ],
    });
    expect(addresses.toSorted()).toEqual([
      '10.0.0.7',
      '10.0.0.8',
      '10.0.0.9',
      '10.0.1.7',
      '10.0.2.7',
      '2001:db8:1::7',
      '2001:db8::7',
      '2001:db8::8',
      '203.0.113.7',
      '203.0.113.8',
    ]);
    const names = ['10-0-0-7', '10-0-0-8', '10-0-0-9', '10-0-1-7', '10-0-2-7'];
    expect(dnsNames.toSorted()).toEqual(
      [
        ...names.map((name) => `ip-${name}.eu-central-1.compute.internal`),
        ...['203-0-113-7', '203-0-113-8'].map((name) => `ec2-${name}.eu-central-1.compute.amazonaws.com`),
      ].toSorted(),
    );
  });

  test('finding 12: primary are those of the first interface that EC2 fixed at its launch, and its public address', async () => {
    const { primaryAddresses, primaryDnsNames } = await described({
      interfaces: [
        networkInterface(region, 1, '10.0.1.7', launched, { publicIp: '203.0.113.8', ipv6: ['2001:db8:1::7'] }),
        networkInterface(region, 0, '10.0.0.7', launched, {
          publicIp: '203.0.113.7',
          secondary: ['10.0.0.8', '10.0.0.9'],
          ipv6: ['2001:db8::7'],
        }),
      ],
    });
    expect(primaryAddresses).toEqual(['10.0.0.7', '203.0.113.7', '2001:db8::7']);
    expect(primaryDnsNames).toEqual([
      'ip-10-0-0-7.eu-central-1.compute.internal',
      'ec2-203-0-113-7.eu-central-1.compute.amazonaws.com',
    ]);
  });

  test.each([
    ['of several IPv6 addresses the one that EC2 calls primary', 1, ['10.0.0.7', '2001:db8::2']],
    ['of several without a primary one none', undefined, ['10.0.0.7']],
  ])('finding 12: %s', async (_, primary, expected) => {
    const v6 = [1, 2, 3].map(
      (number, index) =>
        `<item><ipv6Address>2001:db8::${number}</ipv6Address><isPrimaryIpv6>${index === primary}</isPrimaryIpv6></item>`,
    );
    const first = `<item><privateIpAddress>10.0.0.7</privateIpAddress><attachment><deviceIndex>0</deviceIndex></attachment>
      <ipv6AddressesSet>${v6.join('')}</ipv6AddressesSet></item>`;
    ec2.inject({ answer: xml(reservation(item('running', `<networkInterfaceSet>${first}</networkInterfaceSet>`))) });
    expect((await describeOne('i-0123456789abcdef0')).primaryAddresses).toEqual(expected);
  });

  test('an elastic address of a secondary private one', async () => {
    const first = networkInterface(region, 0, '10.0.0.7', launched, { secondary: ['10.0.0.8'] });
    const more = { address: '203.0.113.9', dnsName: 'ec2-203-0-113-9.eu-central-1.compute.amazonaws.com' };
    const [primary, secondary] = first.addresses;
    const { addresses, dnsNames } = await described({
      interfaces: [{ ...first, addresses: [primary!, { ...secondary!, public: more }] }],
    });
    expect(addresses).toEqual(['10.0.0.7', '10.0.0.8', '203.0.113.9']);
    expect(dnsNames).toContain(more.dnsName);
  });

  test('when the first interface and the root volume were attached, whatever else is', async () => {
    const found = await described({
      interfaces: [
        networkInterface(region, 1, '10.0.1.7', launched + 50_000),
        networkInterface(region, 0, '10.0.0.7', launched + 7_000),
      ],
      rootDeviceName: '/dev/sda1',
      volumes: [
        { deviceName: '/dev/sdb', volumeId: 'vol-2', attachTime: launched + 60_000 },
        { deviceName: '/dev/sda1', volumeId: 'vol-1', attachTime: launched + 9_000 },
      ],
    });
    expect([found.interfaceAttachedAt, found.rootAttachedAt]).toEqual([launched + 7_000, launched + 9_000]);
    const swapped = found.launched.instanceId;
    aws.change(swapped, {
      volumes: [{ deviceName: '/dev/sda1', volumeId: 'vol-3', attachTime: launched + 3_600_000 }],
    });
    expect((await describeOne(swapped)).rootAttachedAt).toBe(launched + 3_600_000);
  });

  test('what is not there is left out, not empty and not 0', async () => {
    const bare = await described({ interfaces: [], volumes: [], rootDeviceType: 'instance-store' });
    expect(bare).toMatchObject({
      primaryAddresses: [],
      primaryDnsNames: [],
      addresses: [],
      dnsNames: [],
      rootDeviceType: 'instance-store',
      tags: new Map(),
    });
    for (const key of ['instanceProfile', 'privateDnsName', 'publicDnsName', 'rootAttachedAt', 'interfaceAttachedAt'])
      expect(bare).not.toHaveProperty(key);
  });

  test('a wavelength zone’s carrier address, and which of two cards is the first', async () => {
    const one = (card: number, address: string, attached: number): string =>
      `<item><privateIpAddress>${address}</privateIpAddress>
        <attachment><deviceIndex>0</deviceIndex><networkCardIndex>${card}</networkCardIndex>
        <attachTime>${new Date(attached).toISOString()}</attachTime></attachment>
        <association><carrierIp>155.146.0.${card}</carrierIp></association></item>`;
    const interfaces = one(1, '10.0.1.7', launched + 50_000) + one(0, '10.0.0.7', launched);
    ec2.inject({
      answer: xml(reservation(item('running', `<networkInterfaceSet>${interfaces}</networkInterfaceSet>`))),
    });
    const found = await describeOne('i-0123456789abcdef0');
    expect(found.addresses).toEqual(['10.0.1.7', '155.146.0.1', '10.0.0.7', '155.146.0.0']);
    expect(found.primaryAddresses).toEqual(['10.0.0.7', '155.146.0.0']);
    expect(found.interfaceAttachedAt).toBe(launched);
  });

  test.each(['pending', 'running', 'shutting-down', 'terminated', 'stopping', 'stopped'] as const)(
    'the state %s',
    async (state) => {
      expect(await described({ state })).toMatchObject({ state });
    },
  );

  test('a terminated instance, as bare as EC2 shows it', async () => {
    const { instanceId } = aws.launch(here);
    aws.terminate(instanceId);
    const found = await describeOne(instanceId);
    expect(found).toMatchObject({ state: 'terminated', ownerId: account, addresses: [] });
    expect(found).not.toHaveProperty('vpcId');
  });
});

describe('what is not there', () => {
  test.each(['i-00000000000000000', 'i-xyz'])('%s is not found', async (instanceId) => {
    expect(await ec2Endpoint().describeInstance(here, instanceId)).toBe('notFound');
  });

  test('an instance of another account or region is not found with our own rights', async () => {
    const foreign = aws.launch({ account: otherAccount, region });
    const away = aws.launch({ account, region: 'us-east-1' });
    const endpoint = ec2Endpoint();
    expect(await endpoint.describeInstance(here, foreign.instanceId)).toBe('notFound');
    expect(await endpoint.describeInstance(here, away.instanceId)).toBe('notFound');
    expect(await endpoint.describeInstance({ account, region: 'us-east-1' }, away.instanceId)).toMatchObject({
      availabilityZone: 'us-east-1a',
    });
  });

  test('a new instance is not found for a while: EC2 is eventually consistent, and what that means is not for us', async () => {
    const { instanceId } = aws.launch(here);
    const endpoint = ec2Endpoint();
    ec2.hide(instanceId, 2);
    const asked = [1, 2, 3].map(() => () => endpoint.describeInstance(here, instanceId));
    const answers: unknown[] = [];
    for (const ask of asked) answers.push(await ask());
    expect(answers).toEqual(['notFound', 'notFound', expect.objectContaining({ instanceId })]);
  });
});

describe('what is no answer', () => {
  const { instanceId } = aws.launch(here);
  const ask = () => failure(ec2Endpoint().describeInstance(here, instanceId));

  test.each(['RequestLimitExceeded', 'EC2ThrottledException'])(
    'being asked too often (%s), after a second try',
    async (code) => {
      const before = ec2.received.length;
      ec2.fail(503, code, 'slow down');
      expect(await ask()).toBeInstanceOf(ThrottledError);
      expect(ec2.received.length - before).toBe(2);
    },
  );

  test('a moment of it is overcome', async () => {
    ec2.fail(503, 'RequestLimitExceeded', 'slow down', 1);
    expect(await describeOne(instanceId)).toMatchObject({ instanceId });
  });

  describe('among many who share the quota', () => {
    const askShared = () => failure(ec2Endpoint(connectSharedEc2).describeInstance(here, instanceId));

    test.each(['RequestLimitExceeded', 'EC2ThrottledException'])(
      'being asked too often (%s), at once',
      async (code) => {
        const before = ec2.received.length;
        ec2.fail(503, code, 'slow down');
        expect(await askShared()).toBeInstanceOf(ThrottledError);
        expect(ec2.received.length - before).toBe(1);
      },
    );

    test.each([
      ['an error of EC2', () => ec2.fail(500, 'InternalError', 'x', 1)],
      ['a connection that ends', () => ec2.inject({ times: 1 })],
    ])('a moment of %s is overcome', async (_, happen) => {
      happen();
      expect(await askShared()).toMatchObject({ answer: { instanceId } });
    });

    test('what lasts is no answer, after a second try', async () => {
      const before = ec2.received.length;
      ec2.fail(500, 'InternalError', 'x');
      expect(await askShared()).toMatchObject({ message: 'EC2 cannot be asked now (InternalError)' });
      expect(ec2.received.length - before).toBe(2);
    });
  });

  test('it is asked for one instance, by id and by filter', async () => {
    await describeOne(instanceId);
    expect(ec2.calls.at(-1)?.parameters).toEqual({
      'InstanceId.1': instanceId,
      'Filter.1.Name': 'instance-id',
      'Filter.1.Value.1': instanceId,
    });
  });

  test.each([
    ['no right to ask', aws.createUser(account, 'without-rights'), 'UnauthorizedOperation'],
    ['an unknown secret key', { ...reader, secretAccessKey: 'x' }, 'AuthFailure'],
  ])('%s is a misconfiguration, told without EC2’s own words', async (_, who, code) => {
    actAs(who);
    const error = await ask();
    expect(error).toBeInstanceOf(MisconfigurationError);
    expect((error as Error).message).toBe(`EC2 cannot be asked (${code}): see attestation.aws.accounts`);
    expect((error as Error).cause).toBeUndefined();
  });

  test('a region that the account has not enabled', async () => {
    ec2.fail(401, 'OptInRequired', 'x');
    expect(await ask()).toBeInstanceOf(MisconfigurationError);
  });

  test('credentials that ended are replaced by Lambda, and no misconfiguration', async () => {
    ec2.fail(400, 'RequestExpired', 'x');
    const error = await ask();
    expect(error).toMatchObject({ message: 'EC2 cannot be asked now (RequestExpired)' });
    expect(error).not.toBeInstanceOf(MisconfigurationError);
  });

  test.each([
    ['an error of EC2', () => ec2.fail(500, 'InternalError', 'x')],
    ['a connection that ends', () => ec2.inject({})],
    ['an answer that ends', () => ec2.inject({ truncateAt: 60 })],
    ['a web page', () => ec2.inject({ answer: { status: 200, contentType: 'text/html', body: '<p>hi' } })],
    ['an empty answer', () => ec2.inject({ answer: { status: 200, contentType: 'text/xml', body: '' } })],
    ['an answer about nothing', () => ec2.inject({ answer: xml('<reservationSet/>') })],
    ['an answer about two', () => ec2.inject({ answer: xml(reservation(item('running'), item('running'))) })],
    ['two answers', () => ec2.inject({ answer: xml(reservation(item('running')), reservation(item('running'))) })],
    ['an unknown state', () => ec2.inject({ answer: xml(reservation(item('hibernating'))) })],
  ])('%s', async (_, happen) => {
    happen();
    const error = await ask();
    expect(error).toBeInstanceOf(Error);
    expect(error).not.toBeInstanceOf(MisconfigurationError);
    expect(error).not.toBeInstanceOf(ThrottledError);
    // Those would be counted as defects of ours.
    expect(['TypeError', 'RangeError', 'SyntaxError', 'ReferenceError']).not.toContain((error as Error).name);
  });
});

describe('the role of another account', () => {
  const arn = `arn:aws:iam::${otherAccount}:role/countersign-reader`;
  const there = { account: otherAccount, region, assumeRole: arn };
  const { instanceId } = aws.launch({ account: otherAccount, region });
  beforeAll(() => aws.createRole({ arn, allows: ['ec2:DescribeInstances'], trusts: [readerArn] }));

  test('is assumed for that account’s instances, by a name that its log shows, for 15 minutes', async () => {
    const before = sts.calls.length;
    expect(await ec2Endpoint().describeInstance(there, instanceId)).toMatchObject({
      instanceId,
      ownerId: otherAccount,
    });
    expect(sts.calls.slice(before)).toMatchObject([
      {
        action: 'AssumeRole',
        signedBy: reader.accessKeyId,
        region,
        parameters: { RoleArn: arn, RoleSessionName: 'countersign-attest', DurationSeconds: '900' },
      },
    ]);
    expect(ec2.calls.at(-1)).toMatchObject({ account: otherAccount });
  });

  test('is assumed once for many questions, and not for those about our own', async () => {
    const own = aws.launch(here);
    const before = sts.calls.length;
    const endpoint = ec2Endpoint();
    for (let round = 0; round < 3; round += 1) {
      await endpoint.describeInstance(there, instanceId);
      expect(await endpoint.describeInstance(here, own.instanceId)).toMatchObject({ ownerId: account });
    }
    await Promise.all([1, 2, 3].map(() => endpoint.describeInstance(there, instanceId)));
    expect(sts.calls.length - before).toBe(1);
  });

  test('has a client for each region and role, made once', async () => {
    const made: string[] = [];
    const endpoint = ec2Endpoint((where) => {
      made.push(`${where.region} ${where.assumeRole ?? ''}`);
      return connectEc2(where);
    });
    for (const where of [here, there, here, there, { ...here, region: 'us-east-1' }])
      await endpoint.describeInstance(where, 'i-00000000000000000');
    expect(made).toEqual([`${region} `, `${region} ${arn}`, 'us-east-1 ']);
  });

  test.each(['arn:aws:iam::444455556666:role/not-there', 'arn:aws:iam::444455556666:role/not-for-us'])(
    'that we may not assume is a misconfiguration: %s',
    async (role) => {
      aws.createRole({ arn: 'arn:aws:iam::444455556666:role/not-for-us', trusts: ['arn:aws:iam::1:user/x'] });
      const error = await failure(ec2Endpoint().describeInstance({ ...there, assumeRole: role }, instanceId));
      expect(error).toBeInstanceOf(MisconfigurationError);
      expect((error as Error).message).toContain('AccessDenied');
    },
  );

  test('without the right to describe is a misconfiguration', async () => {
    const bare = 'arn:aws:iam::444455556666:role/bare';
    aws.createRole({ arn: bare });
    const error = await failure(ec2Endpoint().describeInstance({ ...there, assumeRole: bare }, instanceId));
    expect(error).toMatchObject({ message: expect.stringContaining('UnauthorizedOperation') as string });
    expect(error).toBeInstanceOf(MisconfigurationError);
  });

  test('while STS fails is no answer, and afterwards there is one by the same client', async () => {
    const endpoint = ec2Endpoint();
    const ask = () => failure(endpoint.describeInstance(there, instanceId));
    sts.fail(503, 'ServiceUnavailable', 'x');
    const down = await ask();
    expect(down).toBeInstanceOf(Error);
    expect(down).not.toBeInstanceOf(MisconfigurationError);
    sts.mend();
    sts.fail(400, 'Throttling', 'Rate exceeded');
    expect(await ask()).toBeInstanceOf(ThrottledError);
    sts.mend();
    expect(await ask()).toMatchObject({ answer: { instanceId } });
  });
});

/** What the fake has no words for. */
function xml(...reservations: readonly string[]) {
  const body = `<DescribeInstancesResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><reservationSet>${reservations.join('')}</reservationSet></DescribeInstancesResponse>`;
  return { status: 200, contentType: 'text/xml', body };
}
function reservation(...items: readonly string[]): string {
  return `<item><ownerId>${account}</ownerId><instancesSet>${items.join('')}</instancesSet></item>`;
}
function item(state: string, more = ''): string {
  return `<item><instanceId>i-0123456789abcdef0</instanceId><instanceState><name>${state}</name></instanceState>${more}</item>`;
}

describe('the endorsement key of an instance', () => {
  const rsa = Buffer.from('DER of the RSA key');
  const p384 = Buffer.from('DER of the P-384 key');
  const spec = { nitroTpm: { 'rsa-2048': rsa, 'ecc-sec-p384': p384 } };
  const { instanceId } = aws.launch({ ...here, ...spec });
  const ask = (keyOf = endorsementKeyEndpoint()) => keyOf(here, instanceId, 'rsa-2048');

  test('is the one of the wanted type, and its instance says that it has a TPM', async () => {
    expect(await ask()).toEqual(rsa);
    expect(await endorsementKeyEndpoint()(here, instanceId, 'ecc-sec-p384')).toEqual(p384);
    expect(await describeOne(instanceId)).toMatchObject({ tpmSupport: 'v2.0' });
    expect(await described()).not.toHaveProperty('tpmSupport');
  });

  test('is read in another account with the role there', async () => {
    const assumeRole = `arn:aws:iam::${otherAccount}:role/countersign-keys`;
    aws.createRole({ arn: assumeRole, allows: ['ec2:GetInstanceTpmEkPub'], trusts: [readerArn] });
    const other = aws.launch({ account: otherAccount, region, ...spec });
    const there = { account: otherAccount, region, assumeRole };
    expect(await endorsementKeyEndpoint()(there, other.instanceId, 'rsa-2048')).toEqual(rsa);
  });

  test('is no answer while EC2 fails, and one when it has recovered', async () => {
    ec2.fail(503, 'RequestLimitExceeded', 'slow down');
    expect(await failure(ask(endorsementKeyEndpoint(connectSharedEc2)))).toBeInstanceOf(ThrottledError);
    ec2.mend();
    for (const happen of [() => ec2.fail(500, 'InternalError', 'x', 1), () => ec2.inject({ times: 1 })]) {
      happen();
      expect(await ask(endorsementKeyEndpoint(connectSharedEc2))).toEqual(rsa);
    }
  });

  test('is not there yet: EC2 is eventually consistent', async () => {
    ec2.hide(instanceId, 1);
    expect(await failure(ask())).toMatchObject({ message: 'EC2 cannot be asked now (InvalidInstanceID.NotFound)' });
  });

  test('without the right to it is a misconfiguration', async () => {
    actAs(aws.createUser(account, 'describes', ['ec2:DescribeInstances']));
    expect(await failure(ask())).toBeInstanceOf(MisconfigurationError);
  });

  test.each([
    ['another instance', { InstanceId: 'i-00000000000000000' }],
    ['another type', { KeyType: 'ecc-sec-p384' }],
    ['another format', { KeyFormat: 'tpmt' }],
  ])('of %s is no answer', async (_, change) => {
    const answer = { InstanceId: instanceId, KeyType: 'rsa-2048', KeyFormat: 'der', KeyValue: 'AA==', ...change };
    const connect = () => ({ send: () => Promise.resolve(answer) }) as never;
    expect(await failure(ask(endorsementKeyEndpoint(connect)))).toMatchObject({
      message: 'EC2 returned another endorsement key than the requested one',
    });
  });
});
