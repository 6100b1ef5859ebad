/** Evidence of good and of wrong machines, questions about instances, and certificates, put to the aws provider. */
import { doesNotMatch, strictEqual } from 'node:assert/strict';
import { awsProvider } from '../../../../core/attestation/aws/provider.ts';
import type { InstanceDescription } from '../../../../core/attestation/aws/instance.ts';
import * as world from '../../../corpus/attestation/aws-machine.ts';
import { casesBySubject } from '../../../corpus/attestation/cases.ts';
import { createRegionKey } from '../../../corpus/attestation/cms-writer.ts';
import { dataOf, judge } from '../../../corpus/attestation/judge.ts';
import type { Case } from '../../../corpus/attestation/judge.ts';
import type { Case as MutantCase } from '../../../harness/mutants/case-runner.ts';

const identity = `aws#aws/${world.account}/${world.region}/${world.instanceId}`;
/** What `describe` is asked, for each state and for what it must not ask EC2 about. */
const described: readonly (readonly [
  name: string,
  identity: string,
  instance: Partial<InstanceDescription> | 'notFound',
])[] = [
  ['running', identity, {}],
  ['running, and somewhere else', identity, { availabilityZone: 'us-east-1a' }],
  ['not known', identity, 'notFound'],
  ['of another account', identity.replace(world.account, world.otherAccount), {}],
  ['of another region', identity.replace(world.region, 'us-east-1'), {}],
  ['not an instance', 'aws#other', {}],
];

const asked = Object.entries(casesBySubject).flatMap(([subject, list]) =>
  list.map((one) => ({ name: `${subject}: ${one.name}`, one, data: dataOf(one) })),
);

/** Certificates that must not be pinned. */
const unfit = [
  ['an RSA key of 1024 bits', createRegionKey({ bits: 1024 }).certificate],
  ['an RSA key for PSS alone', createRegionKey({ kind: 'rsa-pss' }).certificate],
  ['an elliptic curve', createRegionKey({ kind: 'ec' }).certificate],
] as const;

/**
 * Whether each wrong machine is refused comes first, so that a mutant that lets one in is caught by that, and not by other
 * words of a refusal.
 */
export function cases(): readonly MutantCase[] {
  return [
    ...asked
      .filter(({ one }) => one.expect !== 'accepted')
      .map(({ name, one, data }) => ({
        name: `refused: ${name}`,
        run: async () => doesNotMatch(await outcomeOf(one, data), /^accepted/),
      })),
    ...unfit.map(([name, der]) => ({
      name: `refused: certificate: ${name}`,
      run: () => strictEqual(pin(der), 'refused'),
    })),
    ...asked.map(({ name, one, data }) => ({ name, run: () => outcomeOf(one, data) })),
    ...described.map(([name, of, instance]) => ({ name: `describe: ${name}`, run: () => describe(of, instance) })),
  ];
}

async function outcomeOf(one: Case, data: Uint8Array): Promise<string> {
  const { outcome, machine } = await judge(awsProvider, one, data);
  return outcome.startsWith('crash') ? 'crash' : outcome + (machine === undefined ? '' : JSON.stringify(machine));
}

function pin(der: Uint8Array): string {
  const ec2 = { describeInstance: () => Promise.resolve('notFound' as const) };
  try {
    awsProvider(world.policy, { sts: world.noSts, ec2, regionCertificates: new Map([[world.region, [der]]]) });
    return 'accepted';
  } catch {
    return 'refused';
  }
}

async function describe(of: string, instance: Partial<InstanceDescription> | 'notFound'): Promise<string> {
  const describeInstance = () =>
    Promise.resolve(instance === 'notFound' ? instance : { ...world.instance, ...instance });
  const ports = { sts: world.noSts, ec2: { describeInstance }, regionCertificates: world.regionCertificates };
  try {
    const state: unknown = await awsProvider(world.policy, ports).describe(of, world.now);
    return state === undefined ? 'nothing' : JSON.stringify(state);
  } catch {
    return 'crash';
  }
}
