/** The contract of the attestation store sees each mistake in the store of SQLite. */
import { temporaryFolder } from '../../../../harness/processes/processes.ts';
import { describeMutants } from '../../../../harness/mutants/suite.ts';
import { subject } from './embedded-store.ts';

describeMutants(subject, { mutants: 49, cases: 63 }, () => {
  const folder = temporaryFolder('store-mutants');
  return { path: folder.path, close: () => folder.remove() };
});
