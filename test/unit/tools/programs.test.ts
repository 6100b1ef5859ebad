import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect, test } from 'vitest';
import { PROGRAMS } from '../../tools/programs.ts';
import { inContinuousIntegration } from '../../tools/tools.ts';

test('the Debian packages that the installer names are those that CI installs', () => {
  const listed = readFileSync(resolve(import.meta.dirname, '../../debian-packages.txt'), 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'));
  const named = Object.values(PROGRAMS).flatMap((program) => ('debian' in program ? program.debian : []));
  expect(named.toSorted()).toEqual(listed.toSorted());
});

test.for([
  ['true', true],
  ['1', true],
  ['github', true],
  ['false', false],
  ['False', false],
  ['0', false],
  ['', false],
  [undefined, false],
] as const)('CI=%s is CI: %s', ([value, expected]) => {
  expect(inContinuousIntegration(value === undefined ? {} : { CI: value })).toBe(expected);
});
