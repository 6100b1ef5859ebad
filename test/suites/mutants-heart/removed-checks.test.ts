/**
 * What decides who gets a certificate, without each of its checks: at least one case of test/unit/lambdas/attest is then answered
 * otherwise, or not at all. A check that no case needs is either superfluous or untried: both fail here, unless the
 * reviewed table (equivalent.ts) says why it makes no difference.
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

describe('the checks of the heart', () => {
  test('are in every file of it', () => {
    expect(removals.length).toBeGreaterThan(230);
    expect(new Set(removals.map(({ file }) => file))).toEqual(new Set(files));
  });

  test('are met by cases that say nothing against it as it is', () => {
    expect(tried.failed).toEqual([]);
    expect(tried.cases).toBeGreaterThan(220);
    expect(tried.without).toHaveLength(removals.length);
  });

  test('make a difference to a case, each of them, or are known to make none', () => {
    expect(idleRemovals(removals, tried, equivalent)).toEqual({ unknown: [], stale: [] });
  });

  test('most of them alone stand against a wrong answer: without the others nothing is answered', () => {
    expect(tried.without.filter(({ needed }) => needed !== undefined).length).toBeGreaterThan(180);
  });
});
