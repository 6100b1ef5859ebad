import { generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { toolPath } from '../../tools/tools.ts';
import { createApiClient } from './api-client.ts';
import { AUDIT_POLICY } from './audit-log.ts';
import type { ControlPlaneOptions } from './control-plane.ts';
import { freePort, lostPortRace, startProcess, waitUntilReady, type RunningProcess } from '../processes/processes.ts';
import type { KeyAndCertificate, TestAuthority } from '../x509/test-certificates.ts';

/* How etcd and kube-apiserver are started: their flags, their files in `dir`, and when they are ready. */

/** Starts a server at a port; `ready` resolves when it serves there. */
export type Launch = (port: number) => Promise<{ server: RunningProcess; url: string; ready: () => Promise<void> }>;

const PORT_ATTEMPTS = 5;

export async function startOnFreePort(
  running: RunningProcess[],
  launch: Launch,
): Promise<{ url: string; port: number }> {
  for (let attempt = 1; ; attempt++) {
    const port = await freePort();
    const { server, url, ready } = await launch(port);
    running.push(server);
    try {
      await ready();
      return { url, port };
    } catch (error) {
      if (!lostPortRace(server) || attempt === PORT_ATTEMPTS) throw error;
      running.pop();
    }
  }
}

export function startEtcd(dir: string): Launch {
  return async (port) => {
    const url = `http://127.0.0.1:${port}`;
    const server = startProcess({
      name: 'etcd',
      command: await toolPath('etcd'),
      logPath: join(dir, `etcd-${port}.log`),
      args: [
        `--data-dir=${join(dir, `etcd-${port}`)}`,
        `--listen-client-urls=${url}`,
        `--advertise-client-urls=${url}`,
        '--listen-peer-urls=http://127.0.0.1:0', // a cluster of one never speaks to a peer
        '--unsafe-no-fsync', // the data need not survive the machine
        '--log-level=warn',
      ],
    });
    const ready = () => waitUntilReady(server, async () => (await fetch(`${url}/health`)).ok);
    return { server, url, ready };
  };
}

export function startApiServer(
  dir: string,
  etcdUrl: string,
  options: ControlPlaneOptions,
  adminLogin: KeyAndCertificate,
  caPem: string,
): Launch {
  return async (port) => {
    const url = `https://127.0.0.1:${port}`;
    const server = startProcess({
      name: 'kube-apiserver',
      command: await toolPath('kube-apiserver'),
      logPath: join(dir, `kube-apiserver-${port}.log`),
      args: [
        `--etcd-servers=${etcdUrl}`,
        '--bind-address=127.0.0.1',
        `--secure-port=${port}`,
        `--tls-cert-file=${join(dir, 'serving.crt')}`,
        `--tls-private-key-file=${join(dir, 'serving.key')}`,
        `--client-ca-file=${join(dir, 'client-ca.crt')}`,
        options.authorizationConfig === undefined
          ? '--authorization-mode=Node,RBAC'
          : `--authorization-config=${options.authorizationConfig}`,
        '--enable-bootstrap-token-auth',
        `--service-account-key-file=${join(dir, 'service-account.key')}`,
        `--service-account-signing-key-file=${join(dir, 'service-account.key')}`,
        `--service-account-issuer=${options.ownIssuer === true ? url : 'https://kubernetes.default.svc'}`,
        ...(options.ownIssuer === true ? [`--service-account-jwks-uri=${url}/openid/v1/jwks`] : []),
        '--service-cluster-ip-range=10.0.0.0/24',
        '--disable-admission-plugins=ServiceAccount', // no controller here makes the default accounts it would ask for
        `--audit-policy-file=${join(dir, 'audit-policy.json')}`,
        `--audit-log-path=${auditLogPath(dir)}`,
        '--audit-log-maxsize=2000', // megabytes; a rotated log would hide its beginning from the reader
        ...(options.watchTimeoutSeconds === undefined ? [] : [`--min-request-timeout=${options.watchTimeoutSeconds}`]),
        ...(options.watchCache === false ? ['--watch-cache=false'] : []),
        ...(options.kubeletCaPem === undefined ? [] : kubeletArgs(dir)),
        ...(options.tokenFile === undefined ? [] : [`--token-auth-file=${join(dir, 'tokens.csv')}`]),
        ...(options.apiServerArgs ?? []),
      ],
    });
    const admin = createApiClient({ url, caPem, login: adminLogin });
    const ready = async () => {
      try {
        // /readyz covers the RBAC bootstrap, but not the namespaces. The server creates `default` last.
        for (const path of ['/readyz', '/api/v1/namespaces/kube-system', '/api/v1/namespaces/default']) {
          await waitUntilReady(server, async () => (await admin.request(path)).status === 200);
        }
      } finally {
        admin.close();
      }
    };
    return { server, url, ready };
  };
}

export function writeServerFiles(dir: string, serving: KeyAndCertificate): void {
  const serviceAccount = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const serviceAccountKey = serviceAccount.privateKey.export({ type: 'pkcs8', format: 'pem' });
  writeFileSync(join(dir, 'serving.crt'), serving.certificatePem);
  writeFileSync(join(dir, 'serving.key'), serving.keyPem, { mode: 0o600 });
  writeFileSync(join(dir, 'service-account.key'), serviceAccountKey, { mode: 0o600 });
  writeFileSync(join(dir, 'audit-policy.json'), AUDIT_POLICY);
}

export function writeClientCa(dir: string, authority: TestAuthority, clientCaPem = ''): void {
  writeFileSync(join(dir, 'client-ca.crt'), `${authority.certificatePem}\n${clientCaPem}\n`);
}

export function writeKubeletFiles(dir: string, login: KeyAndCertificate, caPem: string): void {
  writeFileSync(join(dir, 'kubelet-ca.crt'), caPem);
  writeFileSync(join(dir, 'kubelet-client.crt'), login.certificatePem);
  writeFileSync(join(dir, 'kubelet-client.key'), login.keyPem, { mode: 0o600 });
}

function kubeletArgs(dir: string): string[] {
  return [
    `--kubelet-certificate-authority=${join(dir, 'kubelet-ca.crt')}`,
    `--kubelet-client-certificate=${join(dir, 'kubelet-client.crt')}`,
    `--kubelet-client-key=${join(dir, 'kubelet-client.key')}`,
    '--kubelet-preferred-address-types=InternalIP', // the names of these nodes are not in DNS
  ];
}

export function writeTokenFile(dir: string, lines: string): void {
  writeFileSync(join(dir, 'tokens.csv'), lines, { mode: 0o600 });
}

export function auditLogPath(dir: string): string {
  return join(dir, 'audit.jsonl');
}

/** Through etcd's HTTP gateway, since nothing else here needs an etcd client. */
export async function compactEtcd(etcdUrl: string): Promise<void> {
  const post = async (path: string, body: object) => {
    const response = await fetch(`${etcdUrl}${path}`, { method: 'POST', body: JSON.stringify(body) });
    if (!response.ok) throw new Error(`etcd ${path}: ${response.status} ${await response.text()}`);
    return (await response.json()) as { header: { revision: string } };
  };
  // A watch from revision n needs n+1 on, and compacting at n keeps n: two writes put every known revision behind it.
  const write = () => post('/v3/kv/put', { key: btoa('countersign-test/compaction'), value: '' });
  await write();
  const { header } = await write();
  await post('/v3/kv/compaction', { revision: header.revision, physical: true });
}
