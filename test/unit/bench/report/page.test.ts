import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { withComparisons } from '../../../../bench/report/page.ts';
import { phase, results, row } from './samples.ts';

const run = results([phase([row('countersign', [100, 100]), row('kcm', [50, 50])])]);

test('the comparisons of a page are replaced, and everything else stays', () => {
  const page = readFileSync('docs/internals/performance.md', 'utf8');
  const written = withComparisons(page, run);
  expect(written).toContain(
    '| burst of 100: label of countersign | label of kcm | 2 | 0.50 | 0.50–0.50 | – | too few pairs |',
  );
  const [before] = page.split('<!-- comparisons');
  const [, after] = page.split('<!-- end of comparisons');
  expect(written.startsWith(before!)).toBe(true);
  expect(written.endsWith(after!)).toBe(true);
  expect(withComparisons(written, run)).toBe(written);
});

test('a page without a place for comparisons is an error', () => {
  expect(() => withComparisons('# Page', run)).toThrow('has no lines');
});
