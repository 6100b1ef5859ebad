/** `node try-removals.ts` prints what came out as JSON: the hooks of the run need a process of their own. */
import { join } from 'node:path';
import { tryRemovals } from '../../harness/removals/try-removals.ts';
import { findRemovals, folder } from './removals.ts';

/** From the fastest: a removal is tried until the first case fails. */
const files = [
  'core/triage',
  'core/profiles',
  'core/custom-rules',
  'core/serving-rules',
  'core/serving-resolution',
  'core/reserved-names',
  'core/hidden-names',
  'core/explain-profile',
  'core/patterns',
  'core/subject-alt-names',
  'core/pem',
  'core/lifetime',
  'core/csr',
  'core/provider-id',
  'core/keys',
  'core/certificate-facts',
  'core/certificate',
  'core/hostile-requests',
  'sign/node-names',
  'sign/handler',
  'sign/ledger-answers',
  'sign/one-certificate',
  'attest/verdict-check',
  'attest/story',
] as const;
const tests = join(import.meta.dirname, '../../unit');

const testFiles = files.map((file) => join(tests, `${file}.test.ts`));
process.stdout.write(JSON.stringify(await tryRemovals({ folder, removals: findRemovals(), testFiles })));
