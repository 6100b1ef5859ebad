/**
 * What decides whether a request may be signed, without each of its checks: at least one unit case then has another
 * answer. A check that no case needs is either superfluous or untested: both fail here, unless the reviewed table
 * (equivalent.ts) says why it makes no difference.
 */
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { idleRemovals, runProgram } from '../../harness/removals/judge.ts';
import type { Tried } from '../../harness/removals/try-removals.ts';
import { equivalent } from './equivalent.ts';
import { files, findRemovals } from './removals.ts';

const removals = findRemovals();
let tried: Tried;

beforeAll(async () => {
  tried = await runProgram(join(import.meta.dirname, 'try-removals.ts'), 290_000);
}, 300_000);

describe('the checks of rules and parsers', () => {
  test('are found in every file', () => {
    expect(removals.length).toBeGreaterThan(500);
    expect(new Set(removals.map(({ file }) => file))).toEqual(new Set(files));
  });

  test('are reached by cases that pass on the product as it is', () => {
    expect(tried.failed).toEqual([]);
    expect(tried.cases).toBeGreaterThan(2_000);
    expect(tried.without).toHaveLength(removals.length);
  });

  test('make a difference to a case, each of them, or are known to make none', () => {
    expect(idleRemovals(removals, tried, equivalent)).toEqual({ unknown: [], stale: [] });
  });

  test('most of them change an answer: few end in an error instead', () => {
    const changed = tried.without.filter(({ needed }) => needed !== undefined).length;
    expect(changed).toBeGreaterThan(removals.length * 0.9);
  });
});
