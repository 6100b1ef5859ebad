/** The lines of a table of comparisons. */
import type { Comparison } from './comparisons.ts';
import { isDifference } from '../measure/statistics.ts';
import type { PairedRatio } from '../measure/statistics.ts';
import { table } from './table.ts';

/** A line for each comparison; empty without any. */
export function comparisonParts(comparisons: readonly Comparison[]): string[] {
  if (comparisons.length === 0) return [];
  return [
    '',
    'In short: how many times as fast, pair by pair. Contenders took turns of a few seconds, so that other work slowed down both sides',
    'of a pair. Median of all pairs, the quartiles between which half of them lie, and the interval that holds the median with a',
    'probability of 95 %',
    table(comparisonHeads, comparisons.map(comparisonCells)),
  ];
}

export const comparisonHeads = ['', 'beside', 'pairs', '×', 'quartiles', '95 %', ''] as const;

export function comparisonCells({ phase, label, than, speed }: Comparison): readonly string[] {
  return [
    `${phase}: ${label}`,
    than,
    String(speed.pairs),
    digits(speed.median),
    speed.quartiles.map(digits).join('–'),
    speed.interval?.map(digits).join('–') ?? '–',
    conclusion(speed),
  ];
}

function conclusion(ratio: PairedRatio): string {
  if (ratio.interval === undefined) return 'too few pairs';
  if (!isDifference(ratio)) return 'no difference measured';
  return ratio.median > 1 ? 'faster' : 'slower';
}

/** The median with its interval, as in `1.20 (1.17–1.24)`. */
export function ratioText(ratio: PairedRatio): string {
  return `${digits(ratio.median)}${intervalText(ratio.interval, digits)}`;
}

export function intervalText(interval: readonly [number, number] | undefined, text: (value: number) => string): string {
  return interval === undefined ? '' : ` (${interval.map(text).join('–')})`;
}

function digits(value: number): string {
  return value.toFixed(value >= 10 ? 1 : 2);
}
