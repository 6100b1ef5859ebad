import { changesOf } from '../../../harness/mutants/mutant.ts';
import type { Subject } from '../../../harness/mutants/subject.ts';

const file = 'test/unit/harness/mutants/example.ts';

export const subject: Subject = {
  module: import.meta.filename,
  checkedFiles: [file],
  changes: changesOf(
    file,
    ['the limit is higher', 'const limit = 7;', 'const limit = 8;'],
    ['the file cannot be loaded', 'export function isSmall(', 'export function isLarge('],
  ),
  cases: ['test/unit/harness/mutants/example-cases.ts'],
};
