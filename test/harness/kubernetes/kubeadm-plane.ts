/**
 * A control plane that the real kubeadm made: its certificates, kubeconfigs and manifests, and the servers started with the flags in
 * those manifests. Changed in them: paths, and ports and addresses, since everything is on the loopback interface.
 */
import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { parse } from 'yaml';
import { kubernetesVersion } from '../../tools/pins.ts';
import { toolPath } from '../../tools/tools.ts';
import { createApiClient, type ApiClient } from './api-client.ts';
import {
  freePort,
  startProcess,
  temporaryFolder,
  waitUntilReady,
  type RunningProcess,
} from '../processes/processes.ts';
import { releaseAddress } from './kubelet.ts';
import type { KeyAndCertificate } from '../x509/test-certificates.ts';

/** As `encryptionAlgorithm` of kubeadm's ClusterConfiguration. */
export type KubeadmKeys = 'RSA-2048' | 'RSA-3072' | 'RSA-4096' | 'ECDSA-P256' | 'ECDSA-P384';

type Component = 'etcd' | 'kube-apiserver' | 'kube-controller-manager';

export interface KubeadmPlane {
  /** Removed by `stop`. */
  readonly dir: string;
  /** Path of the configuration of this node, `cp1`. */
  readonly kubeadmConfiguration: string;
  /** Stands for /etc/kubernetes. */
  readonly etc: string;
  readonly url: string;
  readonly servingCaPem: string;
  /** Kubeconfig of the super-admin, which kubeadm made. */
  readonly adminKubeconfig: string;
  readonly admin: ApiClient;
  /** A shell script in which /etc/kubernetes is `etc`, and all else in /etc the machine's. For `execFile`. */
  wrap(script: string): readonly [string, ...string[]];
  /** Runs kubeadm with the configuration that made this control plane. Standard output. */
  kubeadm(...args: readonly string[]): Promise<string>;
  kubectl(args: readonly string[]): Promise<string>;
  client(login: KeyAndCertificate): ApiClient;
  /** Ends the server if it runs, and starts it with the flags that its manifest has now: as the kubelet does. */
  restart(component: Component): Promise<void>;
  stop(): Promise<void>;
}

/** Mounts, and an address on the loopback interface, need root. */
export const noKubeadmPlane = process.getuid?.() !== 0;

/** In a mount namespace where /etc/kubernetes is `etc`, and everything else of /etc the machine's. `scratch`: an empty folder. */
export function withEtcKubernetes(etc: string, scratch: string): KubeadmPlane['wrap'] {
  return (script) => [
    'unshare',
    '--mount',
    'bash',
    '--norc',
    '-euo',
    'pipefail',
    '-c',
    `mkdir -p "${scratch}" && mount --bind /etc "${scratch}" && mount -t tmpfs none /etc
     for entry in "${scratch}"/*; do [ "$entry" = "${scratch}/kubernetes" ] || ln -s "$entry" /etc/; done
     mkdir /etc/kubernetes && mount --bind "${etc}" /etc/kubernetes
     exec bash --norc -euo pipefail -c "$1"`,
    'bash',
    script,
  ];
}

/** etcd and kube-apiserver run; `restart` starts kube-controller-manager. `address`: claimed by the caller, released by `stop`. */
export async function startKubeadmPlane(keys: KubeadmKeys, address: string): Promise<KubeadmPlane> {
  const folder = temporaryFolder('kubeadm-plane');
  const dir = folder.path;
  const etc = join(dir, 'kubernetes');
  mkdirSync(etc);
  const [port, etcdPort, peerPort] = [await freePort(), await freePort(), await freePort()];
  const url = `https://${address}:${port}`;
  const configuration = join(dir, 'kubeadm.yaml');
  writeFileSync(configuration, clusterConfiguration(keys, address, port));
  const wrap = withEtcKubernetes(etc, join(dir, 'etc'));
  const kubeadmPath = await toolPath('kubeadm');
  const kubeadm = async (...args: readonly string[]): Promise<string> => {
    const [command, ...rest] = wrap([kubeadmPath, ...args, '--config', configuration].map(shellQuoted).join(' '));
    return (await promisify(execFile)(command, rest, { timeout: 120_000 })).stdout;
  };
  const inEtc = (path: string): string => readFileSync(join(etc, path), 'utf8');
  let starts = 0;
  const running = new Map<Component, RunningProcess>();
  const own: Readonly<Record<Component, readonly string[]>> = {
    etcd: [
      `--data-dir=${join(dir, 'etcd')}`,
      `--listen-client-urls=https://127.0.0.1:${etcdPort}`,
      `--advertise-client-urls=https://127.0.0.1:${etcdPort}`,
      `--listen-peer-urls=https://127.0.0.1:${peerPort}`,
      `--initial-advertise-peer-urls=https://127.0.0.1:${peerPort}`,
      `--initial-cluster=cp1=https://127.0.0.1:${peerPort}`,
      '--listen-metrics-urls=',
      '--unsafe-no-fsync',
      '--log-level=warn',
    ],
    'kube-apiserver': [`--bind-address=${address}`, `--etcd-servers=https://127.0.0.1:${etcdPort}`],
    'kube-controller-manager': ['--secure-port=0', '--leader-elect=false', `--flex-volume-plugin-dir=${dir}`],
  };
  const stopAll = async (): Promise<void> => {
    await Promise.all([...running.values()].map((server) => server.stop('SIGKILL')));
    await releaseAddress(address);
    folder.remove();
  };
  try {
    await kubeadm('init', 'phase', 'certs', 'all');
    await kubeadm('init', 'phase', 'kubeconfig', 'all');
    await kubeadm('init', 'phase', 'etcd', 'local');
    await kubeadm('init', 'phase', 'control-plane', 'all');
    const servingCaPem = inEtc('pki/ca.crt');
    const client = (login: KeyAndCertificate): ApiClient => createApiClient({ url, caPem: servingCaPem, login });
    const admin = client(loginOf(inEtc('super-admin.conf')));
    const adminKubeconfig = join(etc, 'super-admin.conf');
    const isReady: Readonly<Record<Component, () => Promise<boolean>>> = {
      // Only clients of its own CA see its health.
      etcd: async () => true,
      'kube-apiserver': async () =>
        (await admin.request('/readyz')).status === 200 &&
        (await admin.request('/api/v1/namespaces/default')).status === 200,
      // Its signing controllers start together with the approver, unless they are off. The token cleaner is always on.
      'kube-controller-manager': async () => {
        const approves = !inEtc('manifests/kube-controller-manager.yaml').includes('-csrapproving');
        const line = approves ? 'name="csrapproving"' : 'Starting token cleaner controller';
        return running.get('kube-controller-manager')?.logTail(10_000).includes(line) === true;
      },
    };
    const restart = async (component: Component): Promise<void> => {
      // Everything is in etcd, which is not stopped.
      await running.get(component)?.stop('SIGKILL');
      if (component === 'kube-apiserver') admin.close();
      const server = startProcess({
        name: component,
        command: await toolPath(component),
        logPath: join(dir, `${component}-${++starts}.log`),
        args: changed(flagsOf(inEtc(`manifests/${component}.yaml`), etc), own[component]),
      });
      running.set(component, server);
      await waitUntilReady(server, isReady[component]);
    };
    const kubectlPath = await toolPath('kubectl');
    await restart('etcd');
    await restart('kube-apiserver');
    return {
      dir,
      kubeadmConfiguration: configuration,
      etc,
      url,
      servingCaPem,
      adminKubeconfig,
      admin,
      wrap,
      kubeadm,
      async kubectl(args) {
        const all = ['--kubeconfig', adminKubeconfig, `--cache-dir=${join(dir, 'kubectl-cache')}`, ...args];
        return (await promisify(execFile)(kubectlPath, all, { timeout: 60_000 })).stdout;
      },
      client,
      restart,
      async stop() {
        admin.close();
        await stopAll();
      },
    };
  } catch (error) {
    await stopAll();
    throw error;
  }
}

function clusterConfiguration(keys: KubeadmKeys, address: string, port: number): string {
  return `apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: { advertiseAddress: ${address}, bindPort: ${port} }
nodeRegistration: { name: cp1, criSocket: 'unix:///none' }
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v${kubernetesVersion}
encryptionAlgorithm: ${keys}
`;
}

/** Without the program itself. */
function flagsOf(manifest: string, etc: string): readonly string[] {
  const pod = parse(manifest) as { spec: { containers: { command: string[] }[] } };
  return pod.spec.containers[0]!.command.slice(1).map((flag) => flag.replaceAll('/etc/kubernetes', etc));
}

/** `own` replaces flags of the same name. An empty value removes one. */
function changed(flags: readonly string[], own: readonly string[]): string[] {
  const nameOf = (flag: string): string => flag.split('=')[0] ?? '';
  const replaced = new Set(own.map(nameOf));
  return [...flags.filter((flag) => !replaced.has(nameOf(flag))), ...own.filter((flag) => !flag.endsWith('='))];
}

/** The client certificate and key in a kubeconfig. */
export function loginOf(kubeconfig: string): KeyAndCertificate {
  const { users } = parse(kubeconfig) as { users: { user: Record<string, string> }[] };
  const text = (key: string): string => Buffer.from(users[0]?.user[key] ?? '', 'base64').toString();
  return { certificatePem: text('client-certificate-data'), keyPem: text('client-key-data') };
}

function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
