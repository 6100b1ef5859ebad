import { createHash, X509Certificate } from 'node:crypto';
import { afterEach, expect, test } from 'vitest';
import type { ConformanceFetch, ConformanceResponse } from '../../../conformance/http-client.ts';
import { digestIn, signedDigests, signOperation } from '../../../harness/aws/kms-counter.ts';
import type { AwsFault, AwsProxy } from '../../../harness/aws/proxy.ts';
import { byTier } from '../../../harness/determinism/tier.ts';
import { clusterPath } from '../../../harness/stack/stack.ts';
import { tbsOf } from '../../../harness/stack/key.ts';
import {
  approve,
  certificatePemOf,
  createClientRequests,
  readRequest,
  readRequests,
  settled,
  type CsrObject,
} from '../../../harness/stack/requests.ts';
import type { SignerUnderTest, SigningWorld } from './signing-suite.ts';

/** A deployment whose KMS key is watched. */
export interface CountedSigner extends SignerUnderTest {
  readonly kms: AwsProxy;
  /** As a caller that the endpoint permits. */
  readonly fetch: ConformanceFetch;
}

/** A fault, and how often a digest meets it. */
type PlannedFault = readonly [fault: AwsFault, times: number];
const everyFault: readonly PlannedFault[] = [
  ['throttled', 2],
  ['answerLost', 1],
  ['lost', 1],
  ['failed', 1],
];

/** How often the key was asked, at the key's door: whatever the function believes, this is what KMS bills. */
export function defineCounting(world: () => SigningWorld & { readonly signer: CountedSigner }): void {
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

  /** The first digest that is asked for meets the first of these, the second the second, and so on in turns. */
  function inject(planned: readonly PlannedFault[]): void {
    const met = new Map<string, { readonly fault: AwsFault; left: number }>();
    world().signer.kms.inject = (call) => {
      const digest = digestIn(call);
      if (digest === undefined) return undefined;
      const [fault, times] = planned[met.size % planned.length]!;
      const plan = met.get(digest) ?? { fault, left: times };
      met.set(digest, plan);
      if (plan.left === 0) return undefined;
      plan.left -= 1;
      faults.set(digest, (faults.get(digest) ?? 0) + 1);
      return plan.fault;
    };
  }

  async function issueBurst(prefix: string, count: number): Promise<void> {
    const burst = await createClientRequests(world().plane, prefix, count);
    await approve(world().plane, ...burst.map(({ name }) => name));
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
    const answers = await Promise.all([1, 2, 3].map(() => postAgain(signer, before)));
    for (const answer of answers) {
      expect(answer.status).toBe(200);
      expect(certificatePemOf(await jsonOf(answer))).toBe(certificatePemOf(before));
    }
    expect(signer.kms.count(signOperation)).toBe(calls);
  });

  test.each(
    byTier({ default: [everyFault], deep: everyFault.map((each) => [each]) }).map((planned) => [planned] as const),
  )('is asked once more for each fault that it met: %j', async (planned) => {
    const rounds = byTier({ default: 1, deep: 5 });
    const before = [...faults.values()].reduce((sum, each) => sum + each, 0);
    inject(planned);
    await issueBurst(planned.map(([fault]) => fault.toLowerCase()).join('-'), planned.length * rounds);
    const times = planned.reduce((sum, [, each]) => sum + each, 0);
    expect([...faults.values()].reduce((sum, each) => sum + each, 0) - before).toBe(times * rounds);
    await expectOneEach();
  });
}

/** As the relay brought it before it was answered. */
export function postAgain(signer: CountedSigner, object: CsrObject): Promise<ConformanceResponse> {
  const { certificate: _earlier, ...status } = object.status;
  const type = { apiVersion: 'certificates.k8s.io/v1', kind: 'CertificateSigningRequest' };
  return signer.fetch(`${signer.url}${clusterPath}/sign`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: new Uint8Array(Buffer.from(JSON.stringify({ ...type, ...object, status }))),
    signal: AbortSignal.timeout(60_000),
    redirect: 'manual',
  });
}

export async function readTrustBundle({ url, fetch }: Pick<CountedSigner, 'url' | 'fetch'>): Promise<string> {
  const answer = await fetch(`${url}${clusterPath}/trust-bundle`, {
    method: 'GET',
    headers: {},
    signal: AbortSignal.timeout(60_000),
    redirect: 'manual',
  });
  const text = await textOf(answer);
  if (answer.status !== 200) throw new Error(`trust-bundle: ${answer.status} ${text}`);
  return text;
}

export async function jsonOf(answer: ConformanceResponse): Promise<CsrObject> {
  return JSON.parse(await textOf(answer)) as CsrObject;
}

async function textOf(answer: ConformanceResponse): Promise<string> {
  return Buffer.from(await answer.arrayBuffer()).toString('utf8');
}

/** What KMS is given to sign for a certificate. */
function digestOf(pem: string): string {
  return createHash('sha256')
    .update(Buffer.from(tbsOf(new X509Certificate(pem).raw), 'hex'))
    .digest('hex');
}
