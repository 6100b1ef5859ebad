/** The requests to sign: kubelet client requests in a real API server, as nodes make them when they join. */
import { createPublicKey, X509Certificate } from 'node:crypto';
import type { ControlPlane } from '../../test/harness/kubernetes/control-plane.ts';
import { makeRequest, newKey } from '../../test/harness/x509/requests.ts';
import type { TestKey } from '../../test/harness/x509/requests.ts';
import { requestsPath } from './observer.ts';

export const signerName = 'kubernetes.io/kube-apiserver-client-kubelet';
/** More at once is not faster on two cores. */
const atOnce = 16;
/** Making keys is not measured: a few are enough, because the names make the requests differ. */
const keyPool = 8;

interface StoredRequest {
  readonly metadata: { readonly name: string };
  readonly spec: { readonly request: string };
  readonly status?: { readonly conditions?: readonly object[]; readonly certificate?: string };
}

let keys: readonly TestKey[] | undefined;

/** A PKCS#10 request as a kubelet makes it. */
export function kubeletRequest(name: string, index: number): Buffer {
  const subject = { O: 'system:nodes', CN: `system:node:${name}` };
  return makeRequest({ key: keyOf(index), subject }).bytes;
}

function keyOf(index: number): TestKey {
  keys ??= Array.from({ length: keyPool }, () => newKey('P-256'));
  return keys[index % keyPool]!;
}

export function requestObject(name: string, request: Buffer, signer: string = signerName): object {
  return {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name },
    spec: {
      signerName: signer,
      request: request.toString('base64'),
      usages: ['digital signature', 'client auth'],
      expirationSeconds: 86_400,
    },
  };
}

/** Creates `count` pending requests, and returns them as they are stored. */
export async function createRequests(
  { admin }: Pick<ControlPlane, 'admin'>,
  prefix: string,
  count: number,
): Promise<readonly StoredRequest[]> {
  const created: StoredRequest[] = [];
  await forEach(count, async (index) => {
    const name = `${prefix}-${String(index).padStart(5, '0')}`;
    const body = requestObject(name, kubeletRequest(name, index));
    created[index] = await admin.expectOk<StoredRequest>(requestsPath, { method: 'POST', body });
  });
  return created;
}

/** The request of a node; both have the same name. */
export interface NodeRequest {
  readonly name: string;
  /** The content of spec.request. */
  readonly request: string;
  /** DER of the public key, in base64. */
  readonly key: string;
}

/** Requests of kubelets with these names. */
export function kubeletRequests(names: readonly string[]): readonly NodeRequest[] {
  return names.map((name, index) => ({
    name,
    request: kubeletRequest(name, index).toString('latin1'),
    key: Buffer.from(keyOf(index).spki).toString('base64'),
  }));
}

/** Creates requests whose PKCS #10 exists already. */
export async function createGiven(
  client: Pick<ControlPlane['admin'], 'expectOk'>,
  requests: readonly NodeRequest[],
  signer: string,
): Promise<readonly string[]> {
  await forEach(requests.length, async (index) => {
    const { name, request } = requests[index]!;
    const body = requestObject(name, Buffer.from(request), signer);
    await client.expectOk(requestsPath, { method: 'POST', body });
  });
  return requests.map(({ name }) => name);
}

export async function approve({ admin }: ControlPlane, request: StoredRequest): Promise<void> {
  const approved = { type: 'Approved', status: 'True', reason: 'Bench', message: 'approved by the benchmark' };
  const body = { ...request, status: { conditions: [approved] } };
  await admin.expectOk(`${requestsPath}/${request.metadata.name}/approval`, { method: 'PUT', body });
}

export async function createApproved(
  controlPlane: ControlPlane,
  prefix: string,
  count: number,
): Promise<readonly string[]> {
  const requests = await createRequests(controlPlane, prefix, count);
  await forEach(count, (index) => approve(controlPlane, requests[index]!));
  return requests.map(({ metadata }) => metadata.name);
}

/**
 * Throws unless each certificate is signed by that CA, for the key and the name of its request: a contender that issues
 * something else must not count as fast. `given` has the keys of requests that this module did not make; each other
 * request has the number of its key at the end of its name.
 */
export async function checkCertificates(
  { admin }: Pick<ControlPlane, 'admin'>,
  names: readonly string[],
  caPem: string,
  given: readonly NodeRequest[] = [],
): Promise<void> {
  const ca = new X509Certificate(caPem);
  const { items } = await admin.expectOk<{ items: readonly StoredRequest[] }>(requestsPath);
  const stored = new Map(items.map((item) => [item.metadata.name, item]));
  const keysGiven = new Map(given.map(({ name, key }) => [name, Buffer.from(key, 'base64')]));
  for (const name of names) {
    const pem = Buffer.from(stored.get(name)?.status?.certificate ?? '', 'base64').toString('latin1');
    if (pem === '') throw new Error(`${name} has no certificate`);
    const certificate = new X509Certificate(pem);
    const spki = keysGiven.get(name) ?? keyOf(Number(/\d+$/.exec(name)?.[0])).spki;
    const key = createPublicKey({ key: Buffer.from(spki), format: 'der', type: 'spki' });
    if (!certificate.verify(ca.publicKey)) throw new Error(`the certificate of ${name} is not signed by the CA`);
    if (!certificate.publicKey.equals(key)) throw new Error(`the certificate of ${name} is for another key`);
    if (certificate.subject !== `O=system:nodes\nCN=system:node:${name}`)
      throw new Error(`the certificate of ${name} is for another subject`);
  }
}

/** Runs `work` for 0 … count-1, with bounded concurrency. */
async function forEach(count: number, work: (index: number) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, count) }, worker));
}
