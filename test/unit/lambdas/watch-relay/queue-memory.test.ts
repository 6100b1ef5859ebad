import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { createRequestQueue } from '../../../../lambdas/watch-relay/schedule/queue.ts';
import { createVirtualClock } from '../../../harness/determinism/virtual-time.ts';

/** Heap bytes after garbage collection. */
function collected(): number {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  collect();
  collect();
  return process.memoryUsage().heapUsed;
}

/** A new string, as JSON.parse makes them. */
function fresh(text: string): string {
  return JSON.parse(JSON.stringify(text)) as string;
}

const count = 20_000;

test.each([
  ['each of another requester', (i: number) => `system:node:node-${i}`, 800],
  ['all of one requester', () => 'system:bootstrap:abcdef', 500],
])('a waiting request takes a few hundred bytes: %s', (_, requester, bytes) => {
  const before = collected();
  const queue = createRequestQueue(createVirtualClock(), 24, () => {});
  for (let i = 0; i < count; i += 1) {
    const uid = fresh(`0b1c2d3e-4f50-4162-8394-${String(i).padStart(12, '0')}`);
    const key = { uid, name: fresh(`csr-${i}`), signerName: 'kubernetes.io/kube-apiserver-client-kubelet' };
    queue.add(key, { requester: fresh(requester(i)), priority: 'renewal', step: 'sign', createdAt: 0 });
  }
  const each = (collected() - before) / count;
  expect(queue.counts().renewal.ready).toBe(count);
  expect(each).toBeGreaterThan(200); // otherwise the measurement is wrong
  expect(each).toBeLessThan(bytes);
  queue.close();
  expect((collected() - before) / count).toBeLessThan(60);
});
