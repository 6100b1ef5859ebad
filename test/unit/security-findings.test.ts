/** docs/internals/security-findings.md: every finding has an answer, and tests that are named after it. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';

const root = join(import.meta.dirname, '../..');
const page = readFileSync(join(root, 'docs/internals/security-findings.md'), 'utf8');
const rows = [...page.matchAll(/^\| (\d+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$/gm)].map(
  ([, number = '', , answer = '', shown = '']) => ({ number, answer: answer.trim(), shown: shown.trim() }),
);
const tests = new Map(
  globSync('test/{unit,suites}/**/*.test.ts', { cwd: root }).map((file) => [
    file,
    readFileSync(join(root, file), 'utf8'),
  ]),
);

/** Test files that have a title of this finding. */
const filesOf = (number: string): readonly string[] =>
  [...tests].flatMap(([file, text]) => (text.includes(`finding ${number}: `) ? [file] : []));

test('the page has each finding once, in order', () => {
  expect(rows.map(({ number }) => number)).toEqual(Array.from({ length: 26 }, (_, index) => String(index + 1)));
});

describe.each(rows)('finding $number', ({ number, answer, shown }) => {
  test('has an answer', () => {
    expect(answer).not.toMatch(/^(open)?$/);
    expect(shown).not.toBe('');
  });

  test('has a test named after it', () => {
    expect(filesOf(number)).not.toEqual([]);
  });
});

test('no test is named after a finding that the page does not have', () => {
  const named = [...tests.values()].flatMap((text) => [...text.matchAll(/['"`]finding (\d+): /g)].map(([, n]) => n));
  expect(new Set(named)).toEqual(new Set(rows.map(({ number }) => number)));
});
