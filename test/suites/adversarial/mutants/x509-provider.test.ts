/**
 * The x509 provider without each of its checks: at least one case must then be answered otherwise. For most checks that is a
 * wrong machine that is accepted; for the others another check refuses it, in other words.
 */
import { describeMutants } from '../../../harness/mutants/suite.ts';
import { subject } from './x509-provider.ts';

describeMutants(subject, { mutants: 80, cases: 200, caughtBy: [/^refused: /, 40] });
