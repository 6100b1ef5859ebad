/**
 * Approved requests taken out of the API server's storage and put back all at once.
 *
 * Approving a thousand requests keeps an API server and this machine busy for seconds; a signer that is measured
 * meanwhile is measured against the approver. So the requests are created and approved through the API first, the
 * bytes the API server stored are lifted out of etcd, and for the burst they are written back, in a few transactions.
 * To everybody who watches it is as if a thousand approved requests came into being within a moment.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ControlPlane } from '../test/harness/control-plane.ts';

const prefix = '/registry/certificatesigningrequests/';
/**
 * The API server ends the watch of whoever cannot take at once what comes; how each contender recovers from that is not
 * the question here. Portions, each waited for, keep all watches alive and cost a tenth of a second in all.
 */
const portion = 50;
/** For one portion to come up; it takes milliseconds. */
const limitMilliseconds = 30_000;

/** Requests as etcd had them. They come up again as often as they are released, always with the UIDs they have. */
export interface Shelf {
  readonly names: readonly string[];
  readonly entries: readonly KeyValue[];
}

interface KeyValue {
  readonly key: string;
  readonly value: string;
}

/** Takes all requests off the API server. Watchers see them deleted. */
export async function shelve(controlPlane: ControlPlane): Promise<Shelf> {
  const entries: KeyValue[] = [];
  for (;;) {
    const { kvs = [] } = (await etcd(controlPlane, 'kv/range', { ...range, limit: String(portion) })) as {
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

/** Puts them back, as fast as the API server hands them out. `added` counts those that came up, for whoever watches. */
export async function release(controlPlane: ControlPlane, shelf: Shelf, added: () => number): Promise<void> {
  let expected = added();
  for (let begin = 0; begin < shelf.entries.length; begin += portion) {
    const entries = shelf.entries.slice(begin, begin + portion);
    const success = entries.map(({ key, value }) => ({ requestPut: { key, value } }));
    await etcd(controlPlane, 'kv/txn', { success });
    expected += entries.length;
    const limit = performance.now() + limitMilliseconds;
    while (added() < expected) {
      if (performance.now() > limit) throw new Error(`${expected - added()} released requests did not come up`);
      await sleep(1);
    }
  }
}

/** Puts them back one by one, so many in a second, whatever becomes of them. When each was, by performance.now(). */
export async function releaseSteadily(
  controlPlane: ControlPlane,
  { names, entries }: Shelf,
  perSecond: number,
): Promise<ReadonlyMap<string, number>> {
  const releasedAt = new Map<string, number>();
  const puts: Promise<unknown>[] = [];
  const begin = performance.now();
  for (const [index, { key, value }] of entries.entries()) {
    await sleep(Math.max(0, begin + (index * 1_000) / perSecond - performance.now()));
    releasedAt.set(names[index]!, performance.now());
    const put = etcd(controlPlane, 'kv/put', { key, value });
    put.catch(() => {}); // told below, when all have been sent
    puts.push(put);
  }
  await Promise.all(puts);
  return releasedAt;
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
