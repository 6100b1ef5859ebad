/** What stands in for kube-apiserver is right because the real one passes the same suites. The demo runs on the real one too. */
import { afterAll, beforeAll, describe } from 'vitest';
import { connectKubernetes } from '../../../../adapters/kubernetes/api.ts';
import { csrApiContract } from '../../../contract/csr-api.ts';
import { requestApiContract } from '../../../contract/request-api.ts';
import { startControlPlane, type ControlPlane } from '../../../harness/kubernetes/control-plane.ts';
import { csrPath } from '../../../harness/stack/requests.ts';
import { requireTools } from '../../../tools/tools.ts';
import { demo } from './demo.ts';

const { skip } = await requireTools('etcd', 'kube-apiserver');

describe.skipIf(skip)('on a real control plane', () => {
  let plane: ControlPlane;
  beforeAll(async () => {
    plane = await startControlPlane();
  });
  afterAll(() => plane?.stop());

  // First: the contracts leave requests.
  describe('the demo', () => {
    demo(() => plane);
  });

  csrApiContract('kube-apiserver', () =>
    Promise.resolve({ request: (...call) => plane.admin.request(...call), close: () => Promise.resolve() }),
  );

  requestApiContract('kube-apiserver', () => {
    const kubernetes = connectKubernetes({ kind: 'kubeconfig', path: plane.adminKubeconfig });
    return Promise.resolve({
      api: kubernetes.requests,
      create: async (body) => {
        await plane.admin.expectOk(csrPath, { method: 'POST', body });
      },
      close: () => kubernetes.close(),
    });
  });
});
