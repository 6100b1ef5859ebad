/**
 * Requests as nodes made them before aws/v2, recorded: kubelet-authenticator with several kinds of keys, and the documented
 * bash script. They are taken until the operator ends aws/v1 (acceptV1), and the refusal then says what to send.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import type { AwsPorts } from '../../../../core/attestation/aws/endpoints.ts';
import type { InstanceDescription } from '../../../../core/attestation/aws/instance.ts';
import { openSite, requestFor } from '../../../harness/attestation/attested-site.ts';
import type { AttestedSite } from '../../../harness/attestation/attested-site.ts';
import { verifySigV4 } from '../../../harness/aws/sigv4-verifier.ts';

interface Recorded {
  readonly name: string;
  readonly at: number;
  readonly signerName: string;
  readonly usages: readonly string[];
  /** Base64, as in spec.request. */
  readonly request: string;
}

const recorded = JSON.parse(
  readFileSync(join(import.meta.dirname, '../../../corpus/attestation/v1-requests.json'), 'utf8'),
) as {
  readonly audience: string;
  readonly nodeName: string;
  readonly account: string;
  readonly region: string;
  readonly regionCertificate: string;
  readonly credential: Readonly<Record<'accessKeyId' | 'secretAccessKey' | 'sessionToken' | 'arn' | 'userId', string>>;
  readonly instance: Readonly<
    Record<'instanceId' | 'availabilityZone' | 'vpcId' | 'subnetId' | 'privateDnsName' | 'address', string>
  > & { readonly launchTime: number };
  readonly requests: readonly Recorded[];
};
const { account, region, nodeName, credential, requests } = recorded;
const { address, ...placed } = recorded.instance;
const instance: InstanceDescription = {
  ...placed,
  ownerId: account,
  state: 'running',
  tags: new Map([['kubernetes.io/cluster/prod', 'owned']]),
  httpTokens: 'required',
  httpPutResponseHopLimit: 1,
  rootDeviceType: 'ebs',
  rootAttachedAt: placed.launchTime,
  interfaceAttachedAt: placed.launchTime,
  addresses: [address],
  dnsNames: [],
  primaryAddresses: [address],
  primaryDnsNames: [placed.privateDnsName],
};

/** AWS as it was when they were recorded; STS checks the signature of what it is sent. */
const aws = (now: () => number): AwsPorts => ({
  regionCertificates: new Map([[region, [Buffer.from(recorded.regionCertificate, 'base64')]]]),
  ec2: { describeInstance: () => Promise.resolve(instance) },
  sts: ({ host, path, headers }) => {
    const sent = { method: 'GET', target: path, headers: { host, ...headers }, body: Buffer.alloc(0) };
    const verified = verifySigV4(
      sent,
      (id) => (id === credential.accessKeyId ? credential.secretAccessKey : undefined),
      now(),
    );
    if (typeof verified === 'string') return Promise.resolve({ status: 403, contentType: 'text/plain', body: '' });
    const result = { Account: account, Arn: credential.arn, UserId: credential.userId };
    const body = { GetCallerIdentityResult: result, ResponseMetadata: { RequestId: 'r' } };
    return Promise.resolve({
      status: 200,
      contentType: 'application/json',
      body: JSON.stringify({ GetCallerIdentityResponse: body }),
    });
  },
});

const open: AttestedSite[] = [];
afterEach(() => {
  for (const site of open.splice(0)) site.close();
});

async function siteAt(at: number, acceptV1: boolean): Promise<AttestedSite> {
  const now = (): number => at + 10_000;
  const profile = { ca: 'ca', maxTtl: '1d' };
  const site = await openSite({
    clusters: {
      prod: {
        profiles: {
          'cluster.x-k8s.io/kube-apiserver-client-kubelet-aws': profile,
          'cluster.x-k8s.io/kubelet-serving-aws': profile,
        },
        attestation: {
          audience: recorded.audience,
          aws: {
            accounts: { [account]: {} },
            regions: [region],
            tags: { 'kubernetes.io/cluster/prod': 'owned' },
            nodeName: ['privateDnsName'],
            acceptV1,
          },
        },
      },
    },
    aws: aws(now),
    now,
  });
  open.push(site);
  return site;
}

function posted({ request, signerName, usages }: Recorded): object {
  const by = signerName.includes('serving') ? 'node' : 'bootstrap';
  const text = Buffer.from(request, 'base64').toString();
  return requestFor({ node: nodeName, by, signerName, usages, request: text });
}

describe('requests recorded before aws/v2', () => {
  test.for(requests.map((one) => [one.name, one] as const))('finding 7: taken while v1 is: %s', async ([, one]) => {
    const site = await siteAt(one.at, true);
    if (one.signerName.includes('serving'))
      expect(await site.attest(posted(requests[0]!))).toMatchObject({ said: 'approve' });
    const object = posted(one);
    expect(await site.attest(object)).toMatchObject({ said: 'approve' });
    expect(await site.sign(object)).toMatchObject({ said: 'issued' });
  });

  test.for(requests.map((one) => [one.name, one] as const))(
    'finding 7: refused with a clear message when the operator ended v1: %s',
    async ([, one]) => {
      const site = await siteAt(one.at, false);
      expect(await site.attest(posted(one))).toEqual({
        said: 'AttestationVersion',
        message:
          "evidence aws/v1 is not taken here, but aws/v2: update kubelet-authenticator, or the node's own script",
        annotations: { 'countersign.dev/supported-attestation-versions': 'aws/v2' },
      });
      expect(await site.sign(posted(one))).toMatchObject({ said: 'AttestationVersion' });
    },
  );
});
