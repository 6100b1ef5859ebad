import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ApiClient } from '../../../harness/kubernetes/api-client.ts';
import { postNodeRequest } from '../../../harness/stack/approval.ts';
import { startControlPlane, type ControlPlane } from '../../../harness/kubernetes/control-plane.ts';
import {
  KUBE_CONTROLLER_MANAGER_USER,
  startKubeControllerManager,
} from '../../../harness/kubernetes/controller-manager.ts';
import type { RunningProcess } from '../../../harness/processes/processes.ts';
import { untilGranted } from '../../../harness/kubernetes/rights.ts';
import { eventually, settled } from '../../../harness/stack/requests.ts';
import { createTestAuthority } from '../../../harness/x509/test-certificates.ts';
import { requireTools } from '../../../tools/tools.ts';
import { callsOf } from './budget.ts';
import { apiCalls, difference, tally, type Counts } from './counted-world.ts';

const { skip } = await requireTools('etcd', 'kube-apiserver', 'kubectl', 'kube-controller-manager');
const many = 20;

/** What we are compared with, counted in the same log. */
describe.skipIf(skip)('calls of the real kube-controller-manager', () => {
  let plane: ControlPlane;
  let manager: RunningProcess;
  let node: ApiClient;

  beforeAll(async () => {
    plane = await startControlPlane();
    const ca = await createTestAuthority('in-tree ca');
    manager = await startKubeControllerManager({
      controlPlane: plane,
      controllers: ['csrsigning', 'csrapproving'],
      signingCertPem: ca.certificatePem,
      signingKeyPem: ca.keyPem,
    });
    const apiGroup = 'rbac.authorization.k8s.io';
    for (const role of ['system:node-bootstrapper', 'system:certificates.k8s.io:certificatesigningrequests:nodeclient'])
      await plane.admin.expectOk(`/apis/${apiGroup}/v1/clusterrolebindings`, {
        method: 'POST',
        body: {
          apiVersion: `${apiGroup}/v1`,
          kind: 'ClusterRoleBinding',
          metadata: { name: `test:${role}` },
          roleRef: { apiGroup, kind: 'ClusterRole', name: role },
          subjects: [{ apiGroup, kind: 'Group', name: 'system:bootstrappers' }],
        },
      });
    // kube-controller-manager reviews a request again when it may not approve it yet: one more call.
    const bootstrapper = { user: 'system:bootstrap:abcdef', groups: ['system:bootstrappers'] };
    const create = { verb: 'create', group: 'certificates.k8s.io', resource: 'certificatesigningrequests' };
    await untilGranted(plane, bootstrapper, create);
    await untilGranted(plane, bootstrapper, { ...create, subresource: 'nodeclient' });
    node = await plane.client(bootstrapper);
  });
  afterAll(async () => {
    node?.close();
    await manager?.stop();
    await plane?.stop();
  });

  const counted = (): Counts => tally(apiCalls(plane, KUBE_CONTROLLER_MANAGER_USER));

  test(`${many} nodes join: as many calls as our relay makes, to the API server`, async () => {
    const before = counted();
    const names = Array.from({ length: many }, (_, i) => `node-${i}`);
    await Promise.all(names.map((name) => postNodeRequest(node, name, name)));
    await settled(plane, names);
    const budget = callsOf(['inTree', many]);
    await eventually(() => sum(difference(counted(), before)) >= sum(budget), 'all of its calls are in the log');
    expect(difference(counted(), before)).toEqual(budget);
    const ours = Object.entries(callsOf(['pending', many])).filter(([call]) => call.startsWith('API server: '));
    expect(Object.fromEntries(ours)).toEqual(budget);
  });
});

function sum(counts: Counts): number {
  return Object.values(counts).reduce((total, count) => total + count, 0);
}
