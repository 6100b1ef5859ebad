import { expect, test } from 'vitest';
import { fullJitter } from '../../../../../lambdas/watch-relay/runtime/clock.ts';
import { createConcurrencyLimiter } from '../../../../../lambdas/watch-relay/schedule/concurrency-limiter.ts';
import { createObjectCache } from '../../../../../lambdas/watch-relay/objects/object-cache.ts';
import { createVirtualClock } from '../../../../harness/virtual-time.ts';
import { mulberry32 } from '../../../../harness/mulberry32.ts';

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

/** As after a quiet burst: it has found out that all of it is borne. */
function setUpOpen(maximum = 16) {
  const world = setUp(maximum);
  while (world.limiter.limit() < maximum) world.limiter.succeeded();
  return world;
}

test('finds out from one on, slowly to two, then twice as many with each round; never above the maximum', () => {
  const { limiter } = setUp(16);
  expect(limiter.limit()).toBe(1);
  const successes: number[] = [];
  for (let count = 1; limiter.limit() < 16; count += 1) {
    const before = limiter.limit();
    limiter.succeeded();
    if (limiter.limit() > before) successes.push(count);
  }
  expect(successes.slice(0, 3)).toEqual([4, 5, 6]);
  expect(successes).toHaveLength(15);
  for (let i = 0; i < 100; i += 1) limiter.succeeded();
  expect(limiter.limit()).toBe(16);
  expect(limiter.admits(15)).toBe(true);
  expect(limiter.admits(16)).toBe(false);
});

test('a maximum of one is one', () => {
  const { limiter } = setUp(1);
  for (let i = 0; i < 100; i += 1) limiter.succeeded();
  expect(limiter.limit()).toBe(1);
  expect(limiter.admits(0)).toBe(true);
});

test('one overload met by many calls halves the limit once; the next one halves it again', async () => {
  const { clock, limiter } = setUpOpen();
  const begun = clock.monotonic();
  await clock.advance(10);
  for (let i = 0; i < 16; i += 1) limiter.congested(begun, 0);
  expect(limiter.limit()).toBe(8);
  const later = clock.monotonic();
  await clock.advance(10);
  for (let i = 0; i < 8; i += 1) limiter.congested(later, 0);
  expect(limiter.limit()).toBe(4);
});

test('a round of successes adds one', async () => {
  const { clock, limiter } = setUpOpen();
  limiter.congested(clock.monotonic(), 0);
  expect(limiter.limit()).toBe(8);
  for (let i = 0; i < 9; i += 1) limiter.succeeded();
  expect(limiter.limit()).toBe(9);
  for (let i = 0; i < 8 * 16; i += 1) limiter.succeeded();
  expect(limiter.limit()).toBe(16);
});

test('nobody has answered yet: growing gaps, then as if nothing had been', async () => {
  const { clock, limiter, admitted } = setUp(4);
  const gaps: number[] = [];
  for (let i = 0; i < 8; i += 1) {
    limiter.congested(clock.monotonic(), 10);
    expect(limiter.admits(0)).toBe(false);
    const from = clock.monotonic();
    const before = admitted();
    await clock.until(() => admitted() > before);
    gaps.push(clock.monotonic() - from);
    expect(limiter.admits(0)).toBe(true);
  }
  expect(gaps).toEqual([100, 100, 200, 400, 800, 1_600, 2_500, 2_500]);
  for (let i = 0; i < 6; i += 1) limiter.succeeded();
  expect(limiter.limit()).toBe(4);
});

async function pauseAfter(successes: number, refusals: number, waiting: number): Promise<number> {
  const { clock, limiter, admitted } = setUp(1);
  let last = 0;
  for (let refusal = 0; refusal < refusals; refusal += 1) {
    for (let i = 0; i < successes; i += 1) {
      await clock.advance(100);
      limiter.succeeded();
    }
    limiter.congested(clock.monotonic(), waiting);
    const [from, before] = [clock.monotonic(), admitted()];
    await clock.until(() => admitted() > before);
    last = clock.monotonic() - from;
  }
  return last;
}

test('others want the same: whoever is refused more often pauses longer, and never longer than the rest takes', async () => {
  const seldom = await pauseAfter(30, 6, 1_000);
  const often = await pauseAfter(10, 6, 1_000);
  expect(seldom).toBeLessThan(often / 4);
  expect(await pauseAfter(1, 40, 1_000)).toBeLessThanOrEqual(8_000);
  expect(await pauseAfter(10, 6, 0)).toBeLessThan(often / 4);
});

test('some that fail, for no crowd: neither fewer at once nor a pause, however many they are in the end', async () => {
  const { clock, limiter } = setUpOpen(16);
  for (let i = 0; i < 100; i += 1) {
    await clock.advance(100);
    for (let failures = 0; failures < 16; failures += 1) limiter.failed(clock.monotonic(), `node-${failures}`);
    expect(limiter.limit()).toBe(16);
    expect(limiter.admits(15)).toBe(true);
    limiter.succeeded();
  }
});

test('as many as are under way fail: fewer, then growing gaps; two at once soon again', async () => {
  const { clock, limiter, admitted } = setUpOpen(4);
  for (let failures = 0; failures < 4; failures += 1) limiter.failed(clock.monotonic(), `node-${failures}`);
  expect(limiter.limit()).toBe(4);
  await clock.advance(10);
  limiter.failed(clock.monotonic(), 'node-0');
  expect(limiter.limit()).toBe(2);
  limiter.failed(clock.monotonic(), 'node-0');
  expect(limiter.limit()).toBe(1);
  const gaps: number[] = [];
  for (let i = 0; i < 4; i += 1) {
    limiter.failed(clock.monotonic(), 'node-0');
    const [from, before] = [clock.monotonic(), admitted()];
    await clock.until(() => admitted() > before);
    gaps.push(clock.monotonic() - from);
  }
  expect(gaps).toEqual([2_500, 2_500, 2_500, 2_500]);
  for (let i = 0; i < 4; i += 1) limiter.succeeded();
  expect(limiter.limit()).toBe(2);
});

test('finding 15: one requester whose calls fail lowers nothing, however many they are; a second one shows that it is the endpoint', async () => {
  const { clock, limiter } = setUpOpen(8);
  for (let failures = 0; failures < 200; failures += 1) {
    await clock.advance(10);
    limiter.failed(clock.monotonic(), 'system:bootstrap:abcdef');
  }
  expect(limiter.limit()).toBe(8);
  expect(limiter.admits(7)).toBe(true);
  limiter.failed(clock.monotonic(), 'system:node:a');
  expect(limiter.limit()).toBe(4);
  // Who failed before a success has nothing to do with what fails after it.
  while (limiter.limit() < 8) limiter.succeeded();
  for (let failures = 0; failures < 200; failures += 1) limiter.failed(clock.monotonic(), 'system:bootstrap:abcdef');
  expect(limiter.limit()).toBe(8);
});

test('once closed it lets nobody through and waits for nothing', async () => {
  for (const waits of ['pause', 'patience']) {
    const { clock, limiter, admitted } = setUp(4);
    if (waits === 'pause') limiter.congested(clock.monotonic(), 10);
    else expect([limiter.admits(0), limiter.admits(1)]).toEqual([true, false]);
    const before = admitted();
    limiter.close();
    await clock.advance(60_000);
    expect(admitted()).toBe(before);
    expect(limiter.admits(0)).toBe(false);
  }
});

test('with few left, whoever is behind comes back sooner, but for the first pause', async () => {
  expect(await pauseAfter(1, 1, 17)).toBe(900);
  expect(await pauseAfter(1, 2, 17)).toBe(240);
  expect(await pauseAfter(1, 2, 32)).toBeGreaterThan(1_000);
  expect(await pauseAfter(10, 2, 17)).toBeGreaterThan(600);
});

test('after a refusal at one the second at once is tried only once in twenty', async () => {
  const { clock, limiter } = setUp(16);
  for (let i = 0; i < 3; i += 1) limiter.succeeded();
  limiter.congested(clock.monotonic(), 100);
  for (let i = 0; i < 19; i += 1) limiter.succeeded();
  expect(limiter.limit()).toBe(1);
  limiter.succeeded();
  limiter.succeeded();
  expect(limiter.limit()).toBe(2);
});

test('calls that hang do not keep the others waiting: one more for each second without an answer', async () => {
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
  // Four hang now; that is the maximum, however long it lasts.
  await clock.advance(60_000);
  expect(limiter.admits(4)).toBe(false);
  // Whatever is answered ends the silence, and what hangs still counts.
  limiter.congested(clock.monotonic(), 10);
  await clock.advance(5_000);
  limiter.succeeded();
  expect(limiter.admits(3)).toBe(false);
  await clock.advance(3_000);
  expect(limiter.admits(3)).toBe(true);
});

test('after a long rest it finds out anew', async () => {
  const { clock, limiter } = setUpOpen();
  await clock.advance(9_000);
  expect(limiter.admits(0)).toBe(true);
  expect(limiter.limit()).toBe(16);
  await clock.advance(11_000);
  // Whoever still works has not rested.
  expect(limiter.admits(1)).toBe(true);
  expect(limiter.limit()).toBe(16);
  await clock.advance(11_000);
  expect(limiter.admits(0)).toBe(true);
  expect(limiter.limit()).toBe(1);
});

test('full jitter spreads over the whole of a doubling, capped range', () => {
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

test('held objects are bounded by bytes, the first to come stay, and each is given away once', () => {
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
