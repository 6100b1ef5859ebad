/** The list of terminated instances, over the product's adapter and the fake EC2. */
import { EC2Client } from '@aws-sdk/client-ec2';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { ec2Endpoint, ec2Fleet } from '../../../../../adapters/aws/ec2.ts';
import { awsProvider } from '../../../../../core/attestation/aws/provider.ts';
import type { AwsAttestation } from '../../../../../core/configuration/providers/aws.ts';
import type { InstancePlace } from '../../../../../core/attestation/aws/endpoints.ts';
import * as world from '../../../../corpus/attestation/aws-machine.ts';
import { startFakeEc2, type FakeEc2 } from '../../../../harness/fake-aws/ec2.ts';
import { createFakeAws } from '../../../../harness/fake-aws/world.ts';

const [home, other, foreign] = ['111122223333', '222233334444', '999988887777'];
const regions = ['eu-central-1', 'us-east-1'];
const policy: AwsAttestation = {
  ...world.policy,
  accounts: new Map([
    [home, {}],
    [other, { assumeRole: `arn:aws:iam::${other}:role/describe` }],
  ]),
  regions,
  // A terminated instance has no VPC any more, so these must not be part of the question.
  vpcs: ['vpc-1'],
  subnets: ['subnet-1'],
};

const aws = createFakeAws();
const readers = new Map(
  [home, other, foreign].map((account) => [account, aws.createUser(account, 'attest', ['ec2:DescribeInstances'])]),
);
let ec2: FakeEc2;
beforeAll(async () => {
  ec2 = await startFakeEc2({ aws });
});
afterEach(() => ec2.mend());
afterAll(() => ec2.close());

/** `answers`: the account whose credentials the role of that account has. */
function provider(answers: Readonly<Record<string, string>> = {}) {
  const connect = ({ region, assumeRole }: Pick<InstancePlace, 'region' | 'assumeRole'>) => {
    const account = assumeRole?.split(':')[4] ?? home;
    const credentials = readers.get(answers[account] ?? account);
    if (credentials === undefined) throw new Error('no such account');
    return new EC2Client({ region, endpoint: ec2.url, credentials, maxAttempts: 1 });
  };
  return awsProvider(policy, {
    sts: () => Promise.reject(new Error('this test allows no call of STS')),
    ec2: ec2Endpoint(connect),
    // EC2 takes pages of five instances and more.
    fleet: ec2Fleet(connect, 5),
    regionCertificates: new Map(),
  });
}

async function gone(of = provider()): Promise<{ readonly found: readonly string[]; readonly error?: unknown }> {
  const found: string[] = [];
  try {
    for await (const identity of of.goneMachines?.() ?? []) found.push(identity);
    return { found };
  } catch (error) {
    return { found, error };
  }
}

function ended(account: string, region: string): string {
  const { instanceId } = aws.launch({ account, region });
  aws.terminate(instanceId);
  return `aws#aws/${account}/${region}/${instanceId}`;
}

test('has the terminated instances of each account and region, page by page, and no other', async () => {
  for (const region of regions) {
    aws.launch({ account: home, region });
    aws.stop(aws.launch({ account: home, region }).instanceId);
    ended(foreign, region);
  }
  ended(home, 'eu-west-1');
  const expected = [home, other].flatMap((account) =>
    regions.flatMap((region) => Array.from({ length: 7 }, () => ended(account, region))),
  );
  expect((await gone()).found.toSorted()).toEqual(expected.toSorted());
  // Two pages in each of four places.
  expect(ec2.calls).toHaveLength(8);
  const filters = ec2.calls.map(({ parameters }) => parameters['Filter.1.Name']);
  expect(new Set(filters)).toEqual(new Set(['instance-state-name']));
  expect(ec2.calls.every(({ parameters }) => parameters['Filter.2.Name'] === undefined)).toBe(true);
});

test('does not believe the account of a role that belongs to another account', async () => {
  const mine = ended(home, 'eu-central-1');
  const { found } = await gone(provider({ [other]: foreign }));
  expect(found).toContain(mine);
  expect(found.filter((identity) => !identity.startsWith(`aws#aws/${home}/`))).toEqual([]);
});

test('goes on with the other places if one cannot be asked, and throws at the end', async () => {
  const theirs = ended(other, 'us-east-1');
  const failure = [503, 'RequestLimitExceeded', 'slow down'] as const;
  ec2.fail(...failure, 1);
  const once = await gone();
  expect(once.found).toContain(theirs);
  expect(once.error).toMatchObject({ name: 'ThrottledError' });
  ec2.fail(...failure);
  const always = await gone();
  expect(always.found).toEqual([]);
  expect(always.error).toMatchObject({ name: 'AggregateError', message: 'EC2 cannot be asked in 4 places' });
});

test('is not there without the connection that lists instances', () => {
  const unlisted = awsProvider(policy, {
    sts: () => Promise.reject(new Error('this test allows no call of STS')),
    ec2: { describeInstance: () => Promise.resolve('notFound') },
    regionCertificates: new Map(),
  });
  expect(unlisted).not.toHaveProperty('goneMachines');
});
