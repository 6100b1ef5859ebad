/** The order of test files in a run: by the seconds of test/suites.json, so that no slow file is left for the end. */
import { readFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { BaseSequencer } from 'vitest/node';
import type { TestSpecification } from 'vitest/node';
import { tier } from './harness/determinism/tier.ts';
import { filesOf } from './suite-list.ts';
import type { SuiteList } from './suite-list.ts';

const root = resolve(import.meta.dirname, '..');

export class SlowestFirst extends BaseSequencer {
  override sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const { suites } = JSON.parse(readFileSync(join(root, 'test/suites.json'), 'utf8')) as {
      readonly suites: SuiteList;
    };
    const order = new Map(filesOf(suites, tier).map((file, index) => [file, index]));
    // A file that is not listed may take any time: it begins first.
    const rank = ({ moduleId }: TestSpecification): number => order.get(relative(root, moduleId)) ?? -1;
    return Promise.resolve(files.toSorted((a, b) => rank(a) - rank(b)));
  }
}
