import { expect, test } from 'vitest';
import { comparisonsOf } from '../../../../bench/report/comparisons.ts';
import { phase, row, turn } from './samples.ts';

test('a contender that takes half the time is twice as fast', () => {
  const [comparison] = comparisonsOf(phase([row('a', [50, 60, 70]), row('b', [100, 120, 140])]));
  expect(comparison).toMatchObject({ phase: 'burst of 100', label: 'label of a', than: 'label of b' });
  expect(comparison!.speed.median).toBeCloseTo(2, 12);
});

test('only turns of the same round are a pair', () => {
  const a = { contender: 'a', label: 'a', turns: [turn(0, 100), turn(1, 1), turn(3, 100)] };
  const b = { contender: 'b', label: 'b', turns: [turn(0, 300), turn(2, 1), turn(3, 300)] };
  const [comparison] = comparisonsOf(phase([a, b]));
  expect(comparison!.speed.pairs).toBe(2);
  expect(comparison!.speed.median).toBeCloseTo(3, 12);
});

test('a phase compares what it names: the last certificate, or the median wait', () => {
  const a = { contender: 'a', label: 'a', turns: [turn(0, 100, { p50: 10 })] };
  const b = { contender: 'b', label: 'b', turns: [turn(0, 200, { p50: 5 })] };
  expect(comparisonsOf(phase([a, b]))[0]!.speed.median).toBeCloseTo(2, 12);
  expect(comparisonsOf(phase([a, b], { compared: 'p50' }))[0]!.speed.median).toBeCloseTo(0.5, 12);
});
