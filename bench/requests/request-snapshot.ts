/**
 * Removes requests from the storage of an API server, and writes them into the storage of another one all at once.
 *
 * Approving a thousand requests keeps an API server and this machine busy for seconds, and would slow down a signer that is
 * measured meanwhile. So the requests are created and approved through the API of a control plane on which no contender
 * works, and the bytes that its API server stored are read from etcd. For a burst they are written into the etcd of a
 * contender's control plane, in a few transactions. Watchers there see a thousand approved requests appear within a moment.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ControlPlane } from '../../test/harness/kubernetes/control-plane.ts';

const prefix = '/registry/certificatesigningrequests/';
/**
 * The API server ends the watch of a client for which it has more than ten events waiting for too long, as happens on a
 * busy machine. All requests of a transaction have the same resourceVersion, so that a client that goes on from there
 * misses the rest of them. Small portions, the next written when the one before has appeared, keep all watches alive.
 */
const portion = 10;
/** For deletions, which no contender waits for. */
const deletedAtOnce = 50;
/** How long one portion may take to appear; it takes milliseconds. */
const limitMilliseconds = 30_000;

/** Requests as etcd had them. */
export interface Snapshot {
  readonly names: readonly string[];
  readonly entries: readonly KeyValue[];
}

interface KeyValue {
  readonly key: string;
  readonly value: string;
}

/** Deletes all requests from etcd and returns them. Watchers see them deleted. */
export async function removeAll(controlPlane: ControlPlane): Promise<Snapshot> {
  const entries: KeyValue[] = [];
  for (;;) {
    const { kvs = [] } = (await etcd(controlPlane, 'kv/range', { ...range, limit: String(deletedAtOnce) })) as {
      kvs?: readonly KeyValue[];
    };
    if (kvs.length === 0) break;
    entries.push(...kvs.map(({ key, value }) => ({ key, value })));
    const deletions = kvs.map(({ key }) => ({ requestDeleteRange: { key } }));
    await etcd(controlPlane, 'kv/txn', { success: deletions });
  }
  const names = entries.map(({ key }) => Buffer.from(key, 'base64').toString('utf8').slice(prefix.length));
  return { names, entries };
}

/**
 * The same requests with new UIDs. A signer would repeat its answer for a UID that it has issued for. In latin1 each
 * byte is one character; all UIDs are equally long, so every length in the stored protobuf stays right.
 */
export function withNewUids({ names, entries }: Snapshot): Snapshot {
  return {
    names,
    entries: entries.map(({ key, value }) => {
      const bytes = Buffer.from(value, 'base64').toString('latin1');
      const uid = uidPattern.exec(bytes)?.[0];
      if (uid === undefined) throw new Error('a stored request has no UID');
      return { key, value: Buffer.from(bytes.replaceAll(uid, randomUUID()), 'latin1').toString('base64') };
    }),
  };
}

/** The first UID in a stored object is the one in its metadata. */
const uidPattern = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/;

export function firstOf({ names, entries }: Snapshot, count: number): Snapshot {
  if (names.length < count) throw new Error(`a snapshot has ${names.length} requests and not ${count}`);
  return { names: names.slice(0, count), entries: entries.slice(0, count) };
}

/** Writes the requests as fast as the API server announces them. `added` counts the requests that a watch has seen appear. */
export async function restore(controlPlane: ControlPlane, snapshot: Snapshot, added: () => number): Promise<void> {
  let expected = added();
  for (let begin = 0; begin < snapshot.entries.length; begin += portion) {
    const entries = snapshot.entries.slice(begin, begin + portion);
    const success = entries.map(({ key, value }) => ({ requestPut: { key, value } }));
    await etcd(controlPlane, 'kv/txn', { success });
    expected += entries.length;
    const limit = performance.now() + limitMilliseconds;
    while (added() < expected) {
      if (performance.now() > limit) throw new Error(`${expected - added()} restored requests did not appear`);
      await sleep(1);
    }
  }
}

/** Writes the requests one by one at a steady rate. Returns the time of each write by performance.now(). */
export async function restoreSteadily(
  controlPlane: ControlPlane,
  { names, entries }: Snapshot,
  perSecond: number,
): Promise<ReadonlyMap<string, number>> {
  const restoredAt = new Map<string, number>();
  const puts: Promise<unknown>[] = [];
  const begin = performance.now();
  for (const [index, { key, value }] of entries.entries()) {
    await sleep(Math.max(0, begin + (index * 1_000) / perSecond - performance.now()));
    restoredAt.set(names[index]!, performance.now());
    const put = etcd(controlPlane, 'kv/put', { key, value });
    put.catch(() => {}); // reported below, when all have been sent
    puts.push(put);
  }
  await Promise.all(puts);
  return restoredAt;
}

const range = { key: base64(prefix), range_end: base64(prefix.replace(/\/$/, '0')) }; // '0' follows '/'

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

/** etcd's HTTP gateway. */
export async function etcd({ etcdUrl }: ControlPlane, path: string, body: object | string): Promise<unknown> {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const response = await fetch(`${etcdUrl}/v3/${path}`, { method: 'POST', body: text });
  if (!response.ok) throw new Error(`etcd ${path}: ${response.status} ${await response.text()}`);
  return response.json();
}
