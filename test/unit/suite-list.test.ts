/** What the test command says of a run that is not the listed one, and what each tier and part has. */
import { globSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { filesOf, filesOfPart, holdAgainst, sizeIn, partOfCommit, partNumbers, updated } from '../suite-list.ts';
import type { Ran, SuiteList } from '../suite-list.ts';

const list: SuiteList = {
  'a.test.ts': { tests: 2, seconds: 4, tier: 'default' },
  'b.test.ts': { tests: 1, seconds: 9, tier: 'default', deep: { tests: 3, seconds: 90 } },
  'c.test.ts': { tests: 5, seconds: 100, tier: 'deep' },
};
const present = Object.keys(list);
const whole = { 'a.test.ts': ['passed', 'passed'], 'b.test.ts': ['passed'] };

type Options = Parameters<typeof holdAgainst>[2];
const all: Options = { tier: 'default', expected: ['a.test.ts', 'b.test.ts'], present, inCi: false };
const ranAs = (ran: Readonly<Record<string, readonly string[]>>, seconds = 1): Ran =>
  new Map(Object.entries(ran).map(([file, tests]) => [file, { tests, seconds }]));
const hold = (ran: Readonly<Record<string, readonly string[]>>, options = all) =>
  holdAgainst(list, ranAs(ran), options);

describe('a run', () => {
  test('of the whole list has nothing to say', () => {
    expect(hold(whole)).toEqual({ failures: [], skipped: [] });
  });

  test('with a failed test is the report’s to judge: the test did run', () => {
    expect(hold({ ...whole, 'b.test.ts': ['failed'] }).failures).toEqual([]);
  });

  test('without a listed file fails', () => {
    expect(hold({ ...whole, 'b.test.ts': [] }).failures).toEqual(['MISSING  b.test.ts: 0 tests, the list says 1']);
  });

  test('with fewer tests in a file fails', () => {
    expect(hold({ ...whole, 'a.test.ts': ['passed'] }).failures).toEqual([
      'MISSING  a.test.ts: 1 tests, the list says 2',
    ]);
  });

  test('of the deep tier is held against the deep sizes', () => {
    const deep: Options = { ...all, tier: 'deep', expected: ['b.test.ts'] };
    expect(hold({ 'b.test.ts': ['passed'] }, deep).failures).toEqual(['MISSING  b.test.ts: 1 tests, the list says 3']);
    expect(hold({ 'b.test.ts': ['passed', 'passed', 'passed'] }, deep).failures).toEqual([]);
  });

  test('fails on a file that is listed and gone, in any tier', () => {
    const gone = { ...all, present: ['a.test.ts', 'b.test.ts'] };
    expect(hold(whole, gone).failures).toEqual([expect.stringMatching(/^MISSING {2}c\.test\.ts: /)]);
  });

  test('fails on a file that is not listed, whether it ran or not', () => {
    const more = { ...all, present: [...present, 'd.test.ts'] };
    expect(hold(whole, more).failures).toEqual([expect.stringMatching(/^UNLISTED d\.test\.ts: /)]);
  });

  test('fails on an entry without a tier, which no tier would run', () => {
    const handmade = { ...list, 'a.test.ts': { tests: 2 } } as unknown as SuiteList;
    const { failures } = holdAgainst(handmade, ranAs(whole), all);
    expect(failures).toContainEqual(expect.stringMatching(/^UNLISTED a\.test\.ts: .*no tier/));
  });

  test('with more tests in a file than listed is fine', () => {
    expect(hold({ ...whole, 'b.test.ts': ['passed', 'passed'] }).failures).toEqual([]);
  });

  test.each(['skipped', 'pending'])('half of which is %s for want of a tool is not red, and says so', (status) => {
    const ran = { ...whole, 'a.test.ts': ['passed', status] };
    expect(hold(ran)).toEqual({ failures: [], skipped: ['SKIPPED  a.test.ts: 1 of 2 tests'] });
    expect(hold(ran, { ...all, inCi: true }).failures).toEqual([
      'MISSING  a.test.ts: 1 of 2 tests were skipped, in CI',
    ]);
  });

  test('that was to leave files out does not miss them', () => {
    expect(hold({ 'a.test.ts': ['passed', 'passed'] }, { ...all, expected: ['a.test.ts'] }).failures).toEqual([]);
  });
});

describe('the tiers', () => {
  test('run the slowest file first', () => {
    expect(filesOf(list, 'default')).toEqual(['b.test.ts', 'a.test.ts']);
    expect(filesOf(list, 'deep')).toEqual(['c.test.ts', 'b.test.ts']);
  });

  const files = Object.fromEntries(
    Array.from({ length: 40 }, (_, i) => [
      `${i}.test.ts`,
      { tests: 1, seconds: 1 + ((i * i) % 37), tier: 'deep' as const },
    ]),
  );
  const secondsOf = (of: SuiteList, names: readonly string[]): number =>
    names.reduce((sum, file) => sum + sizeIn('deep', of[file]!)!.seconds, 0);

  test('each deep file is in exactly one part, whatever the order of the list, and the parts take equally long', () => {
    const parts = partNumbers.map((number) => filesOfPart(files, number));
    expect(parts.flat().toSorted()).toEqual(Object.keys(files).toSorted());
    const backwards = Object.fromEntries(Object.entries(files).toReversed());
    expect(partNumbers.map((number) => filesOfPart(backwards, number))).toEqual(parts);
    const seconds = parts.map((part) => secondsOf(files, part));
    expect(Math.max(...seconds) - Math.min(...seconds)).toBeLessThanOrEqual(2);
  });

  test('a commit has one part, and each part has commits', () => {
    expect(partOfCommit('00000000ffff')).toBe(1);
    expect(new Set(['00000000', '00000001', '00000002', '00000003', '00000004', 'fffffffe'].map(partOfCommit))).toEqual(
      new Set(partNumbers),
    );
  });
});

describe('--update', () => {
  const update = (ran: Ran, options: Partial<Options> = {}) => updated(list, ran, { ...all, ...options });

  test('writes what ran and keeps what did not', () => {
    const ran = ranAs({ 'a.test.ts': ['passed', 'passed', 'passed'] }, 30.4);
    expect(update(ran)).toEqual({ ...list, 'a.test.ts': { tests: 3, seconds: 30, tier: 'default' } });
  });

  test('of the deep tier leaves the default sizes alone', () => {
    const ran = ranAs({ 'b.test.ts': ['passed'], 'c.test.ts': ['passed'] }, 200);
    expect(update(ran, { tier: 'deep' })).toEqual({
      'a.test.ts': list['a.test.ts'],
      'b.test.ts': { tests: 1, seconds: 9, tier: 'default', deep: { tests: 1, seconds: 200 } },
      'c.test.ts': { tests: 1, seconds: 200, tier: 'deep' },
    });
  });

  test('of the default tier leaves a named deep file alone', () => {
    expect(update(ranAs({ 'c.test.ts': ['passed'] }))).toEqual(list);
  });

  test('lists a new file in the tier that ran it, and drops one that is gone', () => {
    const now = update(ranAs({ 'new.test.ts': ['passed'] }, 0.2), { present: ['a.test.ts', 'new.test.ts'] });
    expect(now).toEqual({ 'a.test.ts': list['a.test.ts'], 'new.test.ts': { tests: 1, seconds: 1, tier: 'default' } });
  });

  test('completes an entry that was written by hand', () => {
    const handmade = { 'a.test.ts': { tests: 1 } } as unknown as SuiteList;
    const ran = ranAs({ 'a.test.ts': ['passed', 'passed'] }, 3);
    expect(updated(handmade, ran, all)).toEqual({ 'a.test.ts': { tests: 2, seconds: 3, tier: 'default' } });
  });

  test.each([
    ['nearly as long as before', ['passed', 'passed'], 5.9],
    ['in part', ['passed', 'skipped'], 500],
  ])('keeps the seconds of a file that ran %s', (_, tests, seconds) => {
    expect(update(ranAs({ 'a.test.ts': tests }, seconds))).toEqual(list);
  });
});

describe('test/suites.json', () => {
  const root = resolve(import.meta.dirname, '../..');
  const { suites } = JSON.parse(readFileSync(join(root, 'test/suites.json'), 'utf8')) as { readonly suites: SuiteList };

  test('has a deep size for each file that reads its sizes by tier, and for no other of the default tier', () => {
    const byTier = globSync('test/{unit,suites}/**/*.test.ts', { cwd: root }).filter((file) =>
      readFileSync(join(root, file), 'utf8').match(/^import .*\/harness\/determinism\/(?:tier|properties)\.ts';$/m),
    );
    const both = Object.keys(suites).filter((file) => suites[file]!.deep !== undefined);
    expect(both.toSorted()).toEqual(byTier.toSorted());
    expect(both.filter((file) => suites[file]!.tier === 'deep')).toEqual([]);
  });

  test('has tests, seconds and a tier of each file', () => {
    const incomplete = Object.entries(suites).filter(
      ([, { tests, seconds, tier }]) => !(tests > 0 && seconds > 0 && ['default', 'deep'].includes(tier)),
    );
    expect(incomplete).toEqual([]);
  });

  test('makes five parts of nearly the same length', () => {
    const parts = partNumbers.map((number) => filesOfPart(suites, number));
    const seconds = parts.map((part) => part.reduce((sum, file) => sum + sizeIn('deep', suites[file]!)!.seconds, 0));
    expect(Math.max(...seconds)).toBeLessThan(1.1 * Math.min(...seconds));
  });
});
