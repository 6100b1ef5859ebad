/**
 * The tpm provider without each of its checks: at least one named case must then have another answer. The checks of certificate
 * chains, which several providers share, are among those of x509-provider.ts.
 */
import { describeMutants } from '../../../harness/mutants/suite.ts';
import { subject } from './tpm-provider.ts';

describeMutants(subject, { mutants: 210, cases: 300, changeAnAnswer: 200 });
