/**
 * The relay watches requests. For signers that it is configured to decide, it approves or denies them after an access
 * review and attest's verdict. It sends each approved request to the sign function and writes the answer to its status. It
 * holds no key, and sign checks each request itself. Start with `runSession` (session.ts), `relayRequest` (work.ts) and
 * `decideRequest` (approval.ts).
 */
import { createHealth } from './observe/health.ts';
import type { Health } from './observe/health.ts';
import { runAsLeader } from './cluster/leader.ts';
import { createRelayMetrics } from './observe/metrics.ts';
import type { RelayMetrics } from './observe/metrics.ts';
import { createClusterApiSession, mirroredResources } from './cluster-api/session.ts';
import type { ClusterApiSession } from './cluster-api/session.ts';
import { observedApi, observedEndpoint, observedSource } from './observe/observed.ts';
import type { RelayOptions, RelayPorts } from './settings/options.ts';
import { runSession } from './session.ts';
import { keepTrust } from './trust/keep-trust.ts';

export interface Relay {
  /** Resolves after `stop` and the drain. Errors of the API server and the endpoint never reject it. */
  run(stop: AbortSignal): Promise<void>;
  readonly health: Health;
  readonly metrics: RelayMetrics;
  /** For the webhook proxy: metrics and health count these calls too. */
  readonly connections: Pick<RelayPorts, 'api' | 'endpoint'>;
}

export function createRelay(options: RelayOptions, ports: RelayPorts): Relay {
  const resources = options.clusterApi === undefined ? [] : mirroredResources;
  const health = createHealth([...options.signerNames, ...resources], () => ports.clock.monotonic());
  const metrics = createRelayMetrics();
  const { clock, log } = ports;
  const api = observedApi(ports.api, health, metrics);
  const endpoint = observedEndpoint(ports.endpoint, clock, health, metrics);
  const observed = { ...ports, api, endpoint, health, metrics };

  async function work(stop: AbortSignal, lost: AbortSignal): Promise<void> {
    health.role('working');
    metrics.leads(true);
    const clusterApi = clusterApiSession();
    const machines = clusterApi === undefined ? {} : { machines: clusterApi.lookup };
    const either = AbortSignal.any([stop, lost]);
    await Promise.all([
      runSession(options, { ...observed, ...machines }, stop, lost),
      clusterApi?.run(either),
      trusting(either),
    ]);
    metrics.leads(false);
    health.role(stop.aborted ? 'draining' : 'standby');
  }

  /** New for each leadership: what a standby replica had would be old. */
  function clusterApiSession(): ClusterApiSession | undefined {
    if (options.clusterApi === undefined || ports.clusterApi === undefined) return undefined;
    return createClusterApiSession(options.clusterApi, {
      ...observed,
      ...ports.clusterApi,
      observed: (resource, source) => observedSource(resource, source, health, metrics),
    });
  }

  /** By the leader alone, so that two replicas do not write in turns. */
  async function trusting(stop: AbortSignal): Promise<void> {
    const { trust: kept, signerNames } = options;
    const { trust } = ports;
    if (kept !== undefined && trust !== undefined) await keepTrust(kept, signerNames, { ...observed, ...trust }, stop);
  }

  return {
    health,
    metrics,
    connections: { api, endpoint },
    async run(stop) {
      log.info({ signerNames: options.signerNames, concurrency: options.concurrency }, 'relay started');
      metrics.leads(false);
      const { lease: store } = ports;
      if (store === undefined) await work(stop, new AbortController().signal);
      else {
        health.role('standby');
        await runAsLeader((lost) => work(stop, lost), { ...ports, store, identity: options.identity }, stop);
      }
      log.info({}, 'relay stopped');
    },
  };
}
