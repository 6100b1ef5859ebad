import { execFile } from 'node:child_process';
import { createHash, X509Certificate } from 'node:crypto';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, describe, expect, test } from 'vitest';
import type { AwsFault } from '../../harness/aws-proxy.ts';
import { deployOnLocalStack, type Deployment } from '../../harness/aws-deployment.ts';
import { signedDigests, signOperation } from '../../harness/aws-kms-counter.ts';
import { requireLocalStack } from '../../harness/localstack.ts';
import { clusterPath } from '../../harness/stack.ts';
import { tbsOf } from '../../harness/stack-key.ts';
import {
  approveBurst,
  certificatePemOf,
  createClientRequests,
  readRequest,
  readRequests,
  settled,
  type CsrObject,
} from '../../harness/stack-requests.ts';
import { requireTools } from '../../tools/tools.ts';
import { describeSigning, type SignerUnderTest, type SigningWorld } from '../end-to-end/signing-suite.ts';

const commandLine = join(import.meta.dirname, '../../../cli/countersign.ts');
const missing = [await requireTools('etcd', 'kube-apiserver', 'kubectl'), await requireLocalStack()];
/** Whoever else's LocalStack it is, it runs functions where they do not meet our proxy. */
const notOurs = Boolean(process.env['AWS_ENDPOINT_URL']);

describeSigning({
  by: 'what cdk deploy made in LocalStack',
  skip: notOurs || missing.some(({ skip }) => skip),
  start: startSigner,
  // Each call at once is a process of its own here.
  relayArgs: ['--concurrency', '4'],
  more(world) {
    describe('the deployment', () => {
      defineDeployment(world);
    });
    describe('KMS', () => {
      defineCounting(world);
    });
    describe('deployed again with other rules', () => {
      defineNextDeployment(world);
    });
  },
});

type AwsSigner = SignerUnderTest & Deployment;

async function startSigner(): Promise<AwsSigner> {
  const deployment = await deployOnLocalStack();
  return { ...deployment, caPem: () => readTrustBundle(deployment.url) };
}

async function readTrustBundle(url: string): Promise<string> {
  const answer = await fetch(`${url}${clusterPath}/trust-bundle`);
  if (!answer.ok) throw new Error(`trust-bundle: ${answer.status} ${await answer.text()}`);
  return answer.text();
}

type World = () => SigningWorld & { readonly signer: AwsSigner };

function defineDeployment(world: World): void {
  /** As an operator types it, logged in to this AWS. */
  async function countersign(...args: readonly string[]): Promise<{ status: unknown; out: string }> {
    const { emulator } = world().signer;
    const env = { ...emulator.environment, PATH: process.env['PATH'] };
    try {
      const { stdout } = await promisify(execFile)(process.execPath, [commandLine, ...args], { env, timeout: 60_000 });
      return { status: 0, out: stdout };
    } catch (error) {
      const { code, stderr } = error as { code?: unknown; stderr?: string };
      return { status: code, out: stderr ?? '' };
    }
  }

  test('is whole, but for what LocalStack does not know', () => {
    expect(world().signer.passedOver).toEqual(['AWS::Logs::MetricFilter']);
  });

  test('has made its CA, which countersign ca show shows', async () => {
    const { signer } = world();
    expect(await countersign('ca', 'show', '--cluster', 'demo', '-o', 'pem')).toEqual({
      status: 0,
      out: await signer.caPem(),
    });
    const { status, out } = await countersign('ca', 'show', '--cluster', 'demo', '-o', 'json');
    expect(status).toBe(0);
    expect(JSON.parse(out)).toMatchObject({ name: 'ca', keyId: expect.stringMatching(/^arn:aws:kms:/) as unknown });
  });

  test('keeps that CA, whoever wants another', async () => {
    const { signer } = world();
    const [before, calls] = [await signer.caPem(), signer.kms.count(signOperation)];
    const { status, out } = await countersign('ca', 'init', '--cluster', 'demo');
    expect(out).toContain('has a CA ca already');
    expect(status).toBe(6);
    expect(await signer.caPem()).toBe(before);
    expect(signer.kms.count(signOperation)).toBe(calls);
  });
}

/** How often the key was asked, at the key's door: whatever the function believes, this is what KMS bills. */
function defineCounting(world: World): void {
  /** By digest, what was answered with a fault. */
  const faults = new Map<string, number>();

  async function issuedDigests(): Promise<string[]> {
    const issued = (await readRequests(world().plane)).filter(({ status }) => status.certificate !== undefined);
    return issued.map((object) => digestOf(certificatePemOf(object)));
  }

  /** One for each certificate, the CA's own among them, and one more for each fault it met; and none for anything else. */
  async function expectOneEach(): Promise<void> {
    const ca = digestOf(await world().signer.caPem());
    const expected = [ca, ...(await issuedDigests())].map((digest) => [digest, 1 + (faults.get(digest) ?? 0)]);
    expect(Object.fromEntries(signedDigests(world().signer.kms))).toEqual(Object.fromEntries(expected));
  }

  /** The first `times` asked for each digest. */
  function inject(fault: AwsFault, times: number): void {
    const met = new Map<string, number>();
    world().signer.kms.inject = ({ operation, body }) => {
      if (operation !== signOperation) return undefined;
      const { Message: message } = JSON.parse(body.toString('utf8')) as { Message: string };
      const digest = Buffer.from(message, 'base64').toString('hex');
      const before = met.get(digest) ?? 0;
      if (before >= times) return undefined;
      met.set(digest, before + 1);
      faults.set(digest, (faults.get(digest) ?? 0) + 1);
      return fault;
    };
  }

  async function issueBurst(prefix: string, count: number): Promise<void> {
    const burst = await createClientRequests(world().plane, prefix, count);
    await approveBurst(world().plane, burst);
    const objects = await settled(
      world().plane,
      burst.map(({ name }) => name),
    );
    for (const object of objects.values()) expect(object.status.certificate).toBeDefined();
  }

  afterEach(() => {
    world().signer.kms.inject = () => undefined;
  });

  test('was asked once for each certificate so far, and for nothing that was refused', async () => {
    expect(await issuedDigests()).toHaveLength(5);
    await expectOneEach();
  });

  test('is not asked again by who brings the same request: the certificate is the same', async () => {
    const { plane, signer } = world();
    const before = await readRequest(plane, 'alice');
    const calls = signer.kms.count(signOperation);
    const answers = await Promise.all([1, 2, 3].map(() => postAgain(signer.url, before)));
    for (const answer of answers) {
      expect(answer.status).toBe(200);
      expect(certificatePemOf((await answer.json()) as CsrObject)).toBe(certificatePemOf(before));
    }
    expect(signer.kms.count(signOperation)).toBe(calls);
  });

  test.each<[AwsFault, number]>([
    ['throttled', 2],
    ['answerLost', 1],
    ['lost', 1],
    ['failed', 1],
  ])('is asked once more for each time it was %s', async (fault, times) => {
    const count = 5;
    const before = [...faults.values()].reduce((sum, each) => sum + each, 0);
    inject(fault, times);
    await issueBurst(fault.toLowerCase(), count);
    expect([...faults.values()].reduce((sum, each) => sum + each, 0) - before).toBe(count * times);
    await expectOneEach();
  });
}

function defineNextDeployment(world: World): void {
  test('obeys those, and has the same CA and the same answers for what was asked before', async () => {
    const { plane, signer } = world();
    const [ca, calls, alice] = [
      await signer.caPem(),
      signer.kms.count(signOperation),
      await readRequest(plane, 'alice'),
    ];
    await signer.deployAgain((configuration) => configuration.replaceAll('maxTtl: 1d', 'maxTtl: 2h'));
    expect(await signer.caPem()).toBe(ca);

    const answer = await postAgain(signer.url, alice);
    expect(answer.status).toBe(200);
    expect(certificatePemOf((await answer.json()) as CsrObject)).toBe(certificatePemOf(alice));
    expect(signer.kms.count(signOperation)).toBe(calls);

    const [later] = await createClientRequests(plane, 'later', 1);
    await approveBurst(plane, [later!]);
    const object = (await settled(plane, [later!.name])).get(later!.name)!;
    expect([alice, object].map(lifetimeHours)).toEqual([24, 2]);
    expect(signer.kms.count(signOperation)).toBe(calls + 1);
  });
}

/** As the relay brought it before it was answered. */
function postAgain(url: string, object: CsrObject): Promise<Response> {
  const { certificate: _earlier, ...status } = object.status;
  const type = { apiVersion: 'certificates.k8s.io/v1', kind: 'CertificateSigningRequest' };
  return fetch(`${url}${clusterPath}/sign`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ ...type, ...object, status }),
  });
}

/** To the nearest hour: a certificate begins a little before it is asked for. */
function lifetimeHours(object: CsrObject): number {
  const { validFromDate, validToDate } = new X509Certificate(certificatePemOf(object));
  return Math.round((validToDate.getTime() - validFromDate.getTime()) / 3_600_000);
}

/** What KMS is given to sign for a certificate. */
function digestOf(pem: string): string {
  return createHash('sha256')
    .update(Buffer.from(tbsOf(new X509Certificate(pem).raw), 'hex'))
    .digest('hex');
}
