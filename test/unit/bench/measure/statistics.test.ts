import { expect, test } from 'vitest';
import {
  isDifference,
  median,
  medianInterval,
  pairedRatio,
  percentile,
  quantile,
} from '../../../../bench/measure/statistics.ts';

test('percentiles are values of the sample, quantiles lie between them', () => {
  const sample = [40, 10, 30, 20];
  expect([percentile(sample, 0.5), percentile(sample, 0.99)]).toEqual([20, 40]);
  expect([quantile(sample, 0.25), median(sample), quantile(sample, 1)]).toEqual([17.5, 25, 40]);
  expect(percentile([], 0.5)).toBeNaN();
  expect(median([])).toBeNaN();
});

// Tables of the sign test: ranks from both ends, for a confidence of at least 95 %.
test.each([
  [6, 1],
  [8, 1],
  [9, 2],
  [12, 3],
  [15, 4],
  [20, 6],
  [30, 10],
  [100, 40],
])('of %i values the interval of the median begins at the %ith', (count, rank) => {
  const sample = Array.from({ length: count }, (_, index) => index + 1);
  expect(medianInterval(sample.toReversed())).toEqual([rank, count + 1 - rank]);
});

test('five values have no interval, and without one there is no difference', () => {
  expect(medianInterval([1, 2, 3, 4, 5])).toBeUndefined();
  const ratio = pairedRatio([2, 2, 2, 2, 2], [1, 1, 1, 1, 1]);
  expect(ratio).not.toHaveProperty('interval');
  expect(isDifference(ratio)).toBe(false);
});

test('a ratio is made of pairs: what changed both sides of a pair does not change it', () => {
  const divisors = [1, 5, 2, 1, 1, 9];
  const ratio = pairedRatio(
    divisors.map((each) => each * 2),
    divisors,
  );
  expect(ratio.pairs).toBe(6);
  for (const value of [ratio.median, ...ratio.quartiles, ...ratio.interval!]) expect(value).toBeCloseTo(2, 12);
  expect(isDifference(ratio)).toBe(true);
});

test('exchanging the sides gives the reciprocal, also of an even number of pairs', () => {
  const [a, b] = [
    [1, 2, 3, 4, 5, 6],
    [6, 1, 4, 2, 3, 5],
  ] as const;
  const [there, back] = [pairedRatio(a, b), pairedRatio(b, a)];
  expect(there.median * back.median).toBeCloseTo(1, 12);
  expect(there.interval![0] * back.interval![1]).toBeCloseTo(1, 12);
});

test('an interval that contains 1 is no difference, one beside it is one', () => {
  const of = (...ratios: readonly number[]) =>
    pairedRatio(
      ratios,
      ratios.map(() => 1),
    );
  expect(isDifference(of(0.9, 1.2, 1.2, 1.3, 1.2, 1.1))).toBe(false);
  expect(isDifference(of(1.01, 1.2, 1.2, 1.3, 1.2, 1.1))).toBe(true);
  expect(isDifference(of(0.9, 0.8, 0.7, 0.9, 0.8, 0.99))).toBe(true);
});

test('a measurement without its pair is an error', () => {
  expect(() => pairedRatio([1, 2], [1])).toThrow('without its pair');
});
