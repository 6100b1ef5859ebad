import { execFile } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { toolPath } from '../tools/tools.ts';
import { createApiClient, type ApiClient } from './api-client.ts';
import { AUDIT_POLICY, readAuditLog, type AuditEvent } from './audit-log.ts';
import { issueLogin, writeKubeconfig, type Identity } from './kubeconfig.ts';
import {
  freePort,
  lostPortRace,
  startProcess,
  temporaryFolder,
  waitUntilReady,
  type RunningProcess,
} from './processes.ts';
import {
  createTestAuthority,
  loopbackServerExtensions,
  type KeyAndCertificate,
  type TestAuthority,
} from './test-certificates.ts';

export interface ControlPlaneOptions {
  /** CA certificates whose client certificates may log in, beside those of the harness: the CA under test. */
  clientCaPem?: string;
  /** How soon the server ends a watch whose client named no timeout: between this and twice this. Default half an hour. */
  watchTimeoutSeconds?: number;
  /** Without the cache a list or watch from a compacted revision is answered 410 Gone at once; see `compactEtcd`. */
  watchCache?: boolean;
  /** Further kube-apiserver flags, such as `--feature-gates=…`. */
  apiServerArgs?: readonly string[];
}

/** Who a client is: a user we vouch for, somebody with credentials of his own, or nobody. */
export type Login = Identity | KeyAndCertificate | { token: string } | 'anonymous';

/** A real kube-apiserver over a real etcd, on loopback, in a temporary folder of its own. */
export interface ControlPlane {
  readonly url: string;
  readonly etcdUrl: string;
  /** Removed by `stop`; tests may put files of their own here. */
  readonly dir: string;
  /** What a client must trust to believe the server. */
  readonly servingCaPem: string;
  readonly adminKubeconfig: string;
  readonly admin: ApiClient;
  readonly apiServer: { readonly pid: number; logTail(lines?: number): string };
  client(login: Login): Promise<ApiClient>;
  /** Path of a kubeconfig with a client certificate for this user. */
  kubeconfigFor(identity: Identity): Promise<string>;
  /** Standard output of the kubectl of the same version; the error of a failed one carries its standard error. */
  kubectl(args: readonly string[], options?: { kubeconfig?: string; input?: string }): Promise<string>;
  readonly auditLogPath: string;
  auditEvents(filter?: { user?: string }): AuditEvent[];
  /** Forgets all history: whoever lists or watches from a revision known so far must start again. */
  compactEtcd(): Promise<void>;
  /** As in a crash. Resolves when the process is gone; `restartApiServer` brings it back. */
  killApiServer(): Promise<void>;
  /** Ends it in good order if it runs, then starts it at the same address with the same data. */
  restartApiServer(changes?: { clientCaPem?: string }): Promise<void>;
  stop(): Promise<void>;
}

/** Both servers are ready in about four seconds. The caller stops what it started, in `afterAll`. */
export async function startControlPlane(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  const folder = temporaryFolder('control-plane');
  const dir = folder.path;
  const running: RunningProcess[] = [];
  try {
    // Not of the same name as anything under test: a certificate accepted by mistake would be seen.
    const authority = await createTestAuthority('countersign test control plane');
    const serving = await authority.issue({
      subject: [{ CN: ['kube-apiserver'] }],
      extensions: loopbackServerExtensions(),
    });
    const adminLogin = await issueLogin(authority, { user: 'test-admin', groups: ['system:masters'] });
    writeServerFiles(dir, serving);
    writeClientCa(dir, authority, options.clientCaPem);

    const { url: etcdUrl } = await startOnFreePort(running, startEtcd(dir));
    const launch = startApiServer(dir, etcdUrl, options, adminLogin, authority.certificatePem);
    const { url, port } = await startOnFreePort(running, launch);
    const connection = { url, caPem: authority.certificatePem };
    const admin = createApiClient({ ...connection, login: adminLogin });
    const adminKubeconfig = writeKubeconfig(join(dir, 'admin.kubeconfig'), connection, adminLogin);
    const auditLogPath = join(dir, AUDIT_LOG);
    const apiServer = () => running[1]!;
    let kubeconfigs = 0;

    return {
      url,
      etcdUrl,
      dir,
      servingCaPem: authority.certificatePem,
      adminKubeconfig,
      admin,
      auditLogPath,
      apiServer: {
        get pid() {
          return apiServer().pid;
        },
        logTail: (lines) => apiServer().logTail(lines),
      },
      async client(login) {
        if (login === 'anonymous') return createApiClient(connection);
        return createApiClient({ ...connection, login: 'user' in login ? await issueLogin(authority, login) : login });
      },
      async kubeconfigFor(identity) {
        const login = await issueLogin(authority, identity);
        return writeKubeconfig(join(dir, `user-${++kubeconfigs}.kubeconfig`), connection, login);
      },
      async kubectl(args, { kubeconfig = adminKubeconfig, input } = {}) {
        const cache = `--cache-dir=${join(dir, 'kubectl-cache')}`;
        const call = promisify(execFile)(await toolPath('kubectl'), ['--kubeconfig', kubeconfig, cache, ...args], {
          timeout: 60_000,
          maxBuffer: 64 * 1024 * 1024,
        });
        call.child.stdin?.end(input);
        return (await call).stdout;
      },
      auditEvents: (filter) => readAuditLog(auditLogPath, filter),
      compactEtcd: () => compact(etcdUrl),
      killApiServer: () => apiServer().stop('SIGKILL'),
      async restartApiServer(changes) {
        await apiServer().stop();
        admin.close(); // its idle connections lead to the old process
        if (changes?.clientCaPem !== undefined) writeClientCa(dir, authority, changes.clientCaPem);
        const { server, ready } = await launch(port);
        running[1] = server;
        await ready();
      },
      async stop() {
        admin.close();
        await stopAll(running);
        folder.remove();
      },
    };
  } catch (error) {
    await stopAll(running);
    folder.remove();
    throw error;
  }
}

/** Starts a server at a port; `ready` resolves when it serves there. */
type Launch = (port: number) => Promise<{ server: RunningProcess; url: string; ready: () => Promise<void> }>;

const AUDIT_LOG = 'audit.jsonl';
const PORT_ATTEMPTS = 5;

async function startOnFreePort(running: RunningProcess[], launch: Launch): Promise<{ url: string; port: number }> {
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

function startEtcd(dir: string): Launch {
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

function startApiServer(
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
        '--authorization-mode=Node,RBAC',
        '--enable-bootstrap-token-auth',
        `--service-account-key-file=${join(dir, 'service-account.key')}`,
        `--service-account-signing-key-file=${join(dir, 'service-account.key')}`,
        '--service-account-issuer=https://kubernetes.default.svc',
        '--service-cluster-ip-range=10.0.0.0/24',
        '--disable-admission-plugins=ServiceAccount', // nobody here makes the default accounts it would ask for
        `--audit-policy-file=${join(dir, 'audit-policy.json')}`,
        `--audit-log-path=${join(dir, AUDIT_LOG)}`,
        '--audit-log-maxsize=2000', // megabytes; a rotated log would hide its beginning from the reader
        ...(options.watchTimeoutSeconds === undefined ? [] : [`--min-request-timeout=${options.watchTimeoutSeconds}`]),
        ...(options.watchCache === false ? ['--watch-cache=false'] : []),
        ...(options.apiServerArgs ?? []),
      ],
    });
    const admin = createApiClient({ url, caPem, login: adminLogin });
    const ready = async () => {
      try {
        // /readyz covers the RBAC bootstrap, but not the namespace that bootstrap tokens and leases live in.
        for (const path of ['/readyz', '/api/v1/namespaces/kube-system']) {
          await waitUntilReady(server, async () => (await admin.request(path)).status === 200);
        }
      } finally {
        admin.close();
      }
    };
    return { server, url, ready };
  };
}

function writeServerFiles(dir: string, serving: KeyAndCertificate): void {
  const serviceAccount = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const serviceAccountKey = serviceAccount.privateKey.export({ type: 'pkcs8', format: 'pem' });
  writeFileSync(join(dir, 'serving.crt'), serving.certificatePem);
  writeFileSync(join(dir, 'serving.key'), serving.keyPem, { mode: 0o600 });
  writeFileSync(join(dir, 'service-account.key'), serviceAccountKey, { mode: 0o600 });
  writeFileSync(join(dir, 'audit-policy.json'), AUDIT_POLICY);
}

function writeClientCa(dir: string, authority: TestAuthority, clientCaPem = ''): void {
  writeFileSync(join(dir, 'client-ca.crt'), `${authority.certificatePem}\n${clientCaPem}\n`);
}

/** Through etcd's HTTP gateway, since nothing else here needs an etcd client. */
async function compact(etcdUrl: string): Promise<void> {
  const post = async (path: string, body: object) => {
    const response = await fetch(`${etcdUrl}${path}`, { method: 'POST', body: JSON.stringify(body) });
    if (!response.ok) throw new Error(`etcd ${path}: ${response.status} ${await response.text()}`);
    return (await response.json()) as { header: { revision: string } };
  };
  // A watch from revision n needs n+1 on, and compacting at n keeps n: two writes put everybody's revision behind it.
  const write = () => post('/v3/kv/put', { key: btoa('countersign-test/compaction'), value: '' });
  await write();
  const { header } = await write();
  await post('/v3/kv/compaction', { revision: header.revision, physical: true });
}

/** The API server first: without its etcd it would only fill the log. */
async function stopAll(running: readonly RunningProcess[]): Promise<void> {
  for (const server of running.toReversed()) await server.stop();
}
