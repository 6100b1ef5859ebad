import { execFile } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { inContinuousIntegration, requireTools, toolPath, type ToolName } from '../../tools/tools.ts';
import type { ControlPlane } from './control-plane.ts';
import {
  freePort,
  guard,
  startProcess,
  temporaryFolder,
  waitUntilReady,
  type RunningProcess,
} from '../processes/processes.ts';

/*
 * A machine of a cluster: an address of its own on the loopback interface, Debian's containerd and a real kubelet, all
 * as root. Both run in a mount namespace of their own, so that whatever a kubelet mounts ends with it, and so that what
 * it writes outside of its folders (kernel settings, /var/lib/kubelet/device-plugins, /var/log) is not this machine's.
 */

/** For the top of a suite, like `requireTools`: the tools, and what else a kubelet needs of the machine it runs on. */
export async function requireKubelet(...names: ToolName[]): Promise<{ skip: boolean }> {
  const reason = await unfit();
  if (reason !== undefined) {
    if (inContinuousIntegration()) throw new Error(`CI must be able to run a kubelet: ${reason}`);
    console.warn(`Skipped, because a kubelet cannot run here: ${reason}`);
    return { skip: true };
  }
  return requireTools('etcd', 'kube-apiserver', 'kubectl', 'kubelet', ...names);
}

async function unfit(): Promise<string | undefined> {
  if (process.platform !== 'linux') return 'it needs Linux';
  if (process.getuid?.() !== 0) return 'it needs root, for mounts and an address on the loopback interface';
  for (const [command, ...args] of [
    ['containerd', '--version'],
    ['ip', '-Version'],
    ['unshare', '--mount', 'mount', '-t', 'tmpfs', 'tmpfs', '/mnt'],
  ] as const) {
    try {
      await promisify(execFile)(command, args);
    } catch {
      return `\`${[command, ...args].join(' ')}\` fails (apt-get install containerd iproute2)`;
    }
  }
  return undefined;
}

export interface Machine {
  /** As the cloud would give it: no other machine has it, and the API server can reach it. */
  readonly address: string;
  /** Removed by `stop`; tests may put files of their own here. */
  readonly dir: string;
  /** `ctr` of its containerd, in the namespace of the kubelet. Returns standard output. */
  ctr(...args: readonly string[]): Promise<string>;
  startKubelet(options: KubeletOptions): Promise<Kubelet>;
  /** Also the kubelets that still run. Once is enough. */
  stop(): Promise<void>;
}

export interface KubeletOptions {
  readonly plane: Pick<ControlPlane, 'url' | 'servingCaPem'>;
  readonly nodeName: string;
  /** For the kubelet's own TLS bootstrap: the token it comes with. */
  readonly bootstrapToken?: string;
  /** Instead: a kubeconfig that is there already. */
  readonly kubeconfig?: string;
  /** Drop-ins, which win over all the rest: what a program that joins machines writes. */
  readonly configDir?: string;
  /** KubeletConfiguration, beside and before ours. */
  readonly configuration?: Readonly<Record<string, unknown>>;
  readonly env?: Readonly<Record<string, string>>;
}

export interface Kubelet {
  readonly process: RunningProcess;
  readonly port: number;
  /** Where its TLS bootstrap keeps keys and certificates. */
  readonly certDir: string;
  /** PEM of the client certificate that its bootstrap and rotation keep, once there is one. */
  clientCertificate(): string | undefined;
  stop(): Promise<void>;
}

/**
 * containerd is ready in about a second. The caller stops what it started, in `afterAll`. `sandboxImage` is needed where pods run: it must
 * be imported before.
 */
export async function startMachine(sandboxImage?: string): Promise<Machine> {
  const folder = temporaryFolder('machine');
  const dir = folder.path;
  const address = await claimAddress();
  const running: RunningProcess[] = [];
  let stopped: Promise<void> | undefined;
  const end = async (): Promise<void> => {
    for (const server of running.toReversed()) await server.stop();
    await releaseAddress(address);
    folder.remove();
  };
  const stop = (): Promise<void> => (stopped ??= end());
  try {
    const isolation = writeIsolation(dir);
    const socket = join(dir, 'containerd.sock');
    const containerd = startProcess({
      name: 'containerd',
      command: 'unshare',
      args: [...isolation, 'containerd', '--config', writeContainerdFiles(dir, socket, sandboxImage)],
      logPath: join(dir, 'containerd.log'),
    });
    running.push(containerd);
    await waitUntilReady(containerd, () => existsSync(socket));
    let kubelets = 0;
    return {
      address,
      dir,
      async ctr(...args) {
        const { stdout } = await promisify(execFile)('ctr', ['--address', socket, '--namespace', 'k8s.io', ...args]);
        return stdout;
      },
      async startKubelet(options) {
        const home = join(dir, `kubelet-${++kubelets}`);
        mkdirSync(join(home, 'pki'), { recursive: true });
        const port = await freePort();
        const kubelet = startProcess({
          name: 'kubelet',
          command: 'unshare',
          args: [...isolation, await toolPath('kubelet'), ...kubeletArgs({ ...options, home, socket, address, port })],
          env: { ...process.env, ...options.env },
          logPath: join(home, 'log'),
        });
        running.push(kubelet);
        const certDir = join(home, 'pki');
        return {
          process: kubelet,
          port,
          certDir,
          clientCertificate() {
            const path = join(certDir, 'kubelet-client-current.pem');
            return existsSync(path) ? readFileSync(path, 'utf8') : undefined;
          },
          stop: () => kubelet.stop(),
        };
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** What is still there of a machine: mounts, its address, its folder. */
export function leftovers({ address, dir }: Machine): string[] {
  const mounts = readFileSync('/proc/mounts', 'utf8').split('\n');
  const addresses = Object.values(networkInterfaces()).flatMap((of) => of?.map((each) => each.address) ?? []);
  return [
    ...mounts.filter((line) => line.includes(dir)),
    ...addresses.filter((each) => each === address),
    ...(existsSync(dir) ? [dir] : []),
  ];
}

/** An alias on lo: the API server calls no kubelet at a loopback address. Adding one that is there already fails. */
export async function claimAddress(): Promise<string> {
  for (let attempt = 1; ; attempt++) {
    const address = `10.99.0.${randomInt(1, 255)}`;
    guard(`+address ${address}/32`);
    try {
      await promisify(execFile)('ip', ['address', 'add', `${address}/32`, 'dev', 'lo']);
      return address;
    } catch (error) {
      guard(`-address ${address}/32`); // another test has it
      if (attempt === 20) throw error;
    }
  }
}

export async function releaseAddress(address: string): Promise<void> {
  await promisify(execFile)('ip', ['address', 'del', `${address}/32`, 'dev', 'lo']);
  guard(`-address ${address}/32`);
}

/** What a kubelet sets in /proc/sys when it starts, and would leave behind. */
const kernelSettings = [
  'vm/overcommit_memory',
  'vm/panic_on_oom',
  'kernel/panic',
  'kernel/panic_on_oops',
  'kernel/keys/root_maxkeys',
  'kernel/keys/root_maxbytes',
];

/** Arguments of `unshare` before the command: mounts of its own, and files of ours over what it would change. */
function writeIsolation(dir: string): string[] {
  const settings = kernelSettings
    .map((name) => ({ path: `/proc/sys/${name}`, ours: join(dir, name.replaceAll('/', '.')) }))
    .filter(({ path }) => existsSync(path));
  for (const { path, ours } of settings) writeFileSync(ours, readFileSync(path));
  const script = [
    'set -e',
    'mount -t tmpfs tmpfs /var/lib',
    'mount -t tmpfs tmpfs /var/log',
    ...settings.map(({ path, ours }) => `mount --bind ${ours} ${path}`),
    'exec "$@"',
  ].join('\n');
  // No fork anywhere: the process id is the server's own.
  return ['--mount', '--propagation', 'private', 'sh', '-c', script, 'sh'];
}

function writeContainerdFiles(dir: string, socket: string, sandboxImage: string | undefined): string {
  const [path, cni] = [join(dir, 'containerd.toml'), join(dir, 'cni')];
  mkdirSync(cni);
  // A node without a network plugin is NotReady. No pod runs here, so that naming one is enough.
  const plugins = [{ type: 'loopback' }];
  writeFileSync(join(cni, '10-test.conflist'), JSON.stringify({ cniVersion: '0.4.0', name: 'test', plugins }));
  const cri = 'plugins."io.containerd.grpc.v1.cri"';
  const lines = [
    'version = 2',
    `root = "${join(dir, 'containerd')}"`,
    `state = "${join(dir, 'containerd-state')}"`,
    'disabled_plugins = ["io.containerd.internal.v1.opt"]', // it makes /opt/containerd
    '[grpc]',
    `address = "${socket}"`,
    ...(sandboxImage === undefined
      ? []
      : [`[${cri}]`, `sandbox_image = "${sandboxImage}"`, 'restrict_oom_score_adj = true']),
    `[${cri}.containerd]`,
    'snapshotter = "native"',
    `[${cri}.cni]`,
    `bin_dir = "${cni}"`,
    `conf_dir = "${cni}"`,
  ];
  writeFileSync(path, `${lines.join('\n')}\n`);
  return path;
}

function kubeletArgs(options: KubeletOptions & { home: string; socket: string; address: string; port: number }) {
  const { plane, nodeName, bootstrapToken, home, socket, address, port } = options;
  const clientCa = join(home, 'client-ca.crt');
  writeFileSync(clientCa, plane.servingCaPem); // the harness's CA also issued the API server's login
  const configuration = {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    ...options.configuration,
    address,
    port,
    healthzPort: 0,
    containerRuntimeEndpoint: `unix://${socket}`,
    authentication: { anonymous: { enabled: false }, webhook: { enabled: true }, x509: { clientCAFile: clientCa } },
    authorization: { mode: 'Webhook' },
    failSwapOn: false,
    failCgroupV1: false,
    cgroupDriver: 'cgroupfs',
    // No cgroups of its own: they would stay, and there are no pods.
    cgroupsPerQOS: false,
    enforceNodeAllocatable: ['none'], // an empty list is forgotten where there are drop-ins
    makeIPTablesUtilChains: false,
    podLogsDir: join(home, 'pod-logs'),
    volumePluginDir: join(home, 'volume-plugins'),
  };
  const configPath = join(home, 'config.yaml');
  writeFileSync(configPath, JSON.stringify(configuration));
  const bootstrap = join(home, 'bootstrap.kubeconfig');
  if (bootstrapToken !== undefined) writeTokenKubeconfig(bootstrap, plane, bootstrapToken);
  return [
    `--config=${configPath}`,
    ...(bootstrapToken === undefined ? [] : [`--bootstrap-kubeconfig=${bootstrap}`]),
    ...(options.configDir === undefined ? [] : [`--config-dir=${options.configDir}`]),
    `--kubeconfig=${options.kubeconfig ?? join(home, 'kubeconfig')}`,
    `--cert-dir=${join(home, 'pki')}`,
    `--root-dir=${join(home, 'root')}`,
    `--hostname-override=${nodeName}`,
    `--node-ip=${address}`,
    '--v=2',
  ];
}

function writeTokenKubeconfig(path: string, plane: KubeletOptions['plane'], token: string): void {
  const cluster = {
    server: plane.url,
    'certificate-authority-data': Buffer.from(plane.servingCaPem).toString('base64'),
  };
  const kubeconfig = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'bootstrap',
    contexts: [{ name: 'bootstrap', context: { cluster: 'bootstrap', user: 'bootstrap' } }],
    clusters: [{ name: 'bootstrap', cluster }],
    users: [{ name: 'bootstrap', user: { token } }],
  };
  writeFileSync(path, JSON.stringify(kubeconfig), { mode: 0o600 });
}
