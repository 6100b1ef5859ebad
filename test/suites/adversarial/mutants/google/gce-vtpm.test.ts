/** The gce-vtpm provider without each of its checks: at least one case must then be answered otherwise. */
import { describeMutants } from '../../../../harness/mutants/suite.ts';
import { subject } from './gce-vtpm.ts';

describeMutants(subject, { mutants: 80, cases: 250, changeAnAnswer: 60, caughtBy: [/^refused: /, 30] });
