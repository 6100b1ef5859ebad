/** `node try-removals.ts` prints what came out as JSON: the hooks of the run need a process of their own. */
import { join } from 'node:path';
import { tryRemovals } from '../../harness/removals/try-removals.ts';
import { findRemovals, folder } from './removals.ts';

const files = [
  'story',
  'every-refusal',
  'one-check',
  'verdict-check',
  'tofu',
  'second-look',
  'limits',
  'lock',
  'serving-names',
  'binding',
] as const;
const tests = join(import.meta.dirname, '../../unit/lambdas/attest');

const testFiles = files.map((file) => join(tests, `${file}.test.ts`));
process.stdout.write(JSON.stringify(await tryRemovals({ folder, removals: findRemovals(), testFiles })));
