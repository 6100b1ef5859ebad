/** What the runner says of a run that is not the listed one. */
import { describe, expect, test } from 'vitest';
import { holdAgainst } from '../suite-list.ts';
import type { SuiteList } from '../suite-list.ts';

const all: Parameters<typeof holdAgainst>[2] = { expected: () => true, inCi: false };
const list: SuiteList = { 'a.test.ts': { tests: 2 }, 'b.test.ts': { tests: 1 } };
const whole = { 'a.test.ts': ['passed', 'passed'], 'b.test.ts': ['passed'] };
const hold = (ran: Readonly<Record<string, readonly string[]>>, options = all) =>
  holdAgainst(list, new Map(Object.entries(ran)), options);

describe('a run', () => {
  test('of the whole list has nothing to say', () => {
    expect(hold(whole)).toEqual({ failures: [], skipped: [] });
  });

  test('with a failed test is the report’s to judge: the test did run', () => {
    expect(hold({ ...whole, 'b.test.ts': ['failed'] }).failures).toEqual([]);
  });

  test('without a listed file fails', () => {
    expect(hold({ 'a.test.ts': ['passed', 'passed'] }).failures).toEqual([
      'MISSING  b.test.ts: 0 tests, the list says 1',
    ]);
  });

  test('with fewer tests in a file fails', () => {
    expect(hold({ ...whole, 'a.test.ts': ['passed'] }).failures).toEqual([
      'MISSING  a.test.ts: 1 tests, the list says 2',
    ]);
  });

  test('with a file that is not listed fails', () => {
    expect(hold({ ...whole, 'c.test.ts': ['passed'] }).failures).toEqual([
      expect.stringMatching(/^UNLISTED c\.test\.ts: /),
    ]);
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
    const ran = { 'a.test.ts': ['passed', 'passed'] };
    expect(hold(ran, { ...all, expected: (file) => file === 'a.test.ts' }).failures).toEqual([]);
  });
});
