/**
 * The aws provider without each of its checks: at least one case must then be answered otherwise. For most checks that is a
 * wrong machine that is accepted; for the others another check refuses it, in other words.
 */
import { describeMutants } from '../../../harness/mutants/suite.ts';
import { subject } from './aws-provider.ts';

describeMutants(subject, { mutants: 150, cases: 400, caughtBy: [/^refused: /, 80] });
