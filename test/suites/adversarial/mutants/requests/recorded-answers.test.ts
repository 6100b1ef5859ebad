/** The recorded answers see each mistake in the rules and in the certificate. */
import { describeMutants } from '../../../../harness/mutants/suite.ts';
import { subject } from './recorded-answers.ts';

describeMutants(subject, { mutants: 58, cases: 1 });
