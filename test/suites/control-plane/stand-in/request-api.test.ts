/** The API servers in memory are right because the real one passes the same suite by way of the adapter. */
import { describe } from 'vitest';
import { connectKubernetes } from '../../../../adapters/kubernetes/api.ts';
import { requestApiContract } from '../../../contract/request-api.ts';
import { startControlPlane } from '../../../harness/kubernetes/control-plane.ts';
import { requireTools } from '../../../tools/tools.ts';

const { skip } = await requireTools('etcd', 'kube-apiserver');

describe.skipIf(skip)('on a real control plane', () => {
  requestApiContract('kube-apiserver', async () => {
    const plane = await startControlPlane();
    const kubernetes = connectKubernetes({ kind: 'kubeconfig', path: plane.adminKubeconfig });
    return {
      api: kubernetes.requests,
      create: async (body) => {
        await plane.admin.expectOk('/apis/certificates.k8s.io/v1/certificatesigningrequests', { method: 'POST', body });
      },
      async close() {
        kubernetes.close();
        await plane.stop();
      },
    };
  });
});
