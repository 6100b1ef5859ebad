/**
 * Approved requests taken out of the API server's storage and put back all at once.
 *
 * Approving a thousand requests keeps an API server and this machine busy for seconds; a signer that is measured
 * meanwhile is measured against the approver. So the requests are created and approved through the API first, the
 * bytes the API server stored are lifted out of etcd, and for the burst they are written back, in a few transactions.
 * To everybody who watches it is as if a thousand approved requests came into being within a moment.
 */
import type { ControlPlane } from '../test/harness/control-plane.ts';

const prefix = '/registry/certificatesigningrequests/';
/**
 * etcd takes 128 operations per transaction. The API server ends the watch of whoever cannot take what comes at once:
 * smaller portions keep all watches alive and cost a few milliseconds.
 */
const portion = 50;

/** Bodies of etcd transactions, ready to send. */
export type Shelf = readonly string[];

interface KeyValue {
  readonly key: string;
  readonly value: string;
}

/** Takes all requests off the API server. Watchers see them deleted. */
export async function shelve(controlPlane: ControlPlane): Promise<Shelf> {
  const bodies: string[] = [];
  for (;;) {
    const { kvs = [] } = (await etcd(controlPlane, 'kv/range', { ...range, limit: String(portion) })) as {
      kvs?: readonly KeyValue[];
    };
    const [first] = kvs;
    if (first === undefined) return bodies;
    const success = kvs.map(({ key, value }) => ({ requestPut: { key, value } }));
    bodies.push(JSON.stringify({ success }));
    const deletions = kvs.map(({ key }) => ({ requestDeleteRange: { key } }));
    await etcd(controlPlane, 'kv/txn', { success: deletions });
  }
}

/** Puts them back. Resolves when etcd has them all. */
export async function release(controlPlane: ControlPlane, shelf: Shelf): Promise<void> {
  for (const body of shelf) await etcd(controlPlane, 'kv/txn', body);
}

const range = { key: base64(prefix), range_end: base64(prefix.replace(/\/$/, '0')) }; // '0' follows '/'

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

/** etcd's HTTP gateway. */
async function etcd({ etcdUrl }: ControlPlane, path: string, body: object | string): Promise<unknown> {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const response = await fetch(`${etcdUrl}/v3/${path}`, { method: 'POST', body: text });
  if (!response.ok) throw new Error(`etcd ${path}: ${response.status} ${await response.text()}`);
  return response.json();
}
