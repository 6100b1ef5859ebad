/** The cases of the authorizer see each mistake that admits a caller. */
import { describeMutants } from '../../../harness/mutants/suite.ts';
import { subject } from './authorizer.ts';

describeMutants(subject, { mutants: 29, cases: 121 });
