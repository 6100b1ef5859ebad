/** Puts one case to the provider: an EC2 instance with a NitroTPM, from the evidence as sent to the machine as told. */
import { createHmac } from 'node:crypto';
import type { AwsNitroTpmPorts } from '../../../../core/attestation/aws-nitrotpm/provider.ts';
import type { InstanceDescription } from '../../../../core/attestation/aws/instance.ts';
import type { AttestationProvider, Machine } from '../../../../core/attestation/evidence/provider.ts';
import type { AwsAttestation } from '../../../../core/configuration/providers/aws.ts';
import type { PcrPolicy } from '../../../../core/policy/profile.ts';
import { presign, stsToken, type PresignOptions } from '../../../harness/fake-aws/protocol/presign.ts';
import * as ec2 from '../aws-machine.ts';
import { hasEndedAs, refused } from '../expected.ts';
import type { TpmExpected } from '../tpm/judge.ts';
import * as tpm from '../tpm/machine.ts';
import type { Json } from '../tpm/machine.ts';

export const audience = tpm.audience;
/** Of the one good machine. */
export const description: InstanceDescription = { ...ec2.instance, tpmSupport: 'v2.0' };

/** What differs from the one good request; what is absent is as the true machine has it. */
export interface Case {
  readonly name: string;
  readonly expect: TpmExpected;
  readonly presign?: Partial<PresignOptions>;
  /** Besides or instead; `undefined` leaves one out. */
  readonly data?: Json;
  readonly text?: (text: string) => string;
  readonly policy?: Partial<AwsAttestation>;
  readonly pcrs?: PcrPolicy;
  readonly instance?: Partial<InstanceDescription> | 'notFound';
  /** What EC2 names as the endorsement key, in DER. */
  readonly endorsementKey?: Uint8Array;
  readonly ports?: Partial<AwsNitroTpmPorts>;
  /** How EC2 described the machine moments ago. */
  readonly seen?: Machine;
}

export interface Judged {
  /** `accepted`, `activated`, or the code and every message. */
  readonly outcome: string;
  readonly machine?: Machine;
  readonly once?: readonly unknown[];
  readonly machines?: readonly string[];
  /** What was asked, in order. */
  readonly asked: readonly string[];
}

export type ProviderOf = (policy: AwsAttestation, audience: string, ports: AwsNitroTpmPorts) => AttestationProvider;

export async function judge(
  awsNitroTpmProvider: ProviderOf,
  one: Omit<Case, 'expect'>,
  data: Uint8Array = dataOf(one),
): Promise<Judged> {
  const asked: string[] = [];
  const ports: AwsNitroTpmPorts = {
    sts: (request) => {
      asked.push(`STS ${request.host}`);
      return Promise.resolve(ec2.askSts(request));
    },
    ec2: {
      describeInstance: (where, id) => {
        asked.push(`DescribeInstances ${JSON.stringify(where)} ${id}`);
        return Promise.resolve(one.instance === 'notFound' ? 'notFound' : { ...description, ...one.instance });
      },
    },
    endorsementKeys: (where, id, type) => {
      asked.push(`GetInstanceTpmEkPub ${JSON.stringify(where)} ${id} ${type}`);
      return Promise.resolve(one.endorsementKey ?? tpm.ek.spki);
    },
    challengeKey: {
      mac: (message) => {
        asked.push('mac');
        return Promise.resolve(createHmac('sha256', 'K').update(message).digest());
      },
    },
    randomBytes: (count) => Buffer.alloc(count, 0x5a),
    ...one.ports,
  };
  try {
    const examined = await awsNitroTpmProvider({ ...ec2.policy, ...one.policy }, audience, ports).examine({
      version: 'aws-nitrotpm/v1',
      data,
      request: undefined as never,
      nodeName: 'ip-10-0-0-5.eu-central-1.compute.internal',
      clusterName: ec2.clusterName,
      binding: ec2.binding,
      ...(one.pcrs === undefined ? {} : { pcrs: one.pcrs }),
      now: ec2.now,
    });
    const { seen } = one;
    const answer = !examined.ok
      ? examined
      : await (seen === undefined ? examined.value.verify() : examined.value.confirm?.(seen));
    if (answer === undefined) throw new TypeError('the evidence cannot be confirmed without a description');
    if (!answer.ok) return { outcome: refused(answer.problem), asked };
    if (!examined.ok) return { outcome: refused(examined.problem), asked };
    const { once, machines } = examined.value;
    const outcome = answer.value.device?.activated === true ? 'activated' : 'accepted';
    return { outcome, machine: answer.value, once, machines, asked };
  } catch (error) {
    const { name, message } = error as Error;
    // What only a mistake can throw is told apart from what says "later".
    return { outcome: `${['Error', 'ThrottledError'].includes(name) ? 'temporary' : 'crash'}: ${message}`, asked };
  }
}

/** The DATA block of a case. */
export function dataOf({ data = {}, text = (same) => same, presign: change }: Omit<Case, 'name' | 'expect'>): Buffer {
  const nonce = typeof data['nonce'] === 'string' ? data['nonce'] : '';
  const url = presign({
    credential: ec2.credentials.machine,
    region: ec2.region,
    id: `csr-attest/v1/${ec2.clusterName}/${ec2.binding(nonce)}`,
    at: ec2.now - 20_000,
    ...change,
  });
  const claims = { ...ec2.claims, v: 1, sts: stsToken(url), ekType: 'rsa-2048' };
  return Buffer.from(text(JSON.stringify({ ...claims, ...tpm.withKey(tpm.ak), ...data })));
}

/** Whether a case ended as it says it must. */
export function isAsExpected({ expect }: Pick<Case, 'expect'>, { outcome }: Pick<Judged, 'outcome'>): boolean {
  return hasEndedAs(expect, outcome);
}
