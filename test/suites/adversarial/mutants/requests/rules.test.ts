/**
 * What decides whether a request may be signed, without each of its checks: at least one unit case must then fail. A check
 * that no case needs is superfluous or untested: both fail here, unless rules.ts gives the reason.
 */
import { describeMutants } from '../../../../harness/mutants/suite.ts';
import { subject } from './rules.ts';

describeMutants(subject, { mutants: 500, cases: 2_000, changeAnAnswer: 480 });
