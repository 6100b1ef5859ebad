/**
 * Writes tens of thousands of requests, as a large cluster has, into an API server's storage within seconds.
 *
 * Creating 50 000 requests through the API takes longer than the measurements on them. So one request of each kind is
 * created through the API, and the bytes that the API server stored for it are written to etcd again and again, each copy
 * with its own name, user and UID. These are as long as the originals, so that every length in the stored protobuf stays
 * right. The subject inside the PKCS #10 stays the original's, because its signature covers it; nothing that is measured
 * reads it.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ControlPlane } from '../../test/harness/kubernetes/control-plane.ts';
import { createTestAuthority } from '../../test/harness/x509/test-certificates.ts';
import { requestsPath } from './observer.ts';
import { kubeletRequest, requestObject } from './requests.ts';
import { etcd } from './request-snapshot.ts';

/**
 * `issued`: signed long ago, as nearly all requests in a cluster. `approved`: waiting for their certificates, each of
 * another node, as after an outage. `hostile`: pending, each with a megabyte of padding.
 */
export type StoredKind = 'issued' | 'approved' | 'hostile';

const prefix = '/registry/certificatesigningrequests/';
/** etcd takes 128 operations in a transaction, and 1.5 MiB. */
const portion: Readonly<Record<StoredKind, number>> = { issued: 100, approved: 100, hostile: 1 };
const hostileBytes = 1_000_000;
const approval = {
  type: 'Approved',
  status: 'True',
  reason: 'AutoApproved',
  message: 'Auto approving self kubelet client certificate after SubjectAccessReview.',
};
/** How long the API server may take to read what is new in etcd. */
const limitMilliseconds = 30_000;

interface Stored {
  readonly metadata: { readonly name: string; readonly uid: string; readonly resourceVersion: string };
  readonly spec: { readonly request: string };
  readonly status?: object;
}

/** Adds `count` requests, and waits until the API server has them. */
export async function storeRequests(controlPlane: ControlPlane, kind: StoredKind, count: number): Promise<void> {
  const name = nameOf(kind, 0);
  const original = await create(controlPlane, kind, name);
  const copies = Array.from({ length: count - 1 }, (_, index) => nameOf(kind, index + 1));
  await storeCopies(controlPlane, original, copies, portion[kind]);
}

/** Copies one request under names that are as long as its own, in transactions of `portion`. The name must not occur elsewhere in it. */
export async function storeCopies(
  controlPlane: ControlPlane,
  { metadata: { name, uid } }: Pick<Stored, 'metadata'>,
  copies: readonly string[],
  portion: number,
): Promise<void> {
  const before = await presentRequests(controlPlane);
  const key = `${prefix}${name}`;
  const { kvs } = (await etcd(controlPlane, 'kv/range', { key: encoded(key) })) as {
    kvs?: readonly { value: string }[];
  };
  if (kvs?.[0] === undefined) throw new Error(`${name} is not in etcd`);
  // In latin1 each byte is one character.
  const value = decoded(kvs[0].value);
  for (let begin = 0; begin < copies.length; begin += portion) {
    const success = copies.slice(begin, begin + portion).map((copy) => {
      const copied = value.replaceAll(name, copy).replaceAll(uid, randomUUID());
      return { requestPut: { key: encoded(key.replace(name, copy)), value: encoded(copied) } };
    });
    await etcd(controlPlane, 'kv/txn', { success });
  }
  await waitForCount(controlPlane, before + copies.length);
}

/** Removes all requests at once. */
export async function removeRequests(controlPlane: ControlPlane): Promise<void> {
  const end = prefix.replace(/\/$/, '0'); // '0' follows '/'
  await etcd(controlPlane, 'kv/deleterange', { key: encoded(prefix), range_end: encoded(end) });
  await waitForCount(controlPlane, 0);
}

/** Waits until the API server has read what is new in etcd. */
async function waitForCount(controlPlane: ControlPlane, expected: number): Promise<void> {
  const limit = performance.now() + limitMilliseconds;
  for (;;) {
    const present = await presentRequests(controlPlane);
    if (present === expected) return;
    if (performance.now() > limit) throw new Error(`the API server has ${present} requests rather than ${expected}`);
    await sleep(100);
  }
}

/** How many requests the API server has by its own count, which may lag behind etcd. */
async function presentRequests({ admin }: ControlPlane): Promise<number> {
  const list = await admin.expectOk<{
    items: readonly object[];
    metadata: { remainingItemCount?: number };
  }>(`${requestsPath}?limit=1`);
  return list.items.length + (list.metadata.remainingItemCount ?? 0);
}

/** All names have the same length, and occur nowhere else in the object. */
function nameOf(kind: StoredKind, index: number): string {
  return `stored-${kind}-${String(index).padStart(6, '0')}`;
}

/** The node creates the request, as for a renewal; the admin approves it and writes its certificate. */
async function create(controlPlane: ControlPlane, kind: StoredKind, name: string): Promise<Stored> {
  const { admin } = controlPlane;
  const path = `${requestsPath}/${name}`;
  const node = await controlPlane.client({ user: `system:node:${name}`, groups: ['system:nodes'] });
  try {
    const plain = requestObject(name, kubeletRequest(name, 0)) as { spec: object };
    const padding = Buffer.alloc(hostileBytes, '\n');
    const request = Buffer.concat([kubeletRequest(name, 0), padding]).toString('base64');
    const body = kind === 'hostile' ? { ...plain, spec: { ...plain.spec, request } } : plain;
    const pending = await node.expectOk<Stored>(requestsPath, { method: 'POST', body });
    if (kind === 'hostile') return pending;
    const approved = await admin.expectOk<Stored>(`${path}/approval`, {
      method: 'PUT',
      body: { ...pending, status: { conditions: [approval] } },
    });
    if (kind === 'approved') return approved;
    // The API server accepts any certificate; this one is about as long as a kubelet's.
    const authority = await createTestAuthority('bench stored requests');
    const subject = [{ O: ['system:nodes'] }, { CN: [`system:node:${name}`] }];
    const { certificatePem } = await authority.issue({ subject });
    const certificate = Buffer.from(certificatePem).toString('base64');
    return await admin.expectOk<Stored>(`${path}/status`, {
      method: 'PUT',
      body: { ...approved, status: { ...approved.status, certificate } },
    });
  } finally {
    node.close();
  }
}

function decoded(base64: string): string {
  return Buffer.from(base64, 'base64').toString('latin1');
}

function encoded(latin1: string): string {
  return Buffer.from(latin1, 'latin1').toString('base64');
}
