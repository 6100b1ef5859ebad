/**
 * What the attest function writes down of real evidence: names and codes, and not sixteen characters in a row of what a node
 * sent or what stands in a key, a token, a credential. Logs are read by more people than may become a node.
 */
import { randomUUID } from 'node:crypto';
import { EC2Client } from '@aws-sdk/client-ec2';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { ec2Endpoint } from '../../../../adapters/aws/ec2.ts';
import { openEmbeddedAttestations } from '../../../../adapters/embedded/attestations.ts';
import { writeLog } from '../../../../adapters/lambda/log.ts';
import { stsEndpoint } from '../../../../adapters/aws/sts.ts';
import { loopbackCaller } from '../../../../dev/serve/loopback-caller.ts';
import { createProviders } from '../../../../core/attestation/providers.ts';
import { parseConfiguration } from '../../../../core/configuration/parse.ts';
import { createAttestHandler } from '../../../../lambdas/attest/handler.ts';
import { startFakeEc2 } from '../../../harness/fake-aws/ec2.ts';
import type { FakeEc2 } from '../../../harness/fake-aws/ec2.ts';
import { makeNodeEvidence } from '../../../harness/fake-aws/machine/node-evidence.ts';
import type { NodeEvidence, NodeEvidenceOptions } from '../../../harness/fake-aws/machine/node-evidence.ts';
import { startFakeSts } from '../../../harness/fake-aws/sts.ts';
import type { FakeSts } from '../../../harness/fake-aws/sts.ts';
import { createFakeAws } from '../../../harness/fake-aws/world.ts';
import { eventFixture } from '../sign/stack.ts';
import { clientSigner } from './world.ts';

const [account, region] = ['111122223333', 'eu-central-1'];
const cluster = clusterOf(`version: 1
clusters:
  demo:
    cas: { ca: { subject: { commonName: demo ca } } }
    profiles: { ${clientSigner}: { attestation: { providers: [aws] } } }
    aws: { account: '${account}', region: ${region} }
    attestation:
      aws:
        accounts: { '${account}': {} }
        regions: [${region}]
        tags: { kubernetes.io/cluster/demo: owned }
        nodeName: ['tag:Name']
`);

const aws = createFakeAws();
const reader = aws.createUser(account, 'attest', ['ec2:DescribeInstances']);
const store = openEmbeddedAttestations(':memory:');
let [sts, ec2] = [{} as FakeSts, {} as FakeEc2];
beforeAll(async () => {
  [sts, ec2] = await Promise.all([startFakeSts({ aws }), startFakeEc2({ aws })]);
});
afterEach(() => {
  sts.mend();
  ec2.mend();
});
afterAll(async () => {
  store.close();
  await Promise.all([sts.close(), ec2.close()]);
});

interface Case {
  readonly options?: Partial<NodeEvidenceOptions>;
  /** Before it is posted. */
  readonly happen?: () => void;
  /** What is posted instead of the call. */
  readonly body?: (call: string, evidence: NodeEvidence) => string;
}

/** Posts the evidence of a new instance; the answer, what was printed, and what must be in neither. */
async function posted({ options, happen, body }: Case) {
  const name = `node-${randomUUID()}`;
  const { instanceId } = aws.launch({
    account,
    region,
    tags: { 'kubernetes.io/cluster/demo': 'owned', Name: name },
  });
  const made = makeNodeEvidence(aws, instanceId, {
    clusterName: 'demo',
    audience: `${account}/${region}/demo`,
    signerName: clientSigner,
    nodeName: name,
    nonce: 'a-nonce-that-nobody-else-has',
    providerId: `aws:///${region}a/${instanceId}`,
    ...options,
  });
  const credential = aws.identityCredential(instanceId);
  const object = {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name: 'csr-1', uid: randomUUID(), annotations: { secret: 'an-annotation-of-the-request' } },
    spec: {
      request: Buffer.from(made.request).toString('base64'),
      signerName: clientSigner,
      usages: ['digital signature', 'client auth'],
      username: 'system:bootstrap:abcdef',
      groups: ['system:bootstrappers', 'system:bootstrappers:kubeadm:default-node-token'],
      extra: { 'example.com/token': ['an-extra-value-of-the-requester'] },
    },
    status: {},
  };
  happen?.();
  const call = JSON.stringify({ request: object });
  let printed = '';
  const stdout = vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    printed += String(text);
    return true;
  });
  const { http: handler } = createAttestHandler({
    caller: loopbackCaller,
    cluster: (wanted) => (wanted === 'demo' ? cluster : undefined),
    attestation: async () => ({
      store: store.store,
      providers: createProviders(cluster.attestation!, {
        aws: {
          sts: stsEndpoint({ endpoint: sts.url }),
          ec2: ec2Endpoint(() => new EC2Client({ region, endpoint: ec2.url, credentials: reader, maxAttempts: 1 })),
          regionCertificates: aws.regionCertificates(region),
        },
      }),
    }),
    now: aws.now,
    randomBytes: (count) => new Uint8Array(count),
    log: writeLog('info'),
  });
  const answer = await handler(
    eventFixture({
      method: 'POST',
      path: '/v1/clusters/demo/attest',
      headers: { 'content-type': 'application/json', authorization: 'Bearer the-token-of-the-relay-itself' },
      body: body?.(call, made) ?? call,
    }),
  ).finally(() => stdout.mockRestore());
  const secrets = [
    made.request,
    object.spec.request,
    made.sts,
    // Where it goes is no secret.
    made.presignedUrl.split('?')[1] ?? '',
    decodeURIComponent(made.presignedUrl.split('?')[1] ?? ''),
    aws.rsa2048(instanceId),
    // Instance and place are named, and a line has a time.
    aws.identityDocument(instanceId).replace(/"(?:instanceId|availabilityZone|pendingTime)".*/g, ''),
    made.binding,
    made.key.keyPem,
    made.key.spki.toString('base64'),
    made.key.spki.toString('hex'),
    credential.accessKeyId,
    credential.secretAccessKey,
    credential.sessionToken ?? '',
    reader.secretAccessKey,
    'a-nonce-that-nobody-else-has',
    'an-annotation-of-the-request',
    'an-extra-value-of-the-requester',
    'the-token-of-the-relay-itself',
  ];
  return { answer, printed, secrets, name, instanceId };
}

/** Whatever of a secret is in the text, sixteen characters long. */
function leaks(text: string, secrets: readonly string[]): string[] {
  const all = secrets.join('\n\n');
  const windows = Array.from({ length: Math.max(0, text.length - 15) }, (_, at) => text.slice(at, at + 16));
  return windows.filter((part) => all.includes(part));
}

describe('of real evidence the log tells names and codes', () => {
  test.each<[string, Case, object]>([
    ['approved', {}, { level: 'info', outcome: 'verdict', decision: 'approve' }],
    ['for another deployment', { options: { audience: 'other' } }, { codes: ['AttestationInvalid'] }],
    ['for another node', { options: { nodeName: 'other' } }, { codes: ['IdentityNotAllowed'] }],
    [
      'with a proof that STS refuses',
      { options: { presign: { id: 'csr-attest/v1/demo/another-binding' } } },
      { codes: ['AttestationInvalid'] },
    ],
    ['too old', { options: { at: aws.now() - 600_000 } }, { codes: ['AttestationInvalid'] }],
    ['of no known version', { options: { version: 'aws/v9' } }, { codes: ['AttestationVersion'] }],
    ['with a key more', { options: { data: { also: 'x' } } }, { codes: ['AttestationInvalid'] }],
    [
      'with a token that is another text',
      { options: { data: { sts: 'k8s-aws-v1.VGhpcyBpcyBhIHZlcnkgc2VjcmV0IHRleHQ' } } },
      { codes: ['AttestationInvalid'] },
    ],
    [
      'while STS is away',
      { happen: () => sts.fail(500, 'InternalFailure', 'words of STS about it') },
      { level: 'warn', why: 'Unavailable' },
    ],
    ['while STS hangs up', { happen: () => sts.inject({}) }, { level: 'warn', why: 'Unavailable' }],
    ['while EC2 hangs up', { happen: () => ec2.inject({}) }, { level: 'warn', why: 'Unavailable' }],
    [
      'while EC2 is busy',
      { happen: () => ec2.fail(503, 'RequestLimitExceeded', 'words of EC2 about it') },
      { level: 'info', why: 'Throttled' },
    ],
    [
      'while we may not ask EC2',
      { happen: () => ec2.fail(403, 'UnauthorizedOperation', 'words of EC2 about a policy') },
      { level: 'error', why: 'Internal' },
    ],
    ['in a body that breaks off', { body: (call) => call.slice(0, -40) }, { status: 400, outcome: 'invalid' }],
    [
      'in a call with a key more',
      { body: (call, { sts: token }) => `${call.slice(0, -1)},"${token.slice(0, 200)}":1}` },
      { status: 400, outcome: 'invalid' },
    ],
    [
      'where the object’s name should be',
      { body: (call, { sts: token }) => call.replace('csr-1', token.slice(0, 600)) },
      { decision: 'approve' },
    ],
  ])('%s', async (_, how, told) => {
    const { answer, printed, secrets } = await posted(how);
    const lines = printed.split('\n').filter((line) => line !== '');
    expect(lines).toHaveLength(1);
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ cluster: 'demo', ...told });
    expect(leaks(printed, secrets)).toEqual([]);
    expect(leaks(answer.body, secrets)).toEqual([]);
    // What AWS says about it is the operator's to read.
    expect(answer.body).not.toContain('words of');
  });

  test('and what it tells is enough to find the request, the machine and the reason', async () => {
    const { printed, instanceId } = await posted({});
    expect(JSON.parse(printed)).toEqual({
      time: expect.any(String) as string,
      level: 'info',
      outcome: 'verdict',
      status: 200,
      durationMilliseconds: expect.any(Number) as number,
      cluster: 'demo',
      uid: expect.stringMatching(/^[0-9a-f-]{36}$/) as string,
      name: 'csr-1',
      signerName: clientSigner,
      decision: 'approve',
      repeat: false,
      identity: `aws#aws/${account}/${region}/${instanceId}`,
      evidence: 'aws/v2',
    });
  });

  test('the comparison would find a leak', () => {
    expect(leaks('x 0123456789abcdefg', ['0123456789abcdef'])).toEqual(['0123456789abcdef']);
  });
});

function clusterOf(yaml: string) {
  const parsed = parseConfiguration(yaml, 'countersign.yaml');
  const found = parsed.ok ? parsed.value.configuration.clusters.get('demo') : undefined;
  if (found === undefined) throw new Error(JSON.stringify(parsed));
  return found;
}
