/** All that a request passes through, started on this machine: CA, ledger, sign endpoint, cluster API, relay. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectKubernetes } from '../adapters/kubernetes-api.ts';
import type { KubernetesApi } from '../adapters/kubernetes-api.ts';
import { connectSigner } from '../adapters/signer-http.ts';
import type { ClusterConfiguration } from '../core/configuration.ts';
import type { CallLogEntry } from '../adapters/lambda-log.ts';
import { createRelay } from '../lambdas/watch-relay/relay.ts';
import { systemClock } from '../lambdas/watch-relay/system-clock.ts';
import { startCsrApi } from './csr-api.ts';
import { openSignService, serveSignService } from './sign-service.ts';
import type { DemoWorld } from './scenario.ts';

export interface DemoStack {
  readonly signUrl: string;
  /** As a cluster's operator gets it: over HTTP. */
  readonly trustBundle: () => Promise<string>;
  readonly caKeyId: string;
  readonly server: string;
  /** With the rights of whoever runs the demo. */
  readonly cluster: KubernetesApi;
  /** As a node that joins: the same on a real cluster, where nobody is impersonated. */
  readonly node: KubernetesApi;
  /** The last things the sign function and the relay said: for the question why nothing happens. */
  readonly complaints: () => readonly string[];
  readonly close: () => Promise<void>;
}

export async function startDemoStack(
  cluster: ClusterConfiguration,
  signerNames: readonly string[],
  world: DemoWorld,
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
    const service = await openSignService({
      clusters: [cluster],
      log: (entry) => {
        if (entry.level !== 'info') complain(`sign function: ${entry.why ?? entry.outcome}, ${whyOf(entry)}`);
      },
      ...(world.wrapAuthority === undefined ? {} : { wrapAuthority: world.wrapAuthority }),
    });
    cleanups.push(service.close);
    const http = await serveSignService(service, 0);
    cleanups.push(http.close);
    const base = `${http.url}/v1/clusters/${cluster.name}`;

    const logins =
      world.kubeconfig === undefined ? await standIn(cleanups) : { admin: world.kubeconfig, node: world.kubeconfig };
    const connect = (path: string): KubernetesApi => {
      const api = connectKubernetes({ kind: 'kubeconfig', path });
      cleanups.push(() => api.close());
      return api;
    };
    const [admin, node] = [connect(logins.admin), connect(logins.node)];

    const endpoint = connectSigner({ url: base, connections: 4 });
    cleanups.push(() => endpoint.close());
    const relay = createRelay(
      {
        signerNames,
        policies: new Map(),
        concurrency: 4,
        inFlightPerRequester: 4,
        graceMilliseconds: 1_000,
        identity: 'demo',
      },
      {
        api: admin.requests,
        endpoint,
        clock: systemClock,
        random: Math.random,
        log: {
          debug: () => {},
          info: () => {},
          warn: (fields, message) => complain(`relay: ${message} ${JSON.stringify(fields)}`),
          error: (fields, message) => complain(`relay: ${message} ${JSON.stringify(fields)}`),
        },
      },
    );
    const stop = new AbortController();
    const running = relay.run(stop.signal);
    cleanups.push(async () => {
      stop.abort();
      await running;
    });

    const [ca = ''] = cluster.cas.keys();
    return {
      signUrl: `${base}/sign`,
      trustBundle: async () => (await fetch(`${base}/trust-bundle`)).text(),
      caKeyId: service.authority(cluster.name, ca).signer.keyId,
      server: admin.server,
      cluster: admin,
      node,
      complaints: () => complaints,
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** The stand-in API, and kubeconfig files for its administrator and for a node with a bootstrap token. */
async function standIn(cleanups: (() => unknown)[]): Promise<{ admin: string; node: string }> {
  const api = await startCsrApi();
  cleanups.push(api.close);
  const folder = mkdtempSync(join(tmpdir(), 'countersign-demo-'));
  cleanups.push(() => rmSync(folder, { recursive: true }));
  const write = (name: string, content: string): string => {
    const path = join(folder, name);
    writeFileSync(path, content, { mode: 0o600 });
    return path;
  };
  return {
    admin: write('admin.kubeconfig', api.kubeconfig()),
    node: write('node.kubeconfig', api.kubeconfig('system:bootstrap:demo01')),
  };
}

function whyOf({ error }: CallLogEntry): string {
  const { name, message } = (error ?? {}) as { name?: string; message?: string };
  return `${name ?? ''} ${message ?? ''}`.trim();
}
