/** The next minor version of kubeadm, and more renewals that are killed. */
import { requireTools } from '../../../tools/tools.ts';
import { describeControlPlane } from './story.ts';

const { skip } = await requireTools('etcd', 'kube-apiserver', 'kubectl', 'kubeadm-1.37');

describeControlPlane('kubeadm-1.37', { skip, kills: 16 });
