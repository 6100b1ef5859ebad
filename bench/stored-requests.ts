/**
 * As many requests in an API server's storage as a cluster gathers, in seconds.
 *
 * Creating 50 000 through the API takes longer than everything that is measured on them. So one of each kind goes the
 * whole way through the API, and the bytes that the API server stored for it are written to etcd again and again, each
 * copy with a name, a user and a UID of its own. These are as long as the originals, so that every length in the stored
 * protobuf stays right. What cannot be exchanged without its signature is the subject inside the PKCS #10: all copies
 * ask for the first one's name, which nobody reads here.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ControlPlane } from '../test/harness/control-plane.ts';
import { createTestAuthority } from '../test/harness/test-certificates.ts';
import { requestsPath } from './observer.ts';
import { kubeletRequest, requestObject } from './requests.ts';
import { etcd } from './shelf.ts';

/**
 * `issued`: answered long ago, as nearly all that a cluster has. `approved`: still to be answered, each of a node of its
 * own, as after an outage. `hostile`: pending, with a megabyte that says nothing, each.
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
/** For the API server to have read what is new in etcd. */
const limitMilliseconds = 30_000;

interface Stored {
  readonly metadata: { readonly name: string; readonly uid: string; readonly resourceVersion: string };
  readonly spec: { readonly request: string };
  readonly status?: object;
}

/** Adds so many to what is there, and checks that the API server has them. */
export async function storeRequests(controlPlane: ControlPlane, kind: StoredKind, count: number): Promise<void> {
  const name = nameOf(kind, 0);
  const original = await create(controlPlane, kind, name);
  const copies = Array.from({ length: count - 1 }, (_, index) => nameOf(kind, index + 1));
  await storeCopies(controlPlane, original, copies, portion[kind]);
}

/** Copies one request under names that are as long as its own and stand nowhere else in it; `portion` at once. */
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
  // As latin1 every byte is one character, and stays it.
  const value = decoded(kvs[0].value);
  for (let begin = 0; begin < copies.length; begin += portion) {
    const success = copies.slice(begin, begin + portion).map((copy) => {
      const copied = value.replaceAll(name, copy).replaceAll(uid, randomUUID());
      return { requestPut: { key: encoded(key.replace(name, copy)), value: encoded(copied) } };
    });
    await etcd(controlPlane, 'kv/txn', { success });
  }
  await presentWhen(controlPlane, before + copies.length);
}

/** All that are there, in a moment. */
export async function removeRequests(controlPlane: ControlPlane): Promise<void> {
  const end = prefix.replace(/\/$/, '0'); // '0' follows '/'
  await etcd(controlPlane, 'kv/deleterange', { key: encoded(prefix), range_end: encoded(end) });
  await presentWhen(controlPlane, 0);
}

/** Waits until the API server has read what is new in etcd. */
async function presentWhen(controlPlane: ControlPlane, expected: number): Promise<void> {
  const limit = performance.now() + limitMilliseconds;
  for (;;) {
    const present = await presentRequests(controlPlane);
    if (present === expected) return;
    if (performance.now() > limit) throw new Error(`the API server has ${present} requests rather than ${expected}`);
    await sleep(100);
  }
}

/** How many the API server has, by its own count, which may be a moment behind. */
export async function presentRequests({ admin }: ControlPlane): Promise<number> {
  const list = await admin.expectOk<{
    items: readonly object[];
    metadata: { remainingItemCount?: number };
  }>(`${requestsPath}?limit=1`);
  return list.items.length + (list.metadata.remainingItemCount ?? 0);
}

/** Always as long, and nowhere else in the object. */
function nameOf(kind: StoredKind, index: number): string {
  return `stored-${kind}-${String(index).padStart(6, '0')}`;
}

/** By the node itself, as its renewal; decided and answered by whoever does that in a cluster. */
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
    // Any certificate will do for the API server; this one is about as long as a kubelet's.
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
