import { expect, test } from 'vitest';
import { createRequestQueue, backlogSize, sumOf } from '../../../../../lambdas/watch-relay/schedule/queue.ts';
import { endpointSteps } from '../../../../../lambdas/watch-relay/schedule/fair-queue.ts';
import type { Arrival } from '../../../../../lambdas/watch-relay/schedule/queue.ts';
import { createVirtualClock } from '../../../../harness/determinism/virtual-time.ts';

function setUp() {
  const clock = createVirtualClock();
  let readied = 0;
  const queue = createRequestQueue(clock, 1_000_000, () => void (readied += 1));
  const key = (uid: string) => ({ uid, name: `name-${uid}`, signerName: 's' });
  const add = (uid: string, arrival: Partial<Arrival> = {}) =>
    queue.add(key(uid), { requester: 'jane', priority: 'other', step: 'sign', createdAt: 0, ...arrival });
  const takeAll = () => {
    const uids: string[] = [];
    for (let taken = queue.take(); taken !== undefined; taken = queue.take()) uids.push(taken.key.uid);
    return uids;
  };
  return { clock, queue, key, add, takeAll, readied: () => readied };
}

test('keys come out once each, in the order they came in', () => {
  const { queue, add, takeAll, readied } = setUp();
  for (const uid of ['a', 'b', 'a', 'c', 'b']) add(uid);
  expect(readied()).toBe(3);
  expect(sumOf(queue.counts())).toEqual({ ready: 3, delayed: 0 });
  expect(takeAll()).toEqual(['a', 'b', 'c']);
});

test('thousands of keys keep their order', () => {
  const { queue, add, takeAll } = setUp();
  const uids = Array.from({ length: 10_000 }, (_, i) => String(i));
  for (const uid of uids) add(uid);
  for (const uid of uids.filter((_, i) => i % 3 === 0)) queue.forget(uid);
  expect(takeAll()).toEqual(uids.filter((_, i) => i % 3 !== 0));
  expect(sumOf(queue.counts())).toEqual({ ready: 0, delayed: 0 });
});

test('a key added while a worker has it comes back when the worker is done, not before', () => {
  const { queue, key, add, takeAll } = setUp();
  add('a');
  queue.take();
  add('a');
  expect(takeAll()).toEqual([]);
  queue.done(key('a'));
  expect(takeAll()).toEqual(['a']);
  queue.done(key('a'));
  expect(takeAll()).toEqual([]);
});

test('a delayed key comes back after its delay with its failures counted, and adding it again does not shorten the delay', async () => {
  const { clock, queue, key, add, takeAll } = setUp();
  add('a');
  queue.take();
  queue.retry(key('a'), 1_000);
  add('a');
  await clock.advance(999);
  expect(takeAll()).toEqual([]);
  expect(sumOf(queue.counts())).toEqual({ ready: 0, delayed: 1 });
  await clock.advance(1);
  expect(queue.take()).toMatchObject({ key: key('a'), failures: 1, step: 'sign' });
  queue.retry(key('a'), 10);
  await clock.advance(10);
  expect(queue.take()?.failures).toBe(2);
  queue.done(key('a'));
  add('a');
  expect(queue.take()?.failures).toBe(0);
});

test.each(['ready', 'delayed'])('a forgotten key that was %s never comes', async (state) => {
  const { clock, queue, key, add, takeAll } = setUp();
  add('a');
  if (state === 'delayed') {
    queue.take();
    queue.retry(key('a'), 10);
  }
  queue.forget('a');
  await clock.advance(100);
  expect(takeAll()).toEqual([]);
  expect(sumOf(queue.counts())).toEqual({ ready: 0, delayed: 0 });
});

test.each(['done', 'retry'] as const)('a key forgotten while a worker has it ends with %s', async (end) => {
  const { clock, queue, key, add, takeAll } = setUp();
  add('a');
  queue.take();
  queue.forget('a');
  queue.retry(key('b'), 5); // not in the queue: no effect
  if (end === 'done') queue.done(key('a'));
  else queue.retry(key('a'), 5);
  await clock.advance(100);
  expect(takeAll()).toEqual([]);
});

test('a key forgotten and added again while a worker has it never has two workers', () => {
  const { queue, key, add, takeAll } = setUp();
  add('a');
  queue.take();
  queue.forget('a');
  add('a');
  expect(takeAll()).toEqual([]);
  queue.done(key('a'));
  expect(takeAll()).toEqual(['a']);
});

test('a closed queue is empty, accepts no keys and leaves no timer', async () => {
  const { clock, queue, key, add, readied } = setUp();
  for (const uid of ['a', 'b']) add(uid);
  queue.take();
  queue.retry(key('a'), 10);
  queue.close();
  const before = readied();
  add('c');
  await clock.advance(100);
  expect(queue.take()).toBeUndefined();
  expect(readied()).toBe(before);
  expect(sumOf(queue.counts())).toEqual({ ready: 0, delayed: 0 });
});

test('another step to do ends the delay of a key', async () => {
  const { clock, queue, key, add, takeAll } = setUp();
  add('a', { step: 'approve' });
  expect(queue.take()).toMatchObject({ step: 'approve' });
  queue.retry(key('a'), 1_000_000);
  add('a', { step: 'approve' });
  expect(takeAll()).toEqual([]);
  add('a', { step: 'sign' });
  expect(queue.take()).toMatchObject({ key: key('a'), failures: 0, step: 'sign' });
  queue.done(key('a'));
  await clock.advance(2_000_000);
  expect(takeAll()).toEqual([]);
});

test.each(['retry', 'done'] as const)(
  'another step to do while a worker has the key takes effect when the worker is done (%s)',
  (end) => {
    const { queue, key, add } = setUp();
    add('a', { step: 'approve' });
    queue.take();
    add('a', { step: 'sign' });
    add('a', { step: 'sign' });
    if (end === 'retry') queue.retry(key('a'), 1_000_000);
    else queue.done(key('a'));
    expect(queue.take()).toMatchObject({ key: key('a'), failures: 0, step: 'sign' });
  },
);

test('a request approved by another approver while it waits comes before pending ones', () => {
  const { queue, add, takeAll } = setUp();
  for (const uid of ['a', 'b', 'c']) add(uid, { step: 'approve' });
  add('c', { step: 'sign' });
  expect(sumOf(queue.counts())).toEqual({ ready: 3, delayed: 0 });
  expect(takeAll()).toEqual(['c', 'a', 'b']);
});

test('approved requests that keep failing do not keep pending requests of the same requester from being decided', async () => {
  const { clock, queue } = setUp();
  const key = (uid: string, signerName: string) => ({ uid, name: uid, signerName });
  const arrival = { requester: 'jane', priority: 'other' } as const;
  for (let i = 0; i < 100; i += 1) queue.add(key(`a${i}`, 'a'), { ...arrival, step: 'sign', createdAt: 0 });
  for (let i = 0; i < 5; i += 1) queue.add(key(`b${i}`, 'b'), { ...arrival, step: 'approve', createdAt: 0 });
  const decided: string[] = [];
  // More come back within these 30 s than there are calls.
  for (let call = 0; call < 100; call += 1) {
    const taken = queue.take();
    if (taken?.step === 'approve') {
      decided.push(taken.key.uid);
      queue.done(taken.key);
    } else if (taken !== undefined) queue.retry(taken.key, 30_000);
    await clock.advance(400);
  }
  expect(decided).toEqual(['b0', 'b1', 'b2', 'b3', 'b4']);
});

test('a backlog of one requester is reported once, and again after it was empty', () => {
  const { queue, key, add, takeAll } = setUp();
  const come = (count: number, requester: string) =>
    Array.from({ length: count }, (_, i) => add(`${requester}${i}`, { requester })).filter(
      (added) => added === 'backlogged',
    );
  expect(come(backlogSize - 1, 'jane')).toEqual([]);
  expect(come(backlogSize - 1, 'joe')).toEqual([]);
  expect(come(backlogSize + 50, 'jane')).toEqual(['backlogged']); // the first of them were here already
  expect(queue.longest()).toBe(backlogSize + 50);
  for (const uid of takeAll()) queue.done(key(uid));
  expect(come(backlogSize, 'jane')).toEqual(['backlogged']);
});

test('a requester’s next request is ready when one in flight is done', () => {
  const clock = createVirtualClock();
  let readied = 0;
  const queue = createRequestQueue(clock, 1, () => void (readied += 1));
  const key = (uid: string) => ({ uid, name: uid, signerName: 's' });
  for (const uid of ['a', 'b'])
    queue.add(key(uid), { requester: 'jane', priority: 'other', step: 'sign', createdAt: 0 });
  expect(queue.take()?.key.uid).toBe('a');
  expect(queue.take()).toBeUndefined();
  const before = readied;
  queue.retry(key('a'), 1_000);
  expect(readied).toBeGreaterThan(before);
  expect(queue.take()?.key.uid).toBe('b');
});

test('which steps have a ready request, and how many requests wait', async () => {
  const { clock, queue, key, add } = setUp();
  const waiting = () => [
    ...endpointSteps.filter((step) => queue.hasReady(step)),
    sumOf(queue.counts()).ready,
    sumOf(queue.counts()).delayed,
  ];
  add('a', { step: 'attest' });
  add('b', { step: 'attest' });
  add('c', { step: 'approve' });
  expect(waiting()).toEqual(['attest', 'approve', 3, 0]);
  expect(queue.take(['sign'])).toBeUndefined();
  expect(queue.take(['attest'])).toMatchObject({ key: key('a'), step: 'attest' });
  expect(waiting()).toEqual(['attest', 'approve', 2, 0]);
  queue.retry(key('a'), 1_000);
  expect(waiting()).toEqual(['attest', 'approve', 2, 1]);
  add('a', { step: 'sign' }); // approved by another approver, so it has another step to do
  add('b', { step: 'sign' });
  expect(waiting()).toEqual(['sign', 'approve', 3, 0]);
  await clock.advance(2_000);
  queue.forget('b');
  expect(waiting()).toEqual(['sign', 'approve', 2, 0]);
  queue.close();
  expect(waiting()).toEqual([0, 0]);
});

test('the age of the oldest request by priority class, in flight or waiting, and 0 once all are answered', () => {
  const { queue, add, key } = setUp();
  expect(queue.oldestSeconds(60_000)).toEqual({ renewal: 0, other: 0 });
  add('a', { priority: 'renewal', requester: 'n1', createdAt: 10_000 });
  add('b', { priority: 'renewal', requester: 'n2', createdAt: 20_000 });
  add('c', { createdAt: 70_000 });
  expect(queue.oldestSeconds(60_000)).toEqual({ renewal: 50, other: 0 });
  expect(queue.take()?.key.uid).toBe('a');
  expect(queue.oldestSeconds(60_000).renewal).toBe(50);
  queue.retry(key('a'), 1_000);
  expect(queue.oldestSeconds(60_000).renewal).toBe(50);
  queue.forget('a');
  expect(queue.oldestSeconds(60_000).renewal).toBe(40);
  queue.forget('b');
  expect(queue.oldestSeconds(60_000).renewal).toBe(0);
});
