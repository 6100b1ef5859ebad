/** What operators may have signed for kubeadm's control plane, without each of its checks: at least one case must then fail. */
import { describeMutants } from '../../../../harness/mutants/suite.ts';
import { subject } from './kubeadm.ts';

describeMutants(subject, { mutants: 90, cases: 100, changeAnAnswer: 70 });
