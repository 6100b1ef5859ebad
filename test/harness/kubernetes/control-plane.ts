import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { toolPath } from '../../tools/tools.ts';
import { createApiClient, type ApiClient } from './api-client.ts';
import { readAuditLog, type AuditEvent } from './audit-log.ts';
import * as servers from './control-plane-servers.ts';
import { issueLogin, writeKubeconfig, type Identity } from './kubeconfig.ts';
import { temporaryFolder, type RunningProcess } from '../processes/processes.ts';
import { createTestAuthority, loopbackServerExtensions, type KeyAndCertificate } from '../x509/test-certificates.ts';

export interface ControlPlaneOptions {
  /** CA certificates whose client certificates may log in, beside those of the harness: the CA under test. */
  clientCaPem?: string;
  /** How soon the server ends a watch whose client named no timeout: between this and twice this. Default half an hour. */
  watchTimeoutSeconds?: number;
  /**
   * `false`: lists and watches go to etcd, and one from a revision that `compactEtcd` removed is 410 Gone at once. With
   * the cache, as in production, the way to a 410 is a restart: the new process knows no earlier revision.
   */
  watchCache?: boolean;
  /** Service-account tokens name the server's own address as their issuer, where their keys really can be fetched. */
  ownIssuer?: boolean;
  /** It calls kubelets, at the address of their machine, and believes the serving certificates that these CAs issued. */
  kubeletCaPem?: string;
  /** Lines of a static token file: `token,user,uid,"groups"`. */
  tokenFile?: string;
  /** Path of an AuthorizationConfiguration, which decides instead of the modes Node and RBAC. */
  authorizationConfig?: string;
  /** Further kube-apiserver flags, such as `--feature-gates=…`. */
  apiServerArgs?: readonly string[];
}

/** Who a client is: a user with a certificate of this harness, a user with their own credentials, or anonymous. */
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
  /** Forgets all history: a client that lists or watches from a revision known so far must start again. */
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
    servers.writeServerFiles(dir, serving);
    servers.writeClientCa(dir, authority, options.clientCaPem);
    if (options.kubeletCaPem !== undefined) {
      const asKubeletClient = { user: 'kube-apiserver-kubelet-client', groups: ['system:masters'] };
      servers.writeKubeletFiles(dir, await issueLogin(authority, asKubeletClient), options.kubeletCaPem);
    }
    if (options.tokenFile !== undefined) servers.writeTokenFile(dir, options.tokenFile);

    const { url: etcdUrl } = await servers.startOnFreePort(running, servers.startEtcd(dir));
    const launch = servers.startApiServer(dir, etcdUrl, options, adminLogin, authority.certificatePem);
    const { url, port } = await servers.startOnFreePort(running, launch);
    const connection = { url, caPem: authority.certificatePem };
    const admin = createApiClient({ ...connection, login: adminLogin });
    const adminKubeconfig = writeKubeconfig(join(dir, 'admin.kubeconfig'), connection, adminLogin);
    const auditLogPath = servers.auditLogPath(dir);
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
      compactEtcd: () => servers.compactEtcd(etcdUrl),
      killApiServer: () => apiServer().stop('SIGKILL'),
      async restartApiServer(changes) {
        await apiServer().stop();
        admin.close(); // its idle connections lead to the old process
        if (changes?.clientCaPem !== undefined) servers.writeClientCa(dir, authority, changes.clientCaPem);
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

/** Nothing of it is read after this, so that no server gets time to end in good order. */
async function stopAll(running: readonly RunningProcess[]): Promise<void> {
  await Promise.all(running.map((server) => server.stop('SIGKILL')));
}
