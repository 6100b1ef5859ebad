import { expect, test } from 'vitest';
import { fullJitter } from '../../../../../lambdas/watch-relay/runtime/clock.ts';
import { createConcurrencyLimiter } from '../../../../../lambdas/watch-relay/schedule/concurrency-limiter.ts';
import type { ConcurrencyLimiter } from '../../../../../lambdas/watch-relay/schedule/concurrency-limiter.ts';
import { createObjectCache } from '../../../../../lambdas/watch-relay/objects/object-cache.ts';
import { createVirtualClock } from '../../../../harness/determinism/virtual-time.ts';
import type { VirtualClock } from '../../../../harness/determinism/virtual-time.ts';
import { mulberry32 } from '../../../../harness/determinism/mulberry32.ts';

function setUp(maximum = 16) {
  const clock = createVirtualClock();
  let admitted = 0;
  const limiter = createConcurrencyLimiter(
    maximum,
    clock,
    () => 0.5,
    () => void (admitted += 1),
  );
  return { clock, limiter, admitted: () => admitted };
}

/** The limit has reached its maximum. */
function setUpOpen(maximum = 16) {
  const world = setUp(maximum);
  while (world.limiter.limit() < maximum) world.limiter.onSuccess();
  return world;
}

test('slow start: slowly from one to two, then doubled with each round; never above the maximum', () => {
  const { limiter } = setUp(16);
  expect(limiter.limit()).toBe(1);
  const successes: number[] = [];
  for (let count = 1; limiter.limit() < 16; count += 1) {
    const before = limiter.limit();
    limiter.onSuccess();
    if (limiter.limit() > before) successes.push(count);
  }
  expect(successes.slice(0, 3)).toEqual([6, 7, 8]);
  expect(successes).toHaveLength(15);
  for (let i = 0; i < 100; i += 1) limiter.onSuccess();
  expect(limiter.limit()).toBe(16);
  expect(limiter.admits(15)).toBe(true);
  expect(limiter.admits(16)).toBe(false);
});

test('a maximum of one is one', () => {
  const { limiter } = setUp(1);
  for (let i = 0; i < 100; i += 1) limiter.onSuccess();
  expect(limiter.limit()).toBe(1);
  expect(limiter.admits(0)).toBe(true);
});

test('one overload that throttles many calls halves the limit once; the next one halves it again', async () => {
  const { clock, limiter } = setUpOpen();
  const begun = clock.monotonic();
  await clock.advance(10);
  for (let i = 0; i < 16; i += 1) limiter.onThrottled(begun);
  expect(limiter.limit()).toBe(8);
  const later = clock.monotonic();
  await clock.advance(10);
  for (let i = 0; i < 8; i += 1) limiter.onThrottled(later);
  expect(limiter.limit()).toBe(4);
});

test('a round of successes adds one', async () => {
  const { clock, limiter } = setUpOpen();
  limiter.onThrottled(clock.monotonic());
  expect(limiter.limit()).toBe(8);
  for (let i = 0; i < 9; i += 1) limiter.onSuccess();
  expect(limiter.limit()).toBe(9);
  for (let i = 0; i < 8 * 16; i += 1) limiter.onSuccess();
  expect(limiter.limit()).toBe(16);
});

async function pauseAfter(limiter: ConcurrencyLimiter, clock: VirtualClock, admitted: () => number): Promise<number> {
  limiter.onThrottled(clock.monotonic());
  expect(limiter.admits(0)).toBe(false);
  const [from, before] = [clock.monotonic(), admitted()];
  await clock.until(() => admitted() > before);
  expect(limiter.admits(0)).toBe(true);
  return clock.monotonic() - from;
}

test('throttled at one call at a time: a random pause each time, then growth one by one', async () => {
  const { clock, limiter, admitted } = setUp(4);
  for (let i = 0; i < 5; i += 1) expect(await pauseAfter(limiter, clock, admitted)).toBe(1_250);
  for (let i = 0; i < 20; i += 1) limiter.onSuccess();
  expect(limiter.limit()).toBe(4);
});

test('failures between successes neither lower the limit nor cause a pause, however many there are', async () => {
  const { clock, limiter } = setUpOpen(16);
  for (let i = 0; i < 100; i += 1) {
    await clock.advance(100);
    for (let failures = 0; failures < 16; failures += 1) limiter.onFailure(clock.monotonic(), `node-${failures}`);
    expect(limiter.limit()).toBe(16);
    expect(limiter.admits(15)).toBe(true);
    limiter.onSuccess();
  }
});

test('as many calls fail as are in flight: the limit falls, then it pauses; slow start afterwards', async () => {
  const { clock, limiter, admitted } = setUpOpen(4);
  for (let failures = 0; failures < 4; failures += 1) limiter.onFailure(clock.monotonic(), `node-${failures}`);
  expect(limiter.limit()).toBe(4);
  await clock.advance(10);
  limiter.onFailure(clock.monotonic(), 'node-0');
  expect(limiter.limit()).toBe(2);
  limiter.onFailure(clock.monotonic(), 'node-0');
  expect(limiter.limit()).toBe(1);
  const pauses: number[] = [];
  for (let i = 0; i < 4; i += 1) {
    limiter.onFailure(clock.monotonic(), 'node-0');
    const [from, before] = [clock.monotonic(), admitted()];
    await clock.until(() => admitted() > before);
    pauses.push(clock.monotonic() - from);
  }
  expect(pauses).toEqual([1_250, 1_250, 1_250, 1_250]);
  for (let i = 0; i < 12; i += 1) limiter.onSuccess();
  expect(limiter.limit()).toBe(4);
});

test('finding 15: failures of one requester do not lower the limit, however many there are; a second requester’s failure does', async () => {
  const { clock, limiter } = setUpOpen(8);
  for (let failures = 0; failures < 200; failures += 1) {
    await clock.advance(10);
    limiter.onFailure(clock.monotonic(), 'system:bootstrap:abcdef');
  }
  expect(limiter.limit()).toBe(8);
  expect(limiter.admits(7)).toBe(true);
  limiter.onFailure(clock.monotonic(), 'system:node:a');
  expect(limiter.limit()).toBe(4);
  // A success starts the count of failing requesters anew.
  while (limiter.limit() < 8) limiter.onSuccess();
  for (let failures = 0; failures < 200; failures += 1) limiter.onFailure(clock.monotonic(), 'system:bootstrap:abcdef');
  expect(limiter.limit()).toBe(8);
});

test('once closed it admits nothing and leaves no timer', async () => {
  for (const waits of ['pause', 'patience']) {
    const { clock, limiter, admitted } = setUp(4);
    if (waits === 'pause') limiter.onThrottled(clock.monotonic());
    else expect([limiter.admits(0), limiter.admits(1)]).toEqual([true, false]);
    const before = admitted();
    limiter.close();
    await clock.advance(60_000);
    expect(admitted()).toBe(before);
    expect(limiter.admits(0)).toBe(false);
  }
});

test('after a throttled call at limit one the second call is tried only after six successes', async () => {
  const { clock, limiter } = setUp(16);
  for (let i = 0; i < 3; i += 1) limiter.onSuccess();
  limiter.onThrottled(clock.monotonic());
  for (let i = 0; i < 4; i += 1) limiter.onSuccess();
  expect(limiter.limit()).toBe(1);
  limiter.onSuccess();
  limiter.onSuccess();
  expect(limiter.limit()).toBe(2);
});

test('calls that hang do not hold up the others: one more call for each second without an answer', async () => {
  const { clock, limiter, admitted } = setUp(4);
  expect(limiter.admits(0)).toBe(true);
  for (const [inFlight, second] of [
    [1, 1],
    [2, 2],
    [3, 3],
  ] as const) {
    expect(limiter.admits(inFlight)).toBe(false);
    const before = admitted();
    await clock.until(() => admitted() > before);
    expect(clock.monotonic()).toBe(second * 1_000);
    expect(limiter.admits(inFlight)).toBe(true);
  }
  // Four calls hang now, which is the maximum.
  await clock.advance(60_000);
  expect(limiter.admits(4)).toBe(false);
  // Any answer restarts the wait; the calls that hang still count.
  limiter.onThrottled(clock.monotonic());
  await clock.advance(5_000);
  limiter.onSuccess();
  expect(limiter.admits(3)).toBe(false);
  await clock.advance(3_000);
  expect(limiter.admits(3)).toBe(true);
});

test('after a long idle time it starts over', async () => {
  const { clock, limiter } = setUpOpen();
  await clock.advance(9_000);
  expect(limiter.admits(0)).toBe(true);
  expect(limiter.limit()).toBe(16);
  await clock.advance(11_000);
  // A call in flight: not idle.
  expect(limiter.admits(1)).toBe(true);
  expect(limiter.limit()).toBe(16);
  await clock.advance(11_000);
  expect(limiter.admits(0)).toBe(true);
  expect(limiter.limit()).toBe(1);
});

test('full jitter covers the whole of a doubling, capped range', () => {
  const backoff = { baseMilliseconds: 200, capMilliseconds: 30_000 };
  const random = mulberry32(1);
  for (const [failures, most] of [
    [0, 200],
    [3, 1_600],
    [7, 25_600],
    [8, 30_000],
    [500, 30_000],
  ] as const) {
    const delays = Array.from({ length: 400 }, () => fullJitter(failures, backoff, random));
    expect(Math.min(...delays)).toBeLessThan(most * 0.05);
    expect(Math.max(...delays)).toBeGreaterThan(most * 0.95);
    expect(Math.max(...delays)).toBeLessThanOrEqual(most);
  }
});

test('held objects are bounded by bytes, the first ones stay, and each is taken once', () => {
  const cache = createObjectCache(100);
  cache.put('a', { n: 1 }, 60);
  cache.put('b', { n: 2 }, 60);
  expect(cache.take('b')).toBeUndefined();
  cache.put('c', { n: 3 }, 40);
  expect(cache.bytes()).toBe(100);
  expect(cache.take('a')).toEqual({ n: 1 });
  expect(cache.take('a')).toBeUndefined();
  cache.put('c', { n: 4 }, 30);
  expect(cache.bytes()).toBe(30);
  expect(cache.take('c')).toEqual({ n: 4 });
  expect(cache.bytes()).toBe(0);
});

test('an object that no longer fits does not leave its older state behind', () => {
  const cache = createObjectCache(100);
  cache.put('a', { n: 1 }, 60);
  cache.put('a', { n: 2 }, 101);
  expect(cache.take('a')).toBeUndefined();
  expect(cache.bytes()).toBe(0);
});
