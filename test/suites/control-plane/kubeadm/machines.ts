/**
 * Control-plane machines of the real kubeadm: each a folder that kubeadm takes for its root (`--rootfs`), with the real command line of
 * Countersign beside it, and an API server and etcd started from the files that lie there.
 */
import { execFile } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { freePort, startProcess, temporaryFolder, waitUntilReady } from '../../../harness/processes/processes.ts';
import type { RunningProcess } from '../../../harness/processes/processes.ts';
import { toolPath } from '../../../tools/tools.ts';

const call = promisify(execFile);
const commandLine = resolve(import.meta.dirname, '../../../../cli/countersign.mjs');

export interface Site {
  readonly folder: string;
  /** Of the CAs and the ledger. */
  readonly data: string;
  readonly config: string;
  readonly countersign: (...args: readonly string[]) => Promise<string>;
  readonly remove: () => void;
}

/** Cluster prod with its three CAs. `maxTtl`: of the certificates. */
export async function createSite(maxTtl: string): Promise<Site> {
  const folder = temporaryFolder('kubeadm');
  const [data, config] = [join(folder.path, 'data'), join(folder.path, 'countersign.yaml')];
  const site: Site = {
    folder: folder.path,
    data,
    config,
    async countersign(...args) {
      const environment = { ...process.env, COUNTERSIGN_CLUSTER: 'prod' };
      const where = ['--data', data, '--config', config];
      return (await call(process.execPath, [commandLine, ...args, ...where], { env: environment })).stdout;
    },
    remove: () => folder.remove(),
  };
  writeConfiguration(site, maxTtl);
  for (const ca of ['kubernetes', 'front-proxy', 'etcd']) await site.countersign('ca', 'init', '--name', ca);
  return site;
}

export function writeConfiguration({ config }: Site, maxTtl: string): void {
  writeFileSync(
    config,
    `version: 1
clusters:
  prod:
    cas:
      kubernetes: {subject: {commonName: kubernetes}, keySpec: RSA-2048}
      front-proxy: {subject: {commonName: front-proxy-ca}}
      etcd: {subject: {commonName: etcd-ca}}
    profiles: {kubernetes.io/kube-apiserver-client-kubelet: {ca: kubernetes}}
    kubeadm:
      cas: {kubernetes: kubernetes, frontProxy: front-proxy, etcd: etcd}
      apiServerNames: [10.96.0.1, k8s.example.com, 127.0.0.1]
      nodes: {cp-1: [10.0.0.11], cp-2: [10.0.0.12]}
      maxTtl: ${maxTtl}
`,
  );
}

export interface Machine {
  /** What it has as /. */
  readonly root: string;
  /** Its /etc/kubernetes. */
  readonly dir: string;
  /** Its kubeadm, which sees `root` as /. Standard output, then standard error. */
  readonly kubeadm: (...args: readonly string[]) => Promise<string>;
}

/** With its kubeadm configuration in /kubeadm.yaml. */
export function createMachine(
  { folder }: Site,
  program: string,
  { name, address, keys }: { readonly name: string; readonly address: string; readonly keys: string },
): Machine {
  const root = join(folder, name);
  const dir = join(root, 'etc/kubernetes');
  for (const each of [dir, join(root, 'tmp')]) mkdirSync(each, { recursive: true });
  writeFileSync(
    join(root, 'kubeadm.yaml'),
    `apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: ${address}, bindPort: 6443}
nodeRegistration: {name: ${name}, criSocket: unix:///none}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.36.3
controlPlaneEndpoint: k8s.example.com:6443
encryptionAlgorithm: ${keys}
networking: {serviceSubnet: 10.96.0.0/12}
apiServer: {certSANs: [127.0.0.1]}
`,
  );
  return {
    root,
    dir,
    async kubeadm(...args) {
      const { stdout, stderr } = await call(program, ['--rootfs', root, ...args], { timeout: 60_000 });
      return `${stdout}${stderr}`;
    },
  };
}

/** Each file of the machine's certificates, kubeconfigs and keys, by its path in /etc/kubernetes. */
export function filesOf({ dir }: Machine): ReadonlyMap<string, string> {
  const entries = readdirSync(dir, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const paths = entries.map(({ parentPath, name }) => join(parentPath, name).slice(dir.length + 1));
  // Manifests, and what an upgrade keeps of them.
  const ours = paths.filter((path) => !/^(manifests|tmp)\//.test(path));
  if (ours.length < 20) throw new Error('the machine has no certificates');
  return new Map(ours.toSorted().map((path) => [path, readFileSync(join(dir, path), 'utf8')]));
}

export interface Servers {
  readonly url: string;
  readonly etcdUrl: string;
  /** kubectl with this kubeconfig of the machine, against this server. */
  readonly kubectl: (kubeconfig: string, ...args: readonly string[]) => Promise<string>;
  readonly stop: () => Promise<void>;
}

/** etcd and kube-apiserver with the flags of kubeadm's manifests that name certificates. */
export async function startServers({ dir }: Machine, work: string, clusterData: string): Promise<Servers> {
  const pki = (path: string): string => join(dir, 'pki', path);
  const running: RunningProcess[] = [];
  const stop = async (): Promise<void> => {
    for (const server of running.toReversed()) await server.stop();
  };
  try {
    const [etcdPort, peerPort, port] = [await freePort(), await freePort(), await freePort()];
    const [etcdUrl, peerUrl, url] = [etcdPort, peerPort, port].map((each) => `https://127.0.0.1:${each}`) as [
      string,
      string,
      string,
    ];
    const etcd = startProcess({
      name: 'etcd',
      command: await toolPath('etcd'),
      logPath: join(work, `etcd-${etcdPort}.log`),
      args: [
        `--data-dir=${clusterData}`,
        '--name=cp-1',
        `--listen-client-urls=${etcdUrl}`,
        `--advertise-client-urls=${etcdUrl}`,
        `--listen-peer-urls=${peerUrl}`,
        `--initial-advertise-peer-urls=${peerUrl}`,
        `--initial-cluster=cp-1=${peerUrl}`,
        `--cert-file=${pki('etcd/server.crt')}`,
        `--key-file=${pki('etcd/server.key')}`,
        `--trusted-ca-file=${pki('etcd/ca.crt')}`,
        '--client-cert-auth',
        `--peer-cert-file=${pki('etcd/peer.crt')}`,
        `--peer-key-file=${pki('etcd/peer.key')}`,
        `--peer-trusted-ca-file=${pki('etcd/ca.crt')}`,
        '--peer-client-cert-auth',
        '--unsafe-no-fsync',
        '--log-level=warn',
      ],
    });
    running.push(etcd);
    // As the liveness probe of a kubeadm of long ago did: with the client certificate for health checks.
    await waitUntilReady(etcd, () =>
      curl(`${etcdUrl}/health`, pki('etcd/ca.crt'), pki('etcd/healthcheck-client')).then((text) =>
        text.includes('true'),
      ),
    );
    const api = startProcess({
      name: 'kube-apiserver',
      command: await toolPath('kube-apiserver'),
      logPath: join(work, `kube-apiserver-${port}.log`),
      args: [
        `--etcd-servers=${etcdUrl}`,
        `--etcd-cafile=${pki('etcd/ca.crt')}`,
        `--etcd-certfile=${pki('apiserver-etcd-client.crt')}`,
        `--etcd-keyfile=${pki('apiserver-etcd-client.key')}`,
        '--bind-address=127.0.0.1',
        `--secure-port=${port}`,
        `--tls-cert-file=${pki('apiserver.crt')}`,
        `--tls-private-key-file=${pki('apiserver.key')}`,
        `--client-ca-file=${pki('ca.crt')}`,
        `--kubelet-client-certificate=${pki('apiserver-kubelet-client.crt')}`,
        `--kubelet-client-key=${pki('apiserver-kubelet-client.key')}`,
        `--requestheader-client-ca-file=${pki('front-proxy-ca.crt')}`,
        '--requestheader-allowed-names=front-proxy-client',
        '--requestheader-username-headers=X-Remote-User',
        `--proxy-client-cert-file=${pki('front-proxy-client.crt')}`,
        `--proxy-client-key-file=${pki('front-proxy-client.key')}`,
        '--authorization-mode=Node,RBAC',
        '--enable-bootstrap-token-auth',
        `--service-account-key-file=${pki('sa.pub')}`,
        `--service-account-signing-key-file=${pki('sa.key')}`,
        '--service-account-issuer=https://kubernetes.default.svc.cluster.local',
        '--service-cluster-ip-range=10.96.0.0/12',
        '--disable-admission-plugins=ServiceAccount',
      ],
    });
    running.push(api);
    await waitUntilReady(api, () =>
      curl(`${url}/readyz`, pki('ca.crt'), pki('apiserver-kubelet-client')).then((text) => text === 'ok'),
    );
    return {
      url,
      etcdUrl,
      stop,
      async kubectl(kubeconfig, ...args) {
        const login = ['--kubeconfig', join(dir, kubeconfig), '--server', url, `--cache-dir=${join(work, 'kubectl')}`];
        return (await call(await toolPath('kubectl'), [...login, ...args], { timeout: 60_000 })).stdout;
      },
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** `pair`: path of certificate and key, without their endings. The answer; empty if there is none. */
export async function curl(url: string, caFile: string, pair: string, ...more: readonly string[]): Promise<string> {
  const args = ['-s', '--cacert', caFile, '--cert', `${pair}.crt`, '--key', `${pair}.key`, ...more, url];
  return (await call('curl', args).catch(() => ({ stdout: '' }))).stdout;
}
