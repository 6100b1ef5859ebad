/** Starts every part of a request's path on this machine: CA, ledger, sign endpoint, cluster API, relay. */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectKubernetes } from '../../adapters/kubernetes/api.ts';
import type { KubernetesApi } from '../../adapters/kubernetes/api.ts';
import { ulid } from '../../core/attestation/records/ulid.ts';
import { revokedSource } from '../../adapters/signing-api/revoked.ts';
import type { RevokedSource } from '../../adapters/signing-api/revoked.ts';
import type { AwsPorts } from '../../core/attestation/aws/endpoints.ts';
import type { ClusterConfiguration } from '../../core/configuration/model/cluster.ts';
import type { CallLogEntry } from '../../adapters/lambda/log.ts';
import { startCsrApi } from '../csr-api/csr-api.ts';
import { startRelay } from '../serve/relay.ts';
import { openSignService, serveSignService } from '../serve/sign-service.ts';
import type { SignService } from '../serve/sign-service.ts';
import type { DemoWorld } from './scenario.ts';

/** The user of a bootstrap token. */
export const bootstrapUser = 'system:bootstrap:demo01';

export interface DemoStack {
  readonly signUrl: string;
  /** Fetches the trust bundle over HTTP, as an operator does. */
  readonly trustBundle: () => Promise<string>;
  readonly caKeyId: string;
  readonly server: string;
  /** A client with the rights of the user who runs the demo. */
  readonly cluster: KubernetesApi;
  /** A client with a bootstrap token's rights; on a real cluster with the same rights as `cluster`, without impersonation. */
  readonly node: KubernetesApi;
  /** A client that impersonates this user and their groups. Only the stand-in accepts impersonation without a check. */
  readonly as: (username: string) => KubernetesApi;
  /** Replaces the rules, as a deployment does. CAs and records of a data folder stay. */
  readonly deploy: (cluster: ClusterConfiguration) => Promise<void>;
  /** Puts a machine on the operator's list, as `countersign machines allow` does. */
  readonly allowMachine: (name: string, nodeName?: string) => Promise<void>;
  /** The list of revoked certificates, as the relay fetches it. */
  readonly revoked: RevokedSource;
  /** Fetches the CRL of the first CA over HTTP: DER. */
  readonly crl: () => Promise<Uint8Array>;
  /** The last warnings of the sign function and the relay, to explain a failure. */
  readonly complaints: () => readonly string[];
  readonly close: () => Promise<void>;
}

export async function startDemoStack(
  cluster: ClusterConfiguration,
  world: DemoWorld,
  aws?: AwsPorts,
  /** Absent = the clock of this machine. */
  now?: () => number,
  /** Absent = CAs and records are in memory. */
  dataFolder?: string,
): Promise<DemoStack> {
  const cleanups: (() => unknown)[] = [];
  const close = async (): Promise<void> => {
    for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
  };
  const complaints: string[] = [];
  const complain = (text: string): void => {
    complaints.push(text.slice(0, 400));
    complaints.splice(0, complaints.length - 4);
  };
  try {
    const open = (rules: ClusterConfiguration): Promise<SignService> =>
      openSignService({
        clusters: [rules],
        log: (entry) => {
          if (entry.level !== 'info') complain(`sign function: ${entry.why ?? entry.outcome}, ${whyOf(entry)}`);
        },
        ...(world.wrapAuthority === undefined ? {} : { wrapAuthority: world.wrapAuthority }),
        ...(aws === undefined ? {} : { aws }),
        ...(now === undefined ? {} : { now }),
        ...(dataFolder === undefined ? {} : { dataFolder }),
      });
    let service = await open(cluster);
    cleanups.push(() => service.close());
    const http = await serveSignService({ handler: (event) => service.handler(event) }, 0);
    cleanups.push(http.close);
    const base = `${http.url}/v1/clusters/${cluster.name}`;

    const loginOf = world.kubeconfig === undefined ? await standIn(cleanups) : () => world.kubeconfig ?? '';
    const connect = (path: string): KubernetesApi => {
      const api = connectKubernetes({ kind: 'kubeconfig', path });
      cleanups.push(() => api.close());
      return api;
    };
    const [admin, node] = [connect(loginOf()), connect(loginOf(bootstrapUser))];

    const relay = startRelay(cluster, { api: admin.requests, url: base, complain });
    cleanups.push(relay.stop);
    // By its name: the bundle without one has only CAs of logins, and the demo in a real cluster has a signer of its own.
    const [firstCa = ''] = cluster.cas.keys();

    const [ca = ''] = cluster.cas.keys();
    return {
      signUrl: `${base}/sign`,
      trustBundle: async () => (await fetch(`${base}/trust-bundle/${firstCa}`)).text(),
      caKeyId: service.authority(cluster.name, ca).signer.keyId,
      server: admin.server,
      cluster: admin,
      node,
      as: (username) => connect(loginOf(username)),
      async deploy(rules) {
        const before = service;
        service = await open(rules);
        before.close();
      },
      async allowMachine(name, nodeName) {
        const [at, by, reason] = [Date.now(), 'operator', 'demo'];
        const entry = { name, ...(nodeName === undefined ? {} : { nodeName }), addresses: [], dnsNames: [] };
        const item = { id: ulid(at, randomBytes(10)), at, by, action: 'allow', subject: name, reason } as const;
        await service.attestations(cluster.name)?.register.allowMachine({ ...entry, addedAt: at, by, reason }, item);
      },
      revoked: revokedSource(relay.endpoint.revoked, cluster.name),
      crl: async () => (await fetch(`${base}/crl/${ca}`)).bytes(),
      complaints: () => complaints,
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Starts the stand-in API. The result writes a kubeconfig for its administrator or for a user, and returns its path. */
async function standIn(cleanups: (() => unknown)[]): Promise<(username?: string) => string> {
  const api = await startCsrApi();
  cleanups.push(api.close);
  const folder = mkdtempSync(join(tmpdir(), 'countersign-demo-'));
  cleanups.push(() => rmSync(folder, { recursive: true }));
  let files = 0;
  return (username) => {
    const path = join(folder, `${(files += 1)}.kubeconfig`);
    writeFileSync(path, api.kubeconfig(username), { mode: 0o600 });
    return path;
  };
}

function whyOf({ error }: CallLogEntry): string {
  const { name, message } = (error ?? {}) as { name?: string; message?: string };
  return `${name ?? ''} ${message ?? ''}`.trim();
}
