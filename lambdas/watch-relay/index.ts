/** Connects the relay to a cluster, an endpoint and this process. */
import { randomUUID } from 'node:crypto';
import { lookup } from 'node:dns/promises';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { collectDefaultMetrics } from 'prom-client';
import { connectKubernetes } from '../../adapters/kubernetes/api.ts';
import { connectSigner } from '../../adapters/signing-api/client.ts';
import type { Authorize } from '../../adapters/signing-api/client.ts';
import { createSigV4, sessionNameOf } from '../../adapters/aws/sigv4.ts';
import { revokedSource } from '../../adapters/signing-api/revoked.ts';
import { proxyHost } from '../../adapters/http/proxy.ts';
import { bearerFromFile } from '../../adapters/signing-api/token-file.ts';
import { trustSource } from '../../adapters/signing-api/trust-bundles.ts';
import { endpointConnections, parseSettings } from './settings/settings.ts';
import type { RelaySettings } from './settings/settings.ts';
import { probeRelays } from './observe/probe-client.ts';
import type { ListenAddress } from './settings/flag-values.ts';
import { serveProbes } from './observe/probe-server.ts';
import type { Log } from './runtime/log.ts';
import { createProcessLog } from './runtime/process-log.ts';
import type { ClusterApiOptions } from './cluster-api/session.ts';
import { createRelay } from './relay.ts';
import { signersFromFile, signersFromFlags } from './settings/signers.ts';
import type { SignerOptions } from './settings/signers.ts';
import { systemClock } from './runtime/system-clock.ts';
import { createWebhookProxy } from './webhook/proxy.ts';
import type { WebhookProxy } from './webhook/posted.ts';
import { createRevokedWebhook, revokedPath } from './webhook/revoked.ts';
import { serveWebhook } from './webhook/server.ts';
import { errorMessage } from '../../core/outcome/error-message.ts';

/** Time for webhook calls in flight, after the relay's own drain. */
const webhookGraceMilliseconds = 5_000;
const exitCodes = { ok: 0, failed: 1, usage: 2, configuration: 3 } as const;

async function main(): Promise<number> {
  const parsed = parseSettings(process.argv.slice(2), process.env);
  switch (parsed.kind) {
    case 'help':
      process.stdout.write(parsed.text);
      return exitCodes.ok;
    case 'probe':
      return probe(parsed.target);
    case 'wrong':
      process.stderr.write(`watch-relay: ${parsed.message}\nwatch-relay: --help shows all options\n`);
      return exitCodes.usage;
    case 'settings':
      return serve(parsed.settings);
  }
}

/** A new relay lists all requests before it is ready, and a new version of it needs some seconds for each replica. */
const probePatienceMilliseconds = 60_000;

async function probe(target: Required<ListenAddress>): Promise<number> {
  const ready = await probeRelays({
    target,
    patienceMilliseconds: probePatienceMilliseconds,
    lookup: async (host) => (await lookup(host, { all: true })).map(({ address }) => address),
    clock: systemClock,
    print: (line) => void process.stdout.write(`${line}\n`),
  });
  return ready ? exitCodes.ok : exitCodes.failed;
}

async function serve(settings: RelaySettings): Promise<number> {
  const log = createProcessLog(settings.logLevel);
  let started;
  try {
    started = await start(settings, log);
  } catch (error) {
    const { code, path } = error as NodeJS.ErrnoException;
    const why =
      code === 'ENOENT' && path !== undefined
        ? `there is no file ${path}; --help names the flags for files`
        : errorMessage(error);
    process.stderr.write(`watch-relay: ${why}\n`);
    return exitCodes.configuration;
  }
  const { kubernetes, management, endpoint, relay, probes, webhook } = started;
  const addresses = { probes: probes.address, webhook: webhook?.address };
  const proxy = settings.proxy === undefined ? {} : { proxy: proxyHost(settings.proxy) };
  log.info({ server: kubernetes.server, endpoint: settings.endpointUrl, ...proxy, ...addresses }, 'connected');
  const stop = new AbortController();
  const onSignal = (signal: NodeJS.Signals): void => {
    if (stop.signal.aborted) process.exit(exitCodes.failed); // the second signal
    log.info({ signal }, 'stopping');
    stop.abort();
  };
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, onSignal);
  try {
    // Every replica serves webhook clients, also on standby and during the drain.
    await relay.run(stop.signal);
    return exitCodes.ok;
  } finally {
    await webhook?.close(webhookGraceMilliseconds);
    await probes.close();
    endpoint.close();
    kubernetes.close();
    management?.close();
  }
}

/** Throws a sentence for the operator if a file or a port cannot be used. */
async function start(settings: RelaySettings, log: Log) {
  const { clusterApi, ...signers } = readSigners(settings);
  const options = clusterApiOptions(settings, clusterApi);
  const { kubernetes, management, endpoint } = connect(settings);
  const { lease, concurrency, trust } = settings;
  const relay = createRelay(
    {
      ...signers,
      concurrency,
      graceMilliseconds: settings.drainSeconds * 1_000,
      // Unique to this process: after a restart of the container in the same pod the old process is another holder.
      identity: `${replicaName(settings)}_${randomUUID()}`,
      ...(trust === undefined ? {} : { trust }),
      ...(options === undefined ? {} : { clusterApi: options }),
    },
    {
      api: kubernetes.requests,
      endpoint,
      clock: systemClock,
      random: Math.random,
      log,
      ...(lease === undefined ? {} : { lease: kubernetes.lease(lease.namespace, lease.name) }),
      trust: { source: trustSource(endpoint.trustBundles, settings.cluster), objects: kubernetes.trust },
      clusterApi: { management: (management ?? kubernetes).management, nodes: kubernetes.nodes, attest: endpoint },
    },
  );
  collectDefaultMetrics({ register: relay.metrics.registry });
  const probes = await serveProbes(relay, settings.probes);
  const started = { kubernetes, management, endpoint, relay, probes };
  if (settings.webhook === undefined) return { ...started, webhook: undefined };
  const proxy = createWebhookProxy(settings.cluster, { ...relay.connections, log });
  const source = revokedSource(endpoint.revoked, settings.cluster);
  const revoked = createRevokedWebhook({ source, clock: systemClock, log });
  const { webhookAnswered: answered } = relay.metrics;
  const path = revokedPath(settings.cluster);
  const handle: WebhookProxy = (call, signal) => (call.path === path ? revoked : proxy)(call, signal);
  const webhook = await serveWebhook(settings.webhook, handle, { concurrency, clock: systemClock, log, answered });
  return { ...started, webhook };
}

/** Undefined without `attestation.machines: clusterApi`. */
function clusterApiOptions(
  { clusterApi: { kubeconfig, namesSigners }, signers }: RelaySettings,
  configured: SignerOptions['clusterApi'],
): ClusterApiOptions | undefined {
  if (configured === undefined && (kubeconfig !== undefined || namesSigners))
    throw new Error(
      `--machines-kubeconfig and --infra-cluster-signers need attestation.machines: clusterApi in ${signers.kind === 'file' ? signers.path : '--config'}`,
    );
  if (configured === undefined) return undefined;
  const { signers: named, ...options } = configured;
  return { ...options, ...(namesSigners ? { signers: named } : {}) };
}

function readSigners({ signers, cluster }: RelaySettings): SignerOptions {
  if (signers.kind === 'flags') return signersFromFlags(signers.names, signers.inFlightPerRequester);
  const read = signersFromFile(readFileSync(signers.path, 'utf8'), signers.path, cluster);
  if (!read.ok) throw new Error(read.problem);
  return read.value;
}

function connect(settings: RelaySettings) {
  const authorize = authorization(settings);
  const kubernetes = connectKubernetes(settings.login);
  const { kubeconfig: path } = settings.clusterApi;
  const management = path === undefined ? undefined : connectKubernetes({ kind: 'kubeconfig', path });
  const endpoint = connectSigner({
    url: settings.endpointUrl,
    ...(settings.attestUrl === undefined ? {} : { attestUrl: settings.attestUrl }),
    connections: endpointConnections(settings),
    ...(authorize === undefined ? {} : { authorize }),
    ...(settings.proxy === undefined ? {} : { proxy: settings.proxy }),
    ...(settings.endpointCa === undefined ? {} : { caPem: readFileSync(settings.endpointCa, 'utf8') }),
  });
  return { kubernetes, management, endpoint };
}

/** The pod's name is better: with hostNetwork two pods of one node have the same host name. */
function replicaName({ podName }: RelaySettings): string {
  return podName ?? hostname();
}

function authorization(settings: RelaySettings): Authorize | undefined {
  const { caller, endpointUrl, proxy } = settings;
  switch (caller.kind) {
    case 'anonymous':
      return undefined;
    case 'tokenFile':
      return bearerFromFile(caller.path);
    case 'role': {
      const { arn, region } = caller;
      const sessionName = sessionNameOf(replicaName(settings));
      return createSigV4({
        url: endpointUrl,
        roleArn: arn,
        sessionName,
        ...(region === undefined ? {} : { region }),
        ...(proxy === undefined ? {} : { proxy }),
      });
    }
  }
}

main().then(
  // process.exit, not exitCode: an open timer or socket must not keep the process alive.
  (code) => process.exit(code),
  (error: unknown) => {
    process.stderr.write(`watch-relay: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
    process.exit(exitCodes.failed);
  },
);
