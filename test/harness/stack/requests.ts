import { X509Certificate } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ApiClient } from '../kubernetes/api-client.ts';
import type { ControlPlane } from '../kubernetes/control-plane.ts';
import { makeRequest, newKey, type MadeRequest, type RequestSpec } from '../x509/requests.ts';

/* CertificateSigningRequests on a real API server, as tests make and read them. */

type Admin = Pick<ControlPlane, 'admin'>;

export const csrPath = '/apis/certificates.k8s.io/v1/certificatesigningrequests';

export interface CsrObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: { readonly name: string; readonly uid: string; readonly resourceVersion: string };
  readonly spec: { readonly signerName: string; readonly request: string; readonly username: string };
  readonly status: {
    readonly certificate?: string;
    readonly conditions?: readonly {
      readonly type: string;
      readonly status: string;
      readonly reason?: string;
      readonly message?: string;
    }[];
  };
}

export type SignerKind = 'kube-apiserver-client' | 'kube-apiserver-client-kubelet' | 'kubelet-serving';

const usages: Readonly<Record<SignerKind, readonly string[]>> = {
  'kube-apiserver-client': ['digital signature', 'client auth'],
  'kube-apiserver-client-kubelet': ['digital signature', 'client auth'],
  'kubelet-serving': ['digital signature', 'server auth'],
};

export interface Asked {
  readonly name: string;
  readonly signer: SignerKind | `${string}.${string}/${string}`;
  readonly request: RequestSpec;
  readonly usages?: readonly string[];
}

export interface Posted {
  readonly name: string;
  readonly uid: string;
  readonly made: MadeRequest;
}

export async function createRequest(client: ApiClient, asked: Asked): Promise<Posted> {
  const made = makeRequest({ key: newKey('P-256'), ...asked.request });
  const inTree = asked.signer in usages;
  const object = await client.expectOk<CsrObject>(csrPath, {
    method: 'POST',
    body: {
      apiVersion: 'certificates.k8s.io/v1',
      kind: 'CertificateSigningRequest',
      metadata: { name: asked.name },
      spec: {
        signerName: inTree ? `kubernetes.io/${asked.signer}` : asked.signer,
        request: made.bytes.toString('base64'),
        usages: asked.usages ?? usages[asked.signer as SignerKind] ?? ['client auth'],
      },
    },
  });
  return { name: asked.name, uid: object.metadata.uid, made };
}

/** Requests that every signer would sign, named `<prefix>-<i>`. */
export async function createClientRequests(plane: ControlPlane, prefix: string, count: number): Promise<Posted[]> {
  return Promise.all(
    Array.from({ length: count }, (_, i) =>
      createRequest(plane.admin, {
        name: `${prefix}-${i}`,
        signer: 'kube-apiserver-client',
        request: { subject: { O: 'testers', CN: `${prefix}-${i}` } },
      }),
    ),
  );
}

/** Approves requests with the write that `kubectl certificate approve` makes, without a process of kubectl. */
export async function approve(plane: Admin, ...names: readonly string[]): Promise<void> {
  const approval = { type: 'Approved', status: 'True', reason: 'Test', message: '' };
  await Promise.all(
    names.map(async (name) => {
      const object = await readRequest(plane, name);
      const conditions = [...(object.status.conditions ?? []), approval];
      const body = { ...object, status: { ...object.status, conditions } };
      await plane.admin.expectOk(`${csrPath}/${name}/approval`, { method: 'PUT', body });
    }),
  );
}

export function readRequest(plane: Admin, name: string): Promise<CsrObject> {
  return plane.admin.expectOk<CsrObject>(`${csrPath}/${name}`);
}

export async function readRequests(plane: Admin): Promise<CsrObject[]> {
  return (await plane.admin.expectOk<{ items: CsrObject[] }>(csrPath)).items;
}

export function conditionOf({ status }: CsrObject, type: string) {
  return status.conditions?.find((condition) => condition.type === type);
}

/** PEM of `status.certificate`. */
export function certificatePemOf({ status }: CsrObject): string {
  return Buffer.from(status.certificate ?? '', 'base64').toString('utf8');
}

export function certificateDerOf(object: CsrObject): Buffer {
  return new X509Certificate(certificatePemOf(object)).raw;
}

/** When every one of them has a certificate or has failed. */
export async function settled(plane: Admin, names: readonly string[]): Promise<Map<string, CsrObject>> {
  const found = new Map<string, CsrObject>();
  await eventually(async () => {
    for (const object of await readRequests(plane)) {
      const over = object.status.certificate !== undefined || conditionOf(object, 'Failed') !== undefined;
      if (over && names.includes(object.metadata.name)) found.set(object.metadata.name, object);
    }
    return found.size === names.length;
  }, `${names.length} requests are answered`);
  return found;
}

/** Waits for something that must come true; how long is no part of what is tested. */
export async function eventually(
  condition: () => Promise<boolean> | boolean,
  what: string,
  seconds = 100,
): Promise<void> {
  const limit = performance.now() + seconds * 1_000;
  for (;;) {
    if (await condition()) return;
    if (performance.now() > limit) throw new Error(`not in ${seconds} seconds: ${what}`);
    await sleep(50);
  }
}
