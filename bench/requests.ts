/** The work: kubelet client requests in a real API server, as nodes make them when they join. */
import { createPublicKey, X509Certificate } from 'node:crypto';
import type { ControlPlane } from '../test/harness/control-plane.ts';
import { makeRequest, newKey } from '../test/harness/requests.ts';
import type { TestKey } from '../test/harness/requests.ts';
import { requestsPath } from './observer.ts';

export const signerName = 'kubernetes.io/kube-apiserver-client-kubelet';
/** More at once is not faster on two cores. */
const atOnce = 16;
/** Making keys is not what is measured: a few are enough, a name each makes the requests differ. */
const keyPool = 8;

interface StoredRequest {
  readonly metadata: { readonly name: string };
  readonly spec: { readonly request: string };
  readonly status?: { readonly conditions?: readonly object[]; readonly certificate?: string };
}

let keys: readonly TestKey[] | undefined;

/** A PKCS#10 request as a kubelet makes it. */
export function kubeletRequest(name: string, index: number): Buffer {
  keys ??= Array.from({ length: keyPool }, () => newKey('P-256'));
  const subject = { O: 'system:nodes', CN: `system:node:${name}` };
  return makeRequest({ key: keys[index % keyPool]!, subject }).bytes;
}

export function requestObject(name: string, request: Buffer): object {
  return {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name },
    spec: {
      signerName,
      request: request.toString('base64'),
      usages: ['digital signature', 'client auth'],
      expirationSeconds: 86_400,
    },
  };
}

/** Creates so many pending requests, and gives their names. */
export async function createRequests(
  { admin }: Pick<ControlPlane, 'admin'>,
  prefix: string,
  count: number,
): Promise<readonly StoredRequest[]> {
  const created: StoredRequest[] = [];
  await forEach(count, async (index) => {
    const name = `${prefix}-${String(index).padStart(4, '0')}`;
    const body = requestObject(name, kubeletRequest(name, index));
    created[index] = await admin.expectOk<StoredRequest>(requestsPath, { method: 'POST', body });
  });
  return created;
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

/** A signer that is fast because it signs the wrong thing is not fast: each certificate is by that CA, for that key. */
export async function checkCertificates(
  { admin }: ControlPlane,
  names: readonly string[],
  caPem: string,
): Promise<void> {
  const ca = new X509Certificate(caPem);
  const { items } = await admin.expectOk<{ items: readonly StoredRequest[] }>(requestsPath);
  const stored = new Map(items.map((item) => [item.metadata.name, item]));
  for (const [index, name] of names.entries()) {
    const pem = Buffer.from(stored.get(name)?.status?.certificate ?? '', 'base64').toString('latin1');
    if (pem === '') throw new Error(`${name} has no certificate`);
    const certificate = new X509Certificate(pem);
    const key = createPublicKey({ key: keys![index % keyPool]!.spki, format: 'der', type: 'spki' });
    if (!certificate.verify(ca.publicKey)) throw new Error(`the certificate of ${name} is not signed by the CA`);
    if (!certificate.publicKey.equals(key)) throw new Error(`the certificate of ${name} is for another key`);
    if (!certificate.subject.includes(`CN=system:node:${name}`))
      throw new Error(`the certificate of ${name} names somebody else`);
  }
}

/** Runs `work` for 0 … count-1, a bounded number at once. */
async function forEach(count: number, work: (index: number) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, count) }, worker));
}
