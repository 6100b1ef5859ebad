/** Puts one case to the provider, from the evidence as sent to the machine as told. */
import type { AwsPorts, StsAnswer, StsRequest } from '../../../core/attestation/aws/endpoints.ts';
import type { InstanceDescription } from '../../../core/attestation/aws/instance.ts';
import type { AttestationProvider, Machine } from '../../../core/attestation/evidence/provider.ts';
import type { AwsAttestation } from '../../../core/configuration/providers/aws.ts';
import { presign, stsToken } from '../../harness/fake-aws/protocol/presign.ts';
import type { PresignOptions } from '../../harness/fake-aws/protocol/presign.ts';
import * as world from './aws-machine.ts';
import { hasEndedAs, refused } from './expected.ts';
import type { Expected } from './expected.ts';
import { signedMessage } from './cms-writer.ts';
import type { RegionKey } from './cms-writer.ts';

/** What differs from the one good request; what is absent is as the true machine has it. */
export interface Case {
  readonly name: string;
  readonly expect: Expected;
  /** By default what a node sends under that policy: `aws/v2`, and `aws/v1` where roles count. */
  readonly version?: 'aws/v1' | 'aws/v2';
  /** Fields of the identity document besides or instead; `undefined` leaves one out. */
  readonly document?: Readonly<Record<string, unknown>>;
  /** Its bytes. */
  readonly content?: (usual: Buffer) => Buffer;
  readonly cms?: (content: Buffer) => Buffer;
  readonly signedWith?: RegionKey;
  readonly presign?: Partial<PresignOptions>;
  /** After the signature. */
  readonly url?: (url: string) => string;
  readonly token?: (token: string) => string;
  /** Besides or instead. */
  readonly data?: Readonly<Record<string, unknown>>;
  readonly dataText?: (text: string) => string;
  readonly answer?: (answer: StsAnswer) => StsAnswer;
  readonly instance?: Partial<InstanceDescription> | 'notFound';
  readonly policy?: Partial<AwsAttestation>;
}

export interface Judged {
  /** `accepted`, or the code and every message. */
  readonly outcome: string;
  readonly machine?: Machine;
  /** What was asked of AWS, in order. */
  readonly asked: readonly string[];
  readonly requests: readonly StsRequest[];
}

type ProviderOf = (policy: AwsAttestation, ports: AwsPorts) => AttestationProvider;

/** `data`: of this very case, where it was made before. */
export async function judge(awsProvider: ProviderOf, one: Case, data: Uint8Array = dataOf(one)): Promise<Judged> {
  const asked: string[] = [];
  const requests: StsRequest[] = [];
  const provider = awsProvider(
    { ...world.policy, ...one.policy },
    {
      regionCertificates: pinned(one),
      sts: (request) => {
        asked.push(`STS ${request.host}`);
        requests.push(request);
        const answer = world.askSts(request);
        return Promise.resolve(one.answer?.(answer) ?? answer);
      },
      ec2: {
        describeInstance: (where, id) => {
          asked.push(`EC2 ${JSON.stringify(where)} ${id}`);
          return Promise.resolve(one.instance === 'notFound' ? 'notFound' : { ...world.instance, ...one.instance });
        },
      },
    },
  );
  try {
    const examined = await provider.examine({
      version: versionOf(one),
      data,
      request: undefined as never,
      nodeName: 'ip-10-0-0-5.eu-central-1.compute.internal',
      clusterName: world.clusterName,
      binding: world.binding,
      now: world.now,
    });
    const answer = examined.ok ? await examined.value.verify() : examined;
    if (!answer.ok) return { outcome: refused(answer.problem), asked, requests };
    return { outcome: 'accepted', machine: answer.value, asked, requests };
  } catch (error) {
    const { name, message } = error as Error;
    // What only a mistake can throw is told apart from what says "later".
    return {
      outcome: `${name === 'Error' || name === 'ThrottledError' ? 'temporary' : 'crash'}: ${message}`,
      asked,
      requests,
    };
  }
}

/** Only what the case needs: pinning takes longer than all the rest. */
function pinned({ signedWith }: Case): ReadonlyMap<string, readonly Uint8Array[]> {
  const needed = Object.entries(world.keys).filter(([name, key]) => name === world.region || key === signedWith);
  return new Map(needed.map(([name, { certificate }]) => [name, [certificate]]));
}

function versionOf({ version, policy }: Pick<Case, 'version' | 'policy'>): NonNullable<Case['version']> {
  return version ?? (policy?.requireIdentityRole === false ? 'aws/v1' : 'aws/v2');
}

/** The document of a case, as the metadata service gives it. */
function signedDocument(one: Omit<Case, 'name' | 'expect'>): string {
  const fields = Object.entries({ ...world.document, ...one.document }).filter(([, value]) => value !== undefined);
  const usual = Buffer.from(JSON.stringify(Object.fromEntries(fields), undefined, 2));
  const content = one.content?.(usual) ?? usual;
  const cms = one.cms?.(content) ?? signedMessage(content, one.signedWith ?? world.keys['eu-central-1']);
  return imdsText(cms);
}

/** The DATA block of a case. */
export function dataOf(one: Omit<Case, 'name' | 'expect'>): Buffer {
  const nonce = typeof one.data?.['nonce'] === 'string' ? one.data['nonce'] : '';
  const url = presign({
    credential: world.credentials.machine,
    region: world.region,
    id: `csr-attest/v1/${world.clusterName}/${world.binding(nonce)}`,
    at: world.now - 20_000,
    ...one.presign,
  });
  const token = stsToken(one.url?.(url) ?? url);
  const which = versionOf(one) === 'aws/v1' ? { v: 1, rsa2048: signedDocument(one) } : world.claims;
  const data = { ...which, sts: one.token?.(token) ?? token, ...one.data };
  const text = JSON.stringify(data);
  return Buffer.from(one.dataText?.(text) ?? text);
}

function imdsText(cms: Uint8Array): string {
  return (
    Buffer.from(cms)
      .toString('base64')
      .match(/.{1,64}/g) ?? []
  ).join('\n');
}

/** Whether a case ended as it says it must. */
export function isAsExpected({ expect }: Case, { outcome }: Pick<Judged, 'outcome'>): boolean {
  return hasEndedAs(expect, outcome);
}
