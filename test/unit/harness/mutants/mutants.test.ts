/**
 * Every planted mistake can be planted. This test tries none of them, so that a line of the product that changed fails here,
 * in seconds, and not only in the deep tier.
 */
import { existsSync, globSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { checksIn } from '../../../harness/mutants/checks.ts';
import { mutantsOf, fits } from '../../../harness/mutants/subject.ts';
import type { Subject } from '../../../harness/mutants/subject.ts';
import { located, problemOf, root } from '../../../harness/mutants/mutant.ts';
import { notCaught, tryMutants } from '../../../harness/mutants/suite.ts';
import { allMutants } from '../../../sim/mutants.ts';
import { subject as example } from './example-subject.ts';

/** The simulator has a list and no cases. */
const suites = globSync('test/suites/adversarial/mutants/**/*.test.ts', { cwd: root }).filter(
  (file) => !file.endsWith('/sim.test.ts'),
);
const subjects = await Promise.all(
  suites.map(async (file) => {
    const { subject } = (await import(join(root, file.replace('.test.ts', '.ts')))) as { readonly subject: Subject };
    return { file, subject };
  }),
);

test('there are suites of mutants', () => {
  expect(subjects.length).toBeGreaterThanOrEqual(7);
});

describe.each(subjects)('$file', ({ subject }) => {
  test('each text that is changed stands in its file once', () => {
    expect(subject.changes.flatMap((change) => problemOf(change) ?? [])).toEqual([]);
  });

  test('each equivalent mutant is in the source', () => {
    const mutants = mutantsOf(subject);
    expect(subject.equivalent?.filter((one) => !mutants.some((mutant) => fits(one, mutant))) ?? []).toEqual([]);
  });

  test('each file of cases is there', () => {
    expect(subject.cases.filter((file) => !existsSync(join(root, file)))).toEqual([]);
  });
});

test('the checks of rules are among those that are found', () => {
  const checks = checksIn('core/policy/in-tree-rules.ts', { choices: true }).map(({ check }) => check);
  expect(checks.filter((check) => check.startsWith('violationUnless('))).not.toEqual([]);
});

describe('the simulator', () => {
  test('each text that is changed stands in its file once', () => {
    expect(allMutants.flatMap((change) => problemOf(change) ?? [])).toEqual([]);
  });

  test('no two mutants have the same name', () => {
    expect(new Set(allMutants.map(({ breaks }) => breaks)).size).toBe(allMutants.length);
  });
});

describe('a text that cannot be planted', () => {
  const change = { file: 'test/unit/harness/mutants/example.ts', breaks: 'it breaks', instead: '' };

  test.each([
    ['is not in the file', { find: 'no such text' }, 'and has it 0 times: no such text (it breaks)'],
    ['is in the file twice', { find: 'return' }, 'times: return (it breaks)'],
    ['is in its surroundings twice', { find: 'l', within: 'limit === 7' }, 'and has it 0 times: limit === 7'],
  ])('%s', (_, more, message) => {
    expect(() => located({ ...change, ...more })).toThrow(message);
  });
});

test('mutants are caught by another answer or by an error, or they are not caught', async () => {
  const mutants = mutantsOf(example);
  const { cases, failed, outcomes } = await tryMutants(example.module, 'a place');
  expect({ cases, failed }).toEqual({ cases: 3, failed: ['is told its place: a place'] });
  const caught = mutants.map(({ without }, number) => [without, outcomes[number]]);
  expect(Object.fromEntries(caught)).toEqual({
    "typeof value !== 'number'": { caughtBy: 'a text' },
    'value > limit': { caughtBy: 'a large number' },
    'value < 0': {},
    '/^[0-9]+$/': { caughtBy: 'a text' },
    'the limit is higher': { caughtBy: 'a large number' },
    'the file cannot be loaded': { breaks: expect.stringMatching(/^loading: /) as string },
  });
  const entry = { file: 'test/unit/harness/mutants/example.ts', because: '' };
  const unknown = [`${entry.file}: value < 0, in: if (value < 0) return false;`];
  expect(notCaught(mutants, outcomes, [])).toEqual({ unknown, stale: [] });
  expect(notCaught(mutants, outcomes, [{ ...entry, without: 'value < 0' }])).toEqual({ unknown: [], stale: [] });
  const stale = { ...entry, without: 'value > limit' };
  expect(notCaught(mutants, outcomes, [stale])).toEqual({ unknown, stale: [`${entry.file}: value > limit`] });
});
