/**
 * What decides who gets a certificate, without each of its checks: at least one case of test/unit/lambdas/attest must then fail. A
 * check that no case needs is superfluous or untested: both fail here, unless heart-equivalent.ts gives the reason.
 */
import { describeMutants } from '../../../../harness/mutants/suite.ts';
import { subject } from './heart.ts';

describeMutants(subject, { mutants: 310, cases: 300, changeAnAnswer: 250 });
