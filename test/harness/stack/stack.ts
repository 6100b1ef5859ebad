import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { parseAllDocuments } from 'yaml';
import { embeddedData } from '../../../adapters/embedded/data.ts';
import { openEmbeddedLedger, type EmbeddedLedger } from '../../../adapters/embedded/ledger.ts';
import type { ControlPlane } from '../kubernetes/control-plane.ts';
import { createObject, type AnyObject } from '../kubernetes/objects.ts';
import { untilGranted } from '../kubernetes/rights.ts';
import {
  onFreePort,
  startProcess,
  temporaryFolder,
  waitUntilReady,
  type RunningProcess,
} from '../processes/processes.ts';

/*
 * The real thing: `npm run dev`'s server and the relay, each a process of its own, as an operator starts them.
 */

const root = resolve(import.meta.dirname, '../../..');
const cluster = 'demo';
export const clusterPath = `/v1/clusters/${cluster}`;
export const rbacManifest = join(root, 'deploy/manifests/watch-relay-rbac.yaml');
/** Of a relay that approves. */
export const approverManifest = join(root, 'deploy/manifests/watch-relay-approver-rbac.yaml');

/** A server that can be killed and started again at the same address over the same data. */
export interface Restartable {
  readonly url: string;
  readonly process: RunningProcess;
  kill(): Promise<void>;
  restart(): Promise<void>;
  stop(): Promise<void>;
}

export interface DevServer extends Restartable {
  readonly dataDir: string;
  /** PEM of the CA that signs: what `--client-ca-file` takes. */
  caPem(): Promise<string>;
}

/**
 * `dataDir`: of another server, to share it. `countFile`: the same service with a key that writes each TBS it signs
 * there, a line of hex each.
 */
export async function startDevServer(options: { dataDir?: string; countFile?: string } = {}): Promise<DevServer> {
  const folder = temporaryFolder('dev-server');
  const dataDir = options.dataDir ?? join(folder.path, 'data');
  const server = await onFreePort((port) => {
    const command =
      options.countFile === undefined
        ? [join(root, 'dev/serve.ts'), '--port', String(port), '--data', dataDir]
        : [join(root, 'test/harness/stack/counting-server.ts'), String(port), dataDir, options.countFile];
    return restartable('dev server', `http://127.0.0.1:${port}`, folder.path, `${clusterPath}/healthz`, command);
  });
  const { url } = server;
  return {
    ...server,
    get process() {
      return server.process;
    },
    dataDir,
    caPem: async () => {
      const answer = await fetch(`${url}${clusterPath}/trust-bundle`);
      if (!answer.ok) throw new Error(`trust-bundle: ${answer.status} ${await answer.text()}`);
      return answer.text();
    },
    async stop() {
      await server.stop();
      folder.remove();
    },
  };
}

/** The ledger of a dev server, running or not, through a connection of one's own. */
export function ledgerOf({ dataDir }: DevServer): EmbeddedLedger {
  return openEmbeddedLedger(embeddedData(dataDir, cluster).ledgerFile);
}

/** The store itself refuses to record any certificate, until the answer is called. */
export function refuseToComplete({ dataDir }: DevServer): () => void {
  const execute = (sql: string): void => {
    const database = new DatabaseSync(embeddedData(dataDir, cluster).ledgerFile, { timeout: 5_000 });
    database.exec(sql);
    database.close();
  };
  execute(
    `CREATE TRIGGER refused_by_test BEFORE UPDATE ON issuing WHEN NEW.state = 'issued'
     BEGIN SELECT RAISE(ABORT, 'refused by the test'); END`,
  );
  return () => execute('DROP TRIGGER refused_by_test');
}

export interface Relay extends Restartable {
  /** Status and text of `/readyz`. */
  ready(): Promise<{ status: number; text: string }>;
  /** The values of a metric's lines whose labels contain all these, added up. */
  metric(name: string, ...labels: readonly string[]): Promise<number>;
  /** Log lines that have this message. */
  logged(message: string): Record<string, unknown>[];
}

/** Resolves when the relay is ready: it leads, or stands by, and has listed. */
export async function startRelay(options: {
  kubeconfig: string;
  /** Of the sign endpoint, without path. */
  endpoint: string;
  /** Default: that of the dev server. */
  cluster?: string;
  args?: readonly string[];
  /** Beside what this process has. */
  env?: Readonly<Record<string, string>>;
}): Promise<Relay> {
  const folder = temporaryFolder('relay');
  const relay = await onFreePort((port) => {
    const command = [
      join(root, 'lambdas/watch-relay/index.ts'),
      '--url',
      `${options.endpoint}/v1/clusters/${options.cluster ?? cluster}`,
      '--kubeconfig',
      options.kubeconfig,
      '--metrics-address',
      `127.0.0.1:${port}`,
      ...(options.args ?? []),
    ];
    return restartable('watch-relay', `http://127.0.0.1:${port}`, folder.path, '/readyz', command, options.env);
  });
  const { url } = relay;
  return {
    ...relay,
    get process() {
      return relay.process;
    },
    async ready() {
      const answer = await fetch(`${url}/readyz`);
      return { status: answer.status, text: await answer.text() };
    },
    async metric(name, ...labels) {
      const text = await (await fetch(`${url}/metrics`)).text();
      return text
        .split('\n')
        .filter((line) => line.startsWith(`countersign_relay_${name}`) && labels.every((label) => line.includes(label)))
        .reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
    },
    logged: (message) =>
      readFileSync(relay.process.logPath, 'utf8')
        .split('\n')
        .filter((line) => line.startsWith('{') && line.endsWith('}'))
        .map((line) => JSON.parse(line) as Record<string, unknown>)
        .filter((line) => line['msg'] === message),
    async stop() {
      await relay.stop();
      folder.remove();
    },
  };
}

async function restartable(
  name: string,
  url: string,
  dir: string,
  readyPath: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Restartable> {
  const start = async (): Promise<RunningProcess> => {
    const server = startProcess({
      name,
      command: process.execPath,
      args,
      env: { ...process.env, ...env },
      logPath: join(dir, 'log'),
    });
    await waitUntilReady(server, async () => (await fetch(`${url}${readyPath}`)).ok);
    return server;
  };
  let current = await start();
  return {
    url,
    get process() {
      return current;
    },
    kill: () => current.stop('SIGKILL'),
    async restart() {
      await current.stop();
      current = await start();
    },
    stop: () => current.stop(),
  };
}

/** Who the relay is in a cluster, as the manifest says. */
export interface RelayIdentity {
  readonly namespace: string;
  readonly name: string;
  readonly user: string;
  /** A kubeconfig with the service account's token, for the API server or for a proxy before it. */
  kubeconfig(server?: { url: string }): string;
}

type Reachable = Pick<ControlPlane, 'admin' | 'dir' | 'url' | 'servingCaPem'>;

/** Creates what is in the manifest and gets a real token of its service account. Resolves when it has its rights. */
export async function installRelay(plane: Reachable, manifest = rbacManifest): Promise<RelayIdentity> {
  const account = manifestObjects(manifest).find(({ kind }) => kind === 'ServiceAccount');
  if (account === undefined) throw new Error(`${manifest} has no ServiceAccount`);
  const { name, namespace = 'default' } = account.metadata;
  for (const object of manifestObjects(manifest)) await createObject(plane.admin, object);
  const { status: login } = await plane.admin.expectOk<{ status: { token: string } }>(
    `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`,
    {
      method: 'POST',
      body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: 3_600 } },
    },
  );
  const user = `system:serviceaccount:${namespace}:${name}`;
  const list = { verb: 'list', group: 'certificates.k8s.io', resource: 'certificatesigningrequests' };
  await untilGranted(plane, { user }, list);
  let files = 0;
  return {
    namespace,
    name,
    user,
    kubeconfig: (server) =>
      writeTokenKubeconfig(plane, login.token, join(plane.dir, `relay-${++files}.kubeconfig`), server),
  };
}

/** For the API server, or for a proxy before it. */
export function writeTokenKubeconfig(
  plane: Pick<ControlPlane, 'url' | 'servingCaPem'>,
  token: string,
  path: string,
  server?: { url: string },
): string {
  const target =
    server === undefined
      ? { server: plane.url, 'certificate-authority-data': Buffer.from(plane.servingCaPem).toString('base64') }
      : { server: server.url };
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'relay',
    contexts: [{ name: 'relay', context: { cluster: 'relay', user: 'relay' } }],
    clusters: [{ name: 'relay', cluster: target }],
    users: [{ name: 'relay', user: { token } }],
  };
  writeFileSync(path, JSON.stringify(config), { mode: 0o600 });
  return path;
}

/** The lease of a leader that was killed runs out within a second, and not within 15: each replica reads its duration. */
export async function shortenLease(plane: ControlPlane, { namespace, name }: RelayIdentity): Promise<void> {
  await plane.admin.expectOk(leasePath({ namespace, name }), {
    method: 'PATCH',
    headers: { 'content-type': 'application/merge-patch+json' },
    body: JSON.stringify({ spec: { leaseDurationSeconds: 1 } }),
  });
}

export function leasePath({ namespace, name }: Pick<RelayIdentity, 'namespace' | 'name'>): string {
  return `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/${name}`;
}

export interface ManifestObject extends AnyObject {
  readonly rules?: readonly {
    readonly apiGroups?: readonly string[];
    readonly resources?: readonly string[];
    readonly resourceNames?: readonly string[];
    readonly verbs: readonly string[];
  }[];
}

export function manifestObjects(manifest = rbacManifest): ManifestObject[] {
  return parseAllDocuments(readFileSync(manifest, 'utf8'))
    .map((document) => document.toJS() as ManifestObject | null)
    .filter((object) => object !== null);
}
