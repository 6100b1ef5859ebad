import { expect, test } from 'vitest';
import { fullJitter } from '../../../lambdas/watch-relay/clock.ts';
import { createConcurrencyLimiter } from '../../../lambdas/watch-relay/limiter.ts';
import { createObjectCache } from '../../../lambdas/watch-relay/object-cache.ts';
import { createVirtualClock, seededRandom } from './virtual-clock.ts';

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

test('starts at the maximum and never goes above it', () => {
  const { limiter } = setUp(4);
  for (let i = 0; i < 100; i += 1) limiter.succeeded();
  expect(limiter.limit()).toBe(4);
  expect(limiter.admits(3)).toBe(true);
  expect(limiter.admits(4)).toBe(false);
});

test('one overload met by many calls halves the limit once; the next one halves it again', async () => {
  const { clock, limiter } = setUp();
  const begun = clock.monotonic();
  await clock.advance(10);
  for (let i = 0; i < 16; i += 1) limiter.congested(begun);
  expect(limiter.limit()).toBe(8);
  const later = clock.monotonic();
  await clock.advance(10);
  for (let i = 0; i < 8; i += 1) limiter.congested(later);
  expect(limiter.limit()).toBe(4);
});

test('a round of successes adds one', async () => {
  const { clock, limiter } = setUp();
  limiter.congested(clock.monotonic());
  expect(limiter.limit()).toBe(8);
  for (let i = 0; i < 9; i += 1) limiter.succeeded();
  expect(limiter.limit()).toBe(9);
  for (let i = 0; i < 8 * 16; i += 1) limiter.succeeded();
  expect(limiter.limit()).toBe(16);
});

test('at one at a time, further congestion leaves growing gaps, and success ends them', async () => {
  const { clock, limiter, admitted } = setUp(1);
  const gaps: number[] = [];
  for (let i = 0; i < 8; i += 1) {
    limiter.congested(clock.monotonic());
    expect(limiter.admits(0)).toBe(false);
    const from = clock.monotonic();
    const before = admitted();
    await clock.until(() => admitted() > before);
    gaps.push(clock.monotonic() - from);
    expect(limiter.admits(0)).toBe(true);
  }
  expect(gaps).toEqual([100, 200, 400, 800, 1_600, 2_500, 2_500, 2_500]);
  limiter.succeeded();
  limiter.congested(clock.monotonic());
  await clock.advance(100);
  expect(limiter.admits(0)).toBe(true);
});

test('full jitter spreads over the whole of a doubling, capped range', () => {
  const backoff = { baseMilliseconds: 200, capMilliseconds: 30_000 };
  const random = seededRandom(1);
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
