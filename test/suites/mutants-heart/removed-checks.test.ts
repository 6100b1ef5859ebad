/**
 * What decides who gets a certificate, without each of its checks: at least one case of test/unit/attest is then answered
 * otherwise, or not at all. A check that no case needs is either superfluous or untried: both fail here, unless the
 * reviewed table (equivalent.ts) says why it makes no difference.
 */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Removal } from '../../harness/check-removals.ts';
import { equivalent } from './equivalent.ts';
import { files, findRemovals } from './removals.ts';
import type { Tried } from './try-removals.ts';

const removals = findRemovals();
let tried: Tried;

beforeAll(async () => {
  const program = join(import.meta.dirname, 'try-removals.ts');
  const { stdout } = await promisify(execFile)(process.execPath, [program], {
    timeout: 290_000,
    maxBuffer: 64 * 1024 * 1024,
  });
  tried = JSON.parse(stdout) as Tried;
}, 300_000);

const isKnown = ({ file, check, without }: Removal) =>
  equivalent.filter(
    (one) => one.file === file && one.without === without && (one.check === undefined || one.check === check),
  ).length === 1;
const nameOf = ({ file, check, without }: Removal): string => `${file}: without ${without}, in: ${check}`;

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
    const idle = removals.filter((_, index) => {
      const { needed, breaks } = tried.without[index] ?? {};
      return needed === undefined && breaks === undefined;
    });
    expect(idle.filter((one) => !isKnown(one)).map(nameOf)).toEqual([]);
    // What has become needed, or is gone, must not stay in the table.
    expect(idle.filter(isKnown)).toHaveLength(equivalent.length);
  });

  test('most of them alone stand against a wrong answer: without the others nothing is answered', () => {
    expect(tried.without.filter(({ needed }) => needed !== undefined).length).toBeGreaterThan(180);
  });
});
