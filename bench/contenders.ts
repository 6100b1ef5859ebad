/** Who is measured, and how an operator would start each. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ControlPlane } from '../test/harness/control-plane.ts';
import { startKubeControllerManager } from '../test/harness/controller-manager.ts';
import { freePort, startProcess, temporaryFolder, waitUntilReady } from '../test/harness/processes.ts';
import type { RunningProcess } from '../test/harness/processes.ts';
import { createTestAuthority } from '../test/harness/test-certificates.ts';

export const contenderNames = ['countersign', 'one-process', 'kcm-unthrottled', 'kcm-default'] as const;
export type ContenderName = (typeof contenderNames)[number];

export interface Contender {
  readonly name: ContenderName;
  readonly label: string;
  /** What its own settings keep it below, so that the benchmark has the patience. */
  readonly ceilingPerSecond?: number;
  start(controlPlane: ControlPlane, options: StartOptions): Promise<RunningContender>;
}

export interface StartOptions {
  /** Node writes a CPU profile of each of our processes there when it ends. */
  readonly profileFolder?: string;
}

export interface RunningContender {
  /** In the order started. */
  readonly processes: readonly RunningProcess[];
  /** Whose certificates its own must be. */
  readonly caPem: string;
  stop(): Promise<void>;
}

export const contenders: readonly Contender[] = [
  { name: 'countersign', label: 'Countersign: relay + sign server', start: startTwoProcesses },
  { name: 'one-process', label: 'Countersign: all in one process', start: startOneProcess },
  {
    name: 'kcm-unthrottled',
    label: 'kube-controller-manager, qps 2000',
    start: (controlPlane) => startReference(controlPlane, { qps: 2_000, burst: 4_000 }),
  },
  {
    name: 'kcm-default',
    label: 'kube-controller-manager, default',
    ceilingPerSecond: 20,
    start: (controlPlane) => startReference(controlPlane, {}),
  },
];

const root = join(import.meta.dirname, '..');

/**
 * The dev server, as `npm run dev -- --data DIR` starts it, and the relay beside it. Every write is on the disk.
 * `configuration`: a countersign.yaml for both.
 */
export async function startTwoProcesses(
  controlPlane: ControlPlane,
  options: StartOptions,
  configuration?: string,
): Promise<RunningContender> {
  const configured = configuration === undefined ? [] : [`--config=${configuration}`];
  return starting(async (folder, processes) => {
    const kubeconfig = await relayKubeconfig(controlPlane);
    const port = await freePort();
    const url = `http://127.0.0.1:${port}/v1/clusters/bench`;
    const data = join(folder, 'data');
    const args = [`--port=${port}`, '--cluster=bench', `--data=${data}`, ...configured];
    const server = startNode('sign-server', 'dev/serve.ts', args, folder, options);
    processes.push(server);
    await waitUntilReady(server, async () => (await fetch(`${url}/healthz`)).ok);
    const relayArgs = [`--url=${url}`, `--kubeconfig=${kubeconfig}`, '--metrics-address=127.0.0.1:0', ...configured];
    processes.push(startNode('relay', 'lambdas/watch-relay/index.ts', relayArgs, folder, options));
    return (await fetch(`${url}/trust-bundle`)).text();
  });
}

/** The same code in one process with nothing between relay and rules: what HTTP and the second process cost. */
async function startOneProcess(controlPlane: ControlPlane, options: StartOptions): Promise<RunningContender> {
  return starting(async (folder, processes) => {
    const args = [await relayKubeconfig(controlPlane), join(folder, 'data')];
    const server = startNode('one-process', 'bench/one-process.ts', args, folder, options);
    processes.push(server);
    const bundle = (): string => readFileSync(join(folder, 'data', 'ca.crt'), 'utf8');
    await waitUntilReady(server, () => bundle().endsWith('\n'));
    return bundle();
  });
}

export async function startReference(
  controlPlane: ControlPlane,
  throttle: { qps?: number; burst?: number },
  controllers: readonly ('csrapproving' | 'csrsigning')[] = ['csrsigning'],
): Promise<RunningContender> {
  // The kind of key that our CA has: the signature costs both the same.
  const { certificatePem, keyPem } = await createTestAuthority('bench reference ca');
  const server = await startKubeControllerManager({
    controlPlane,
    controllers,
    signingCertPem: certificatePem,
    signingKeyPem: keyPem,
    ...throttle,
  });
  return { processes: [server], caPem: certificatePem, stop: () => server.stop() };
}

/** Whatever was started before something failed is stopped. */
async function starting(
  start: (folder: string, processes: RunningProcess[]) => Promise<string>,
): Promise<RunningContender> {
  const folder = temporaryFolder('bench');
  const processes: RunningProcess[] = [];
  const stop = async (): Promise<void> => {
    for (const process of processes.toReversed()) await process.stop();
    folder.remove();
  };
  try {
    return { caPem: await start(folder.path, processes), processes, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function startNode(
  name: string,
  program: string,
  args: readonly string[],
  folder: string,
  { profileFolder }: StartOptions,
): RunningProcess {
  const file = `--cpu-prof-name=${name}-${Date.now()}.cpuprofile`;
  const profiling = profileFolder === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profileFolder}`, file];
  return startProcess({
    name,
    command: process.execPath,
    args: [...profiling, join(root, program), ...args],
    logPath: join(folder, `${name}.log`),
  });
}

const relayUser = 'bench:watch-relay';

/** The relay works under the in-tree signer's own role, so that authorisation costs the API server the same. */
async function relayKubeconfig(controlPlane: ControlPlane): Promise<string> {
  const path = '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings';
  const apiGroup = 'rbac.authorization.k8s.io';
  const binding = {
    apiVersion: `${apiGroup}/v1`,
    kind: 'ClusterRoleBinding',
    metadata: { name: relayUser },
    roleRef: { apiGroup, kind: 'ClusterRole', name: 'system:controller:certificate-controller' },
    subjects: [{ apiGroup, kind: 'User', name: relayUser }],
  };
  const { status, text } = await controlPlane.admin.request(path, { method: 'POST', body: binding });
  if (status !== 201 && status !== 409) throw new Error(`cluster role binding: ${text}`);
  return controlPlane.kubeconfigFor({ user: relayUser });
}
