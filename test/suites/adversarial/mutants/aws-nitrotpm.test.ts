/** The aws-nitrotpm provider without each of its checks: at least one case must then be answered otherwise. */
import { describeMutants } from '../../../harness/mutants/suite.ts';
import { subject } from './aws-nitrotpm.ts';

describeMutants(subject, { mutants: 25, cases: 50, changeAnAnswer: 25 });
