/** Wires the relay to a cluster, an endpoint and this process. */
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { pino } from 'pino';
import { collectDefaultMetrics } from 'prom-client';
import { connectKubernetes } from '../../adapters/kubernetes-api.ts';
import { connectSigner } from '../../adapters/signer-http.ts';
import type { Authorize } from '../../adapters/signer-http.ts';
import { createSigV4, sessionNameOf } from '../../adapters/sigv4.ts';
import { bearerFromFile } from '../../adapters/token-file.ts';
import { parseSettings } from './env.ts';
import type { RelaySettings } from './env.ts';
import { serveProbes } from './probe-server.ts';
import { createRelay } from './relay.ts';
import { systemClock } from './system-clock.ts';

const exitCodes = { ok: 0, failed: 1, usage: 2, configuration: 3 } as const;

async function main(): Promise<number> {
  const parsed = parseSettings(process.argv.slice(2), process.env);
  switch (parsed.kind) {
    case 'help':
      process.stdout.write(parsed.text);
      return exitCodes.ok;
    case 'wrong':
      process.stderr.write(`watch-relay: ${parsed.message}\nwatch-relay: --help shows all options\n`);
      return exitCodes.usage;
    case 'settings':
      return serve(parsed.settings);
  }
}

async function serve(settings: RelaySettings): Promise<number> {
  const log = pino({ level: settings.logLevel, base: null, timestamp: pino.stdTimeFunctions.isoTime });
  let connections;
  try {
    connections = connect(settings);
  } catch (error) {
    process.stderr.write(`watch-relay: ${error instanceof Error ? error.message : String(error)}\n`);
    return exitCodes.configuration;
  }
  const { kubernetes, endpoint } = connections;
  const { lease } = settings;
  const relay = createRelay(
    {
      signerNames: settings.signerNames,
      concurrency: settings.concurrency,
      graceMilliseconds: settings.drainSeconds * 1_000,
      // Unique to this process: after a restart under the same host name the old self is somebody else.
      identity: `${hostname()}_${randomUUID()}`,
    },
    {
      api: kubernetes.requests,
      endpoint,
      clock: systemClock,
      random: Math.random,
      log,
      ...(lease === undefined ? {} : { lease: kubernetes.lease(lease.namespace, lease.name) }),
    },
  );
  collectDefaultMetrics({ register: relay.metrics.registry });

  let probes;
  try {
    probes = await serveProbes(relay, settings.probes);
  } catch (error) {
    process.stderr.write(`watch-relay: --metrics-address: ${error instanceof Error ? error.message : String(error)}\n`);
    return exitCodes.configuration;
  }
  log.info({ server: kubernetes.server, endpoint: settings.endpointUrl, probes: probes.address }, 'connected');
  const stop = new AbortController();
  const onSignal = (signal: NodeJS.Signals): void => {
    if (stop.signal.aborted) process.exit(exitCodes.failed); // asked twice: now
    log.info({ signal }, 'stopping');
    stop.abort();
  };
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
  try {
    await relay.run(stop.signal);
    return exitCodes.ok;
  } finally {
    await probes.close();
    endpoint.close();
    kubernetes.close();
  }
}

function connect(settings: RelaySettings) {
  const authorize = authorization(settings);
  const kubernetes = connectKubernetes(settings.login);
  const endpoint = connectSigner({
    url: settings.endpointUrl,
    connections: settings.concurrency,
    ...(authorize === undefined ? {} : { authorize }),
    ...(settings.endpointCa === undefined ? {} : { caPem: readFileSync(settings.endpointCa, 'utf8') }),
  });
  return { kubernetes, endpoint };
}

function authorization({ caller, endpointUrl, podName }: RelaySettings): Authorize | undefined {
  switch (caller.kind) {
    case 'anonymous':
      return undefined;
    case 'tokenFile':
      return bearerFromFile(caller.path);
    case 'role': {
      const { arn, region } = caller;
      // With the host's network the host name is the node's.
      const sessionName = sessionNameOf(podName ?? hostname());
      return createSigV4({ url: endpointUrl, roleArn: arn, sessionName, ...(region === undefined ? {} : { region }) });
    }
  }
}

main().then(
  // Not only exitCode: a forgotten timer or socket must not keep a stopped relay around.
  (code) => process.exit(code),
  (error: unknown) => {
    process.stderr.write(`watch-relay: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
    process.exit(exitCodes.failed);
  },
);
