import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { toolPath } from '../../tools/tools.ts';
import type { ControlPlane } from './control-plane.ts';
import { startProcess, temporaryFolder, waitUntilReady, type RunningProcess } from '../processes/processes.ts';

/** The in-tree controllers by their familiar names: their flag in this version, and how many loops each starts. */
const CONTROLLERS = {
  csrsigning: { flag: 'certificatesigningrequest-signing-controller', loops: 4 }, // one per built-in signer name
  csrapproving: { flag: 'certificatesigningrequest-approving-controller', loops: 1 },
  bootstrapsigner: { flag: 'bootstrap-signer-controller', loops: 1 },
  tokencleaner: { flag: 'token-cleaner-controller', loops: 1 },
};

export interface KubeControllerManagerOptions {
  controlPlane: ControlPlane;
  controllers: readonly (keyof typeof CONTROLLERS)[];
  /** The CA it signs with. Needed for `csrsigning` only. */
  signingCertPem?: string;
  signingKeyPem?: string;
  /** `--cluster-signing-duration`, such as `8760h`, which is its default. */
  duration?: string;
  /** `--kube-api-qps` and `--kube-api-burst`; without them its own defaults, 20 and 30. */
  qps?: number;
  burst?: number;
}

/**
 * The reference: the real kube-controller-manager, reduced to its CSR and bootstrap token controllers. Resolves when they watch.
 * It logs in as a user of its own, found in the audit log as `KUBE_CONTROLLER_MANAGER_USER`.
 */
export async function startKubeControllerManager(options: KubeControllerManagerOptions): Promise<RunningProcess> {
  const { controlPlane, controllers } = options;
  await grantControllerRoles(controlPlane, controllers);
  const folder = temporaryFolder('controller-manager');
  const signingCert = join(folder.path, 'ca.crt');
  const signingKey = join(folder.path, 'ca.key');
  if (options.signingCertPem !== undefined) writeFileSync(signingCert, options.signingCertPem);
  if (options.signingKeyPem !== undefined) writeFileSync(signingKey, options.signingKeyPem, { mode: 0o600 });

  const server = startProcess({
    name: 'kube-controller-manager',
    command: await toolPath('kube-controller-manager'),
    logPath: join(folder.path, 'kube-controller-manager.log'),
    args: [
      `--kubeconfig=${await controlPlane.kubeconfigFor({ user: KUBE_CONTROLLER_MANAGER_USER })}`,
      `--controllers=${controllers.map((name) => CONTROLLERS[name].flag).join(',')}`,
      '--leader-elect=false',
      '--secure-port=0',
      ...(options.signingCertPem === undefined ? [] : [`--cluster-signing-cert-file=${signingCert}`]),
      ...(options.signingKeyPem === undefined ? [] : [`--cluster-signing-key-file=${signingKey}`]),
      ...(options.duration === undefined ? [] : [`--cluster-signing-duration=${options.duration}`]),
      ...(options.qps === undefined ? [] : [`--kube-api-qps=${options.qps}`]),
      ...(options.burst === undefined ? [] : [`--kube-api-burst=${options.burst}`]),
    ],
  });
  const stop = async (signal?: 'SIGTERM' | 'SIGKILL') => {
    await server.stop(signal);
    folder.remove();
  };
  try {
    // It has no health endpoint without a secure port, but each loop logs when it has the list and watches.
    const loops = controllers.reduce((sum, name) => sum + CONTROLLERS[name].loops, 0);
    await waitUntilReady(server, () => server.logTail(10_000).split('Caches are synced').length > loops);
  } catch (error) {
    await stop();
    throw error;
  }
  return { ...server, stop };
}

export const KUBE_CONTROLLER_MANAGER_USER = 'test:kube-controller-manager';

/** Exactly the rights the in-tree controllers have: their own built-in roles, given to our user. */
async function grantControllerRoles(
  controlPlane: ControlPlane,
  controllers: readonly (keyof typeof CONTROLLERS)[],
): Promise<void> {
  await bind(controlPlane, { kind: 'ClusterRole', name: 'system:controller:certificate-controller' });
  // Their informers list everything in all namespaces, with the rights of the process and not of a single controller.
  if (controllers.some((name) => name === 'bootstrapsigner' || name === 'tokencleaner'))
    await bind(controlPlane, { kind: 'ClusterRole', name: 'system:kube-controller-manager' });
  const bootstrap = [
    { controller: 'bootstrapsigner', namespace: 'kube-system', name: 'system:controller:bootstrap-signer' },
    { controller: 'bootstrapsigner', namespace: 'kube-public', name: 'system:controller:bootstrap-signer' },
    { controller: 'tokencleaner', namespace: 'kube-system', name: 'system:controller:token-cleaner' },
  ] as const;
  for (const { controller, namespace, name } of bootstrap)
    if (controllers.includes(controller)) await bind(controlPlane, { kind: 'Role', name, namespace });
}

async function bind(
  controlPlane: ControlPlane,
  { kind, name, namespace }: { kind: 'Role' | 'ClusterRole'; name: string; namespace?: string },
): Promise<void> {
  const group = '/apis/rbac.authorization.k8s.io/v1';
  const path = namespace === undefined ? 'clusterrolebindings' : `namespaces/${namespace}/rolebindings`;
  const response = await controlPlane.admin.request(`${group}/${path}`, {
    method: 'POST',
    body: {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: `${kind}Binding`,
      metadata: { name: `${KUBE_CONTROLLER_MANAGER_USER}:${name}` },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind, name },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: KUBE_CONTROLLER_MANAGER_USER }],
    },
  });
  const alreadyGranted = response.status === 409;
  if (response.status !== 201 && !alreadyGranted) throw new Error(`${kind} binding: ${response.text}`);
}
