/** The demo's stand-in is right because this, the real one, passes the same suite. */
import { csrApiContract } from '../../../contract/csr-api.ts';
import { startControlPlane } from '../../../harness/kubernetes/control-plane.ts';
import { requireTools } from '../../../tools/tools.ts';
import { describe } from 'vitest';

const { skip } = await requireTools('etcd', 'kube-apiserver');

describe.skipIf(skip)('on a real control plane', () => {
  csrApiContract('kube-apiserver', async () => {
    const plane = await startControlPlane();
    return { request: (...call) => plane.admin.request(...call), close: () => plane.stop() };
  });
});
