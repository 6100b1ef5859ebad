/** The gce provider without each of its checks: at least one case must then be answered otherwise. */
import { describeMutants } from '../../../../harness/mutants/suite.ts';
import { subject } from './gce-provider.ts';

describeMutants(subject, { mutants: 60, cases: 200, caughtBy: [/^refused: /, 25] });
