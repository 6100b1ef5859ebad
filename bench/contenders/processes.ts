/** Starts each contender as an operator would. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ControlPlane } from '../../test/harness/kubernetes/control-plane.ts';
import { startKubeControllerManager } from '../../test/harness/kubernetes/controller-manager.ts';
import { freePort, startProcess, temporaryFolder, waitUntilReady } from '../../test/harness/processes/processes.ts';
import type { RunningProcess } from '../../test/harness/processes/processes.ts';
import { createTestAuthority } from '../../test/harness/x509/test-certificates.ts';
import type { RunningContender, StartOptions, Surroundings } from './contender.ts';
import { attestedSigner } from './fake-aws.ts';
import type { FakeAws } from './fake-aws.ts';
import type { ProcessGroup } from '../measure/process-usage.ts';

const ownRoot = join(import.meta.dirname, '../..');

/** What makes the two processes differ from their defaults. */
export interface TwoProcessesSetup {
  /** The checkout whose programs are started. */
  readonly root?: string;
  /** Path of a countersign.yaml for both. */
  readonly configuration?: string;
  /** The STS and EC2 that attest calls. */
  readonly aws?: FakeAws;
}

/** The dev server, as `npm run dev -- --data DIR` starts it, and the relay. Every write is synced to the disk. */
export async function startTwoProcesses(
  controlPlane: ControlPlane,
  options: StartOptions,
  { root = ownRoot, configuration, aws }: TwoProcessesSetup = {},
): Promise<RunningContender> {
  const configArgs = configuration === undefined ? [] : [`--config=${configuration}`];
  const running = await startAll(async (folder, processes) => {
    const kubeconfig = await relayKubeconfig(controlPlane);
    const port = await freePort();
    const url = `http://127.0.0.1:${port}/v1/clusters/bench`;
    const data = join(folder, 'data');
    const args = [`--port=${port}`, '--cluster=bench', `--data=${data}`, ...configArgs];
    const server = startNode('sign-server', join(root, 'dev/serve.ts'), args, folder, options, aws?.environment);
    processes.push(server);
    await waitUntilReady(server, async () => (await fetch(`${url}/healthz`)).ok);
    const relayArgs = [`--url=${url}`, `--kubeconfig=${kubeconfig}`, '--metrics-address=127.0.0.1:0', ...configArgs];
    processes.push(startNode('relay', relayProgram(root), relayArgs, folder, options));
    return (await fetch(`${url}/trust-bundle`)).text();
  });
  return aws === undefined ? running : { ...running, besides: [groupOf(aws.process)] };
}

/** Only the relay: the functions are deployed already. */
export async function startBesideLocalStack(
  { controlPlane, localStack }: Surroundings,
  options: StartOptions,
  as: 'signer' | 'approver',
): Promise<RunningContender> {
  if (localStack === undefined) throw new Error('there is no LocalStack');
  const { relayArgs, relayEnvironment, requireAttestation, caPem, handlers, emulator, kmsMilliseconds } = localStack;
  const running = await startAll(async (folder, processes) => {
    const args = [
      ...relayArgs,
      ...(as === 'approver' ? await requireAttestation() : []),
      `--kubeconfig=${await relayKubeconfig(controlPlane)}`,
      '--metrics-address=127.0.0.1:0',
    ];
    processes.push(startNode('relay', relayProgram(ownRoot), args, folder, options, relayEnvironment));
    return caPem;
  });
  return { ...running, groups: [handlers, ...running.groups], besides: [emulator], kmsMilliseconds };
}

/** The same code in one process, without HTTP between relay and rules: the difference is what HTTP costs. */
export async function startOneProcess(controlPlane: ControlPlane, options: StartOptions): Promise<RunningContender> {
  return startAll(async (folder, processes) => {
    const args = [await relayKubeconfig(controlPlane), join(folder, 'data')];
    const server = startNode('one-process', join(import.meta.dirname, 'one-process.ts'), args, folder, options);
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
  // The same kind of CA key as Countersign's, so that a signature costs both the same.
  const { certificatePem, keyPem } = await createTestAuthority('bench reference ca');
  const server = await startKubeControllerManager({
    controlPlane,
    controllers,
    signingCertPem: certificatePem,
    signingKeyPem: keyPem,
    ...throttle,
  });
  return {
    processes: [server],
    groups: [groupOf(server)],
    besides: [],
    caPem: certificatePem,
    stop: () => server.stop(),
  };
}

/** Runs `start`. If it fails, the processes that it started are stopped. */
async function startAll(
  start: (folder: string, processes: RunningProcess[]) => Promise<string>,
): Promise<RunningContender> {
  const folder = temporaryFolder('bench');
  const processes: RunningProcess[] = [];
  const stop = async (): Promise<void> => {
    for (const process of processes.toReversed()) await process.stop();
    folder.remove();
  };
  try {
    const caPem = await start(folder.path, processes);
    return { caPem, processes, groups: processes.map(groupOf), besides: [], stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function groupOf({ name, pid }: RunningProcess): ProcessGroup {
  return { name, pids: () => [pid] };
}

function startNode(
  name: string,
  program: string,
  args: readonly string[],
  folder: string,
  { profile }: StartOptions,
  env: Readonly<Record<string, string>> = {},
): RunningProcess {
  const file = `${profile?.of}-${name}-${Date.now()}.cpuprofile`;
  const profiling =
    profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profile.folder}`, `--cpu-prof-name=${file}`];
  return startProcess({
    name,
    command: process.execPath,
    args: [...profiling, program, ...args],
    logPath: join(folder, `${name}.log`),
    env: { ...process.env, ...env },
  });
}

function relayProgram(root: string): string {
  return join(root, 'lambdas/watch-relay/index.ts');
}

const relayUser = 'bench:watch-relay';

/**
 * The relay has the in-tree signer's own role, so that authorization costs the API server the same for each contender,
 * and may approve and sign for the signer that demands evidence.
 */
async function relayKubeconfig(controlPlane: ControlPlane): Promise<string> {
  const attested = 'bench:attested-signer';
  const rules = [
    {
      apiGroups: ['certificates.k8s.io'],
      resources: ['signers'],
      resourceNames: [attestedSigner],
      verbs: ['approve', 'sign'],
    },
  ];
  await ensure(controlPlane, 'ClusterRole', attested, { rules });
  for (const role of ['system:controller:certificate-controller', attested])
    await ensure(controlPlane, 'ClusterRoleBinding', `${relayUser}:${role}`, {
      roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: role },
      subjects: [{ apiGroup: rbac, kind: 'User', name: relayUser }],
    });
  return controlPlane.kubeconfigFor({ user: relayUser });
}

const rbac = 'rbac.authorization.k8s.io';

/** Creates it unless it exists. */
export async function ensure(
  { admin }: ControlPlane,
  kind: 'ClusterRole' | 'ClusterRoleBinding',
  name: string,
  content: object,
): Promise<void> {
  const body = { apiVersion: `${rbac}/v1`, kind, metadata: { name }, ...content };
  const { status, text } = await admin.request(`/apis/${rbac}/v1/${kind.toLowerCase()}s`, { method: 'POST', body });
  if (status !== 201 && status !== 409) throw new Error(`${kind} ${name}: ${text}`);
}
