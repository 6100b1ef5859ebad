/**
 * Brings requests before the real kube-controller-manager: created and approved over the API, or, where the API no
 * longer accepts such an object, written to etcd as an older cluster left it there.
 */
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { creatableSigners } from '../../../corpus/requests/cases.ts';
import type { Fate } from '../../../corpus/requests/cases.ts';
import type { ReferenceAnswer } from '../../../corpus/reference.ts';
import { leafOf } from '../../../corpus/ask.ts';
import type { CorpusAuthority } from '../../../corpus/authority.ts';
import type { ControlPlane } from '../../../harness/kubernetes/control-plane.ts';
import { startKubeControllerManager } from '../../../harness/kubernetes/controller-manager.ts';
import type { RunningProcess } from '../../../harness/processes/processes.ts';
import { makeRequest } from '../../../harness/x509/requests.ts';

export interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
}

/** As the API server serves it; whatever else it holds is passed on. */
export interface ApiObject {
  readonly metadata: { readonly name: string; readonly uid: string; readonly resourceVersion: string };
  readonly spec: { readonly signerName: string; readonly request: string; readonly usages?: readonly string[] };
  readonly status: { readonly certificate?: string; readonly conditions?: readonly Condition[] };
}

export interface NewRequest {
  readonly name: string;
  readonly signerName: string;
  readonly request: Buffer;
  readonly usages: readonly string[];
  readonly expirationSeconds?: number;
}

/** An object as it lay in etcd: of either version, with whatever spec and conditions. */
export interface StoredRequest {
  readonly name: string;
  readonly apiVersion?: 'certificates.k8s.io/v1' | 'certificates.k8s.io/v1beta1';
  readonly spec: Readonly<Record<string, unknown>>;
  readonly conditions?: readonly Condition[];
}

const typeOfItems = { apiVersion: 'certificates.k8s.io/v1', kind: 'CertificateSigningRequest' };
const path = '/apis/certificates.k8s.io/v1/certificatesigningrequests';
const parallel = 24;

/** Creates all and does to each what its fate says. The order in which they reach the server is left to chance. */
export async function createRequests(
  plane: ControlPlane,
  requests: readonly (NewRequest & { readonly fate: Fate })[],
): Promise<void> {
  await inParallel(requests, async (request) => {
    const created = await plane.admin.expectOk<ApiObject>(path, { method: 'POST', body: newObject(request) });
    const settled = { status: 'True', reason: 'Test', message: 'set by the test' };
    if (request.fate === 'pending') return;
    // Failed first: a moment of being approved and not failed would be enough to be signed.
    const before =
      request.fate === 'failed' ? await put(plane, created, 'status', [{ type: 'Failed', ...settled }]) : created;
    await put(plane, before, 'approval', [
      ...(before.status.conditions ?? []),
      { type: request.fate === 'denied' ? 'Denied' : 'Approved', ...settled },
    ]);
  });
}

/** What the API server says to the attempt. */
export async function tryToCreate(plane: ControlPlane, request: NewRequest): Promise<{ status: number; text: string }> {
  return plane.admin.request(`${path}?dryRun=All`, { method: 'POST', body: newObject(request) });
}

function newObject({ name, signerName, request, usages, expirationSeconds }: NewRequest): object {
  return {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name },
    spec: { signerName, request: request.toString('base64'), usages, expirationSeconds },
  };
}

function put(
  plane: ControlPlane,
  object: ApiObject,
  part: 'approval' | 'status',
  conditions: readonly Condition[],
): Promise<ApiObject> {
  const body = { ...object, status: { ...object.status, conditions } };
  return plane.admin.expectOk<ApiObject>(`${path}/${object.metadata.name}/${part}`, { method: 'PUT', body });
}

/** Through etcd's HTTP gateway. The API server reads JSON as well as what it writes itself. */
export async function storeRequests(plane: ControlPlane, stored: readonly StoredRequest[]): Promise<void> {
  const base64 = (text: string): string => Buffer.from(text).toString('base64');
  const time = '2025-01-01T00:00:00Z';
  await inParallel(stored, async ({ name, apiVersion = 'certificates.k8s.io/v1', spec, conditions = [approved] }) => {
    const object = {
      apiVersion,
      kind: 'CertificateSigningRequest',
      metadata: { name, uid: randomUUID(), creationTimestamp: time },
      spec: { username: 'test-admin', groups: ['system:masters', 'system:authenticated'], ...spec },
      status: {
        // With both times set, the API server sees no change of a condition where the signer makes none.
        conditions: conditions.map((condition) => ({ ...condition, lastUpdateTime: time, lastTransitionTime: time })),
      },
    };
    const response = await fetch(`${plane.etcdUrl}/v3/kv/put`, {
      method: 'POST',
      body: JSON.stringify({
        key: base64(`/registry/certificatesigningrequests/${name}`),
        value: base64(JSON.stringify(object)),
      }),
    });
    if (!response.ok) throw new Error(`etcd: ${response.status} ${await response.text()}`);
  });
}

const approved: Condition = { type: 'Approved', status: 'True', reason: 'Test', message: 'stored by the test' };

/** Every request by name. List items come without apiVersion and kind, which the webhook protocol sends. */
async function readRequests(plane: ControlPlane): Promise<Map<string, ApiObject>> {
  const objects = new Map<string, ApiObject>();
  let next: string | undefined;
  do {
    const query = `limit=500${next === undefined ? '' : `&continue=${encodeURIComponent(next)}`}`;
    const page = await plane.admin.expectOk<{ metadata: { continue?: string }; items: ApiObject[] }>(
      `${path}?${query}`,
    );
    for (const item of page.items) objects.set(item.metadata.name, { ...typeOfItems, ...item });
    next = page.metadata.continue;
  } while (next !== undefined);
  return objects;
}

/** One more for each signer, which it will certainly sign. */
export function lastRequests(prefix: string): NewRequest[] {
  const node = { subject: { O: 'system:nodes', CN: 'system:node:last' } };
  const [client, kubelet, serving] = creatableSigners;
  return [
    { signerName: client, ...makeRequest(node), usages: ['client auth'] },
    { signerName: kubelet, ...makeRequest(node), usages: ['digital signature', 'client auth'] },
    {
      signerName: serving,
      ...makeRequest({ ...node, sans: { dns: ['last'] } }),
      usages: ['digital signature', 'server auth'],
    },
  ].map(({ signerName, bytes, usages }, index) => ({
    name: `${prefix}-last-${index}`,
    signerName,
    usages,
    request: bytes,
  }));
}

/** Only decisions count: conditions that were there before the reference looked are not its answer. */
function referenceAnswer(before: ApiObject, after: ApiObject): ReferenceAnswer {
  const { certificate, conditions = [] } = after.status;
  if (certificate !== undefined)
    return { kind: 'issued', certificate: leafOf(Buffer.from(certificate, 'base64').toString('latin1')) };
  const failed = conditions.find(({ type }) => type === 'Failed');
  const failedBefore = before.status.conditions?.some(({ type }) => type === 'Failed') ?? false;
  if (failed === undefined || failedBefore) return { kind: 'left alone' };
  return { kind: 'refused', reason: failed.reason ?? '', message: failed.message ?? '' };
}

export interface ReferenceRun {
  /** One request as it was before the reference looked at it, as it is now, and what the reference so answered. */
  of(name: string): { before: ApiObject; after: ApiObject; answer: ReferenceAnswer };
  /** Why the reference tries it again. */
  logOf(name: string): string;
}

/**
 * Lets the reference decide: `decided` must all end issued or refused, `retried` must show up in its log at least
 * twice. Then one more request per signer goes through, behind which nothing older is left in its queues.
 */
export async function runReference(
  plane: ControlPlane,
  authority: CorpusAuthority,
  maxTtlSeconds: number,
  expected: { readonly decided: readonly string[]; readonly retried?: readonly string[]; readonly last: NewRequest[] },
): Promise<ReferenceRun> {
  const before = await readRequests(plane);
  const reference = await startKubeControllerManager({
    controlPlane: plane,
    controllers: ['csrsigning'],
    signingCertPem: authority.certificatePem,
    signingKeyPem: authority.keyPem,
    duration: `${maxTtlSeconds}s`,
    qps: 2_000,
    burst: 4_000,
  });
  try {
    await untilDecided(plane, reference, before, expected.decided);
    const log = await untilRetried(reference, expected.retried ?? []);
    await createRequests(
      plane,
      expected.last.map((request) => ({ ...request, fate: 'approved' as const })),
    );
    const last = expected.last.map(({ name }) => name);
    const after = await untilDecided(plane, reference, before, last);
    return {
      of(name) {
        const [was, is] = [before.get(name), after.get(name)];
        if (was === undefined || is === undefined) throw new Error(`there is no request ${name}`);
        return { before: was, after: is, answer: referenceAnswer(was, is) };
      },
      logOf: (name) =>
        log
          .split('\n')
          .filter((line) => line.includes(`Sync ${name} failed with`))
          .join('\n')
          .replaceAll('\\"', '"'),
    };
  } finally {
    await reference.stop();
  }
}

const patienceMilliseconds = 100_000;

async function untilDecided(
  plane: ControlPlane,
  reference: RunningProcess,
  before: ReadonlyMap<string, ApiObject>,
  names: readonly string[],
): Promise<Map<string, ApiObject>> {
  const deadline = performance.now() + patienceMilliseconds;
  for (;;) {
    const now = await readRequests(plane);
    const open = names.filter((name) => {
      const object = now.get(name);
      return object === undefined || referenceAnswer(before.get(name) ?? object, object).kind === 'left alone';
    });
    if (open.length === 0) return now;
    if (performance.now() > deadline || reference.ended() !== undefined)
      throw new Error(`no decision on ${open.slice(0, 10).join(', ')} (${open.length})\n${reference.logTail(40)}`);
    await sleep(200);
  }
}

/** The first line may be an attempt that met a half-written object; the second is a habit. */
async function untilRetried(reference: RunningProcess, names: readonly string[]): Promise<string> {
  const deadline = performance.now() + patienceMilliseconds;
  for (;;) {
    const log = readFileSync(reference.logPath, 'utf8');
    const open = names.filter((name) => log.split(`Sync ${name} failed with`).length < 3);
    if (open.length === 0) return log;
    if (performance.now() > deadline) throw new Error(`not retried: ${open.join(', ')}\n${reference.logTail(40)}`);
    await sleep(200);
  }
}

async function inParallel<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const rest = items.values();
  await Promise.all(
    Array.from({ length: parallel }, async () => {
      for (const item of rest) await work(item);
    }),
  );
}
