/** Every case of test/corpus/attestation/aws-nitrotpm, and what the provider says about a machine. */
import { describe, expect, test } from 'vitest';
import { awsNitroTpmProvider } from '../../../../../core/attestation/aws-nitrotpm/provider.ts';
import * as ec2 from '../../../../corpus/attestation/aws-machine.ts';
import { casesBySubject } from '../../../../corpus/attestation/aws-nitrotpm/cases.ts';
import { dataOf, isAsExpected, judge } from '../../../../corpus/attestation/aws-nitrotpm/judge.ts';
import * as tpm from '../../../../corpus/attestation/tpm/machine.ts';
import { nameOf } from '../../../../harness/tpm/model-tpm.ts';

const where = JSON.stringify({ account: ec2.account, region: ec2.region, ...ec2.policy.accounts.get(ec2.account) });
const toSts = `STS sts.${ec2.region}.amazonaws.com`;
const toEc2 = `DescribeInstances ${where} ${ec2.instanceId}`;
const forKey = `GetInstanceTpmEkPub ${where} ${ec2.instanceId} rsa-2048`;

describe.each(Object.entries(casesBySubject))('%s', (_, cases) => {
  test.for(cases.map((one) => [one.name, one] as const))('%s', async ([, one]) => {
    const judged = await judge(awsNitroTpmProvider, one);
    expect(isAsExpected(one, judged) ? one.expect : judged.outcome).toEqual(one.expect);
  });
});

test('AWS is asked only after every check that needs no network, and for the key of the instance that STS confirmed', async () => {
  const askedOf = async (name: string) => {
    const one = Object.values(casesBySubject)
      .flat()
      .find((each) => each.name === name);
    return (await judge(awsNitroTpmProvider, one ?? { name })).asked;
  };
  expect(await askedOf('a quote for another request')).toEqual([]);
  expect(await askedOf('an account that may not join')).toEqual([]);
  expect(await askedOf('credentials of another instance')).toEqual([toSts]);
  expect(await askedOf('an instance without NitroTPM')).toEqual([toSts, toEc2]);
  expect(await askedOf('a quote')).toEqual([toSts, toEc2, forKey]);
  expect(await askedOf('a quote and an answer')).toEqual([toSts, toEc2, forKey, 'mac']);
});

test('a machine is the instance of EC2, with its TPM', async () => {
  const { machine, machines, once } = await judge(awsNitroTpmProvider, {
    name: '',
    policy: { machines: 'listed' },
    data: casesBySubject['evidence']![1]!.data!,
  });
  expect(machine).toEqual({
    identity: `aws#aws/${ec2.account}/${ec2.region}/${ec2.instanceId}`,
    providerId: `aws:///eu-central-1a/${ec2.instanceId}`,
    nodeNames: ['ip-10-0-0-5.eu-central-1.compute.internal'],
    addresses: ['10.0.0.5', '198.51.100.7', '2001:db8::5'],
    dnsNames: ['ip-10-0-0-5.eu-central-1.compute.internal', 'ec2-198-51-100-7.eu-central-1.compute.amazonaws.com'],
    startedAt: ec2.instance.launchTime,
    device: {
      endorsementKey: tpm.ek.spki,
      state: { akName: nameOf(tpm.ak.area).toString('hex'), resetCount: 3, clock: 5000 },
      activated: true,
      challenge: expect.any(Function) as unknown,
    },
  });
  expect(machines).toEqual([`aws#${ec2.instanceId}`]);
  // Both proofs are spent: the signature of the instance, and the challenge.
  expect(once).toMatchObject([{ kind: 'sts' }, { kind: 'challenge' }]);
});

test('an instance that was seen moments ago is not described again; STS, EC2’s key and the TPM still prove the request', async () => {
  const { machine } = await judge(awsNitroTpmProvider, { name: '' });
  const { device, ...seen } = machine!;
  const confirmed = await judge(awsNitroTpmProvider, { name: '', seen });
  expect(confirmed.asked).toEqual([toSts, forKey]);
  expect(confirmed.machine).toEqual({ ...seen, device: { ...device, challenge: expect.any(Function) as unknown } });
  const refusals = {
    'credentials of another instance': [toSts],
    'an endorsement key of EC2 of another type': [toSts, forKey],
    'an answer of another TPM': [toSts, forKey, 'mac'],
  };
  for (const [name, asked] of Object.entries(refusals)) {
    const one = Object.values(casesBySubject)
      .flat()
      .find((each) => each.name === name);
    if (one === undefined) throw new Error(`no case ${name}`);
    const judged = await judge(awsNitroTpmProvider, { ...one, seen });
    expect([isAsExpected(one, judged), judged.asked]).toEqual([true, asked]);
  }
});

test('what is known of a machine without evidence is what EC2 says', async () => {
  const { identity } = (await judge(awsNitroTpmProvider, { name: '' })).machine!;
  const ports = { ec2: { describeInstance: () => Promise.resolve('notFound' as const) } } as never;
  expect(await awsNitroTpmProvider(ec2.policy, '', ports).describe(identity, 0)).toEqual({ kind: 'unknown' });
});

test('the evidence is small enough for the block', () => {
  expect(dataOf({ data: casesBySubject['evidence']![1]!.data! }).length).toBeLessThan(8_192);
});
