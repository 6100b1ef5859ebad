/** The sign handler over the embedded store and key: what Lambda, DynamoDB and KMS are in an AWS account. */
import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createEmbeddedCa, temporaryCa } from '../adapters/embedded-authority.ts';
import { embeddedData } from '../adapters/embedded-data.ts';
import { openEmbeddedLedger } from '../adapters/embedded-ledger.ts';
import type { EmbeddedLedger } from '../adapters/embedded-ledger.ts';
import type { HttpHandler } from '../adapters/lambda-http.ts';
import type { Authority } from '../core/certificate.ts';
import type { ClusterConfiguration } from '../core/configuration.ts';
import { createSignHandler, tooLarge } from '../lambdas/sign/handler.ts';
import type { CallLogEntry } from '../adapters/lambda-log.ts';
import { maxObjectBytes } from '../core/kubernetes.ts';
import { serveHttp } from './node-http.ts';
import type { HttpService } from './node-http.ts';

export interface SignServiceOptions {
  readonly clusters: readonly ClusterConfiguration[];
  /** Where ledgers and CAs are kept; without it they end with this process. */
  readonly dataFolder?: string;
  readonly log: (entry: CallLogEntry) => void;
  /** Stands before each CA; only for tests that need a key which does not behave. */
  readonly wrapAuthority?: (authority: Authority) => Authority;
}

export interface SignService {
  readonly handler: HttpHandler;
  readonly authority: (cluster: string, ca: string) => Authority;
  readonly close: () => void;
}

interface ClusterState {
  readonly configuration: ClusterConfiguration;
  readonly store: EmbeddedLedger;
  readonly authorities: ReadonlyMap<string, Authority>;
}

export async function openSignService(options: SignServiceOptions): Promise<SignService> {
  const states = new Map<string, ClusterState>();
  const close = (): void => {
    for (const { store } of states.values()) store.close();
  };
  try {
    for (const cluster of options.clusters) states.set(cluster.name, await openCluster(cluster, options));
  } catch (error) {
    close();
    throw error;
  }
  // The handler asks only for clusters it was told of, and for CAs of their configuration.
  const state = (cluster: string): ClusterState => present(states.get(cluster), `cluster ${cluster}`);
  const authority = (cluster: string, ca: string): Authority => present(state(cluster).authorities.get(ca), `CA ${ca}`);
  const handler = createSignHandler({
    version: packageVersion(),
    cluster: (name) => states.get(name)?.configuration,
    ledger: (cluster) => state(cluster).store.ledger,
    authority: async (cluster, ca) => authority(cluster, ca),
    now: Date.now,
    randomBytes,
    log: options.log,
  });
  return { handler, authority, close };
}

/** The same over HTTP on loopback; port 0 takes a free one. */
export function serveSignService(service: SignService, port: number): Promise<HttpService> {
  return serveHttp(service.handler, {
    port,
    maxBodyBytes: maxObjectBytes,
    tooLarge: tooLarge(),
    onError: (error) => process.stderr.write(`error: ${error instanceof Error ? error.message : String(error)}\n`),
  });
}

async function openCluster(
  cluster: ClusterConfiguration,
  { dataFolder, wrapAuthority }: SignServiceOptions,
): Promise<ClusterState> {
  const data = dataFolder === undefined ? undefined : embeddedData(dataFolder, cluster.name);
  const authorities = new Map<string, Authority>();
  for (const ca of cluster.cas.values()) {
    const origin = { now: Date.now(), randomBytes };
    const authority =
      data === undefined
        ? await temporaryCa(ca, origin)
        : (await createEmbeddedCa(data.caFolder, ca, origin)).authority;
    authorities.set(ca.name, wrapAuthority?.(authority) ?? authority);
  }
  if (data !== undefined) mkdirSync(dirname(data.ledgerFile), { recursive: true });
  return { configuration: cluster, store: openEmbeddedLedger(data?.ledgerFile ?? ':memory:'), authorities };
}

function present<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new Error(`no ${what}`);
  return value;
}

export function packageVersion(): string {
  const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '../package.json'), 'utf8')) as {
    version: string;
  };
  return version;
}
