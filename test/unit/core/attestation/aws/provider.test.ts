import { fc } from '../../../../harness/determinism/properties.ts';
import { describe, expect, test } from 'vitest';
import { awsProvider } from '../../../../../core/attestation/aws/provider.ts';
import type { AwsPorts } from '../../../../../core/attestation/aws/endpoints.ts';
import type { InstanceDescription } from '../../../../../core/attestation/aws/instance.ts';
import * as world from '../../../../corpus/attestation/aws-machine.ts';
import { dataOf, judge } from '../../../../corpus/attestation/judge.ts';

const identity = `aws#aws/${world.account}/${world.region}/${world.instanceId}`;

function provider(ec2: AwsPorts['ec2']['describeInstance'], policy = world.policy) {
  return awsProvider(policy, {
    regionCertificates: world.regionCertificates,
    sts: () => Promise.reject(new Error('this test allows no call of STS')),
    ec2: { describeInstance: ec2 },
  });
}

const evidence = (data: Uint8Array) => ({
  version: 'aws/v2',
  data,
  request: undefined as never,
  nodeName: 'n',
  clusterName: world.clusterName,
  binding: world.binding,
  now: world.now,
});

describe('the aws provider', () => {
  test('says which machine speaks, what may be used once, and for how long that must be remembered', async () => {
    const examined = await provider(() => Promise.resolve('notFound')).examine(evidence(dataOf({})));
    expect(examined).toMatchObject({
      ok: true,
      value: {
        identity,
        machines: [],
        // 20 s old, and STS would take it for 15 minutes.
        once: [
          {
            kind: 'sts',
            id: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
            expiresAt: world.now - 20_000 + 900_000,
          },
        ],
      },
    });
  });

  test('one proof is one once-key, in whatever token it comes', async () => {
    const aws = provider(() => Promise.resolve('notFound'));
    const onceOf = async (data: Uint8Array) => {
      const examined = await aws.examine(evidence(data));
      return examined.ok ? examined.value.once[0]?.id : undefined;
    };
    const reordered = dataOf({ url: (url) => url.replace(/\?(Action=[^&]*)&(.*)$/, '?$2&$1') });
    expect(await onceOf(reordered)).toBeDefined();
    expect(await onceOf(reordered)).toBe(await onceOf(dataOf({})));
  });

  test('wants the instance on the list of machines where there is one', async () => {
    const listed = provider(() => Promise.resolve('notFound'), { ...world.policy, machines: 'listed' });
    expect(await listed.examine(evidence(dataOf({})))).toMatchObject({
      ok: true,
      value: { machines: [`aws#${world.instanceId}`] },
    });
  });

  test('tells what the machine is and what belongs to it', async () => {
    const { machine } = await judge(awsProvider, { name: '', expect: 'accepted' });
    expect(machine).toEqual({
      identity,
      providerId: `aws:///eu-central-1a/${world.instanceId}`,
      nodeNames: ['ip-10-0-0-5.eu-central-1.compute.internal'],
      addresses: ['10.0.0.5', '198.51.100.7', '2001:db8::5'],
      dnsNames: ['ip-10-0-0-5.eu-central-1.compute.internal', 'ec2-198-51-100-7.eu-central-1.compute.amazonaws.com'],
      startedAt: Date.parse('2026-08-30T12:00:00Z'),
    });
  });

  test('says everything that is wrong with an instance at once', async () => {
    const { outcome } = await judge(awsProvider, {
      name: '',
      expect: 'accepted',
      instance: { vpcId: 'vpc-2', tags: new Map(), httpTokens: 'optional', httpPutResponseHopLimit: 3 },
    });
    expect(outcome.split('; ')).toHaveLength(4);
  });

  test('assumes the role configured for the account, and none when none is', async () => {
    const asked: unknown[] = [];
    const describeInstance: AwsPorts['ec2']['describeInstance'] = (where) => {
      asked.push(where);
      return Promise.resolve('notFound');
    };
    await provider(describeInstance).describe(identity, world.now);
    await provider(describeInstance, { ...world.policy, accounts: new Map([[world.account, {}]]) }).describe(
      identity,
      world.now,
    );
    const { account, region } = world;
    expect(asked).toEqual([
      { account, region, assumeRole: `arn:aws:iam::${account}:role/describe` },
      { account, region },
    ]);
  });

  test('what STS and EC2 throw passes through: it is no answer', async () => {
    const answered = await judge(awsProvider, {
      name: '',
      expect: 'accepted',
      answer: () => {
        throw new Error('503');
      },
    });
    expect(answered.outcome).toBe('temporary: 503');
    await expect(
      provider(() => Promise.reject(new Error('AccessDenied'))).describe(identity, world.now),
    ).rejects.toThrow('AccessDenied');
  });

  test.each(['aws/v1', 'aws/v2'] as const)('answers whatever it is sent as %s, and never throws', async (version) => {
    const aws = provider(() => Promise.reject(new Error('asked')));
    const good = dataOf({ version });
    const fields = JSON.parse(good.toString()) as Readonly<Record<string, unknown>>;
    const text = fc.oneof(fc.string(), fc.constantFrom(...Object.values(fields), 'k8s-aws-v1.', ''));
    const value = fc.oneof(text, fc.jsonValue());
    const others = Object.fromEntries(Object.keys(fields).map((name) => [name, value]));
    const anything = fc.oneof(
      fc.uint8Array({ maxLength: 200 }),
      fc
        .record({ ...others, v: fc.constantFrom(1, 2, '1', '2'), nonce: value })
        .map((data) => Buffer.from(JSON.stringify(data))),
      fc.tuple(fc.nat(good.length - 1), fc.nat(255)).map(([at, byte]) => {
        const damaged = Buffer.from(good);
        damaged[at] = byte;
        return damaged;
      }),
    );
    let refused = 0;
    await fc.assert(
      fc.asyncProperty(anything, async (data) => {
        if (!(await aws.examine({ ...evidence(data), version })).ok) refused += 1;
      }),
      { numRuns: 2_000, seed: 20_260_830 },
    );
    expect(refused).toBeGreaterThan(1_000);
  });

  test('takes no region certificate that cannot be one', () => {
    const ports = {
      sts: () => Promise.reject(new Error('')),
      ec2: { describeInstance: () => Promise.reject(new Error('')) },
    };
    const withCertificate = (der: Uint8Array) => () =>
      awsProvider(world.policy, { ...ports, regionCertificates: new Map([['eu-central-1', [der]]]) });
    expect(withCertificate(Buffer.from('MIIC'))).toThrow();
  });
});

describe('what is known of a machine today', () => {
  const states: readonly (readonly [InstanceDescription['state'], string])[] = [
    ['running', 'running'],
    ['stopping', 'stopped'],
    ['stopped', 'stopped'],
    ['shutting-down', 'stopped'],
    ['terminated', 'gone'],
  ];
  test.for(states)('an instance that is %s is %s', async ([state, kind]) => {
    const described = provider(() => Promise.resolve({ ...world.instance, state })).describe(identity, world.now);
    expect(await described).toMatchObject({ kind });
  });

  test('an instance that is being started cannot be told about yet', async () => {
    const pending = { ...world.instance, state: 'pending' as const };
    await expect(provider(() => Promise.resolve(pending)).describe(identity, world.now)).rejects.toThrow(
      'is being started',
    );
  });

  test('EC2 does not know it', async () => {
    expect(await provider(() => Promise.resolve('notFound')).describe(identity, world.now)).toEqual({
      kind: 'unknown',
    });
  });

  test('what would keep a running instance out today', async () => {
    const described = provider(() =>
      Promise.resolve({ ...world.instance, httpTokens: 'optional', ownerId: world.otherAccount }),
    );
    expect(await described.describe(identity, world.now)).toMatchObject({
      kind: 'running',
      machine: { identity, providerId: `aws:///eu-central-1a/${world.instanceId}` },
      violations: [{ code: 'AttestationInvalid' }, { code: 'IdentityNotAllowed' }],
    });
  });

  test.for([
    ['an account that is configured no more', identity.replace(world.account, world.otherAccount)],
    ['a region that is configured no more', identity.replace(world.region, 'us-east-1')],
    ['what is no identity of an instance', 'aws#i-0123456789abcdef0'],
    ['another provider', 'insecure#n1'],
  ])('EC2 is not asked about %s, and its name stays taken', async ([, other]) => {
    const described = provider(() => Promise.reject(new Error('asked'))).describe(other!, world.now);
    expect(await described).toEqual({ kind: 'stopped' });
  });
});
