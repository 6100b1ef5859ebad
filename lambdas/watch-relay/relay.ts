/**
 * The relay: sees requests, approves or denies those it is told to decide about, by the cluster's review, its own rules
 * and attest's verdict, has each approved one answered by the sign function, and writes the answers back. It holds no
 * key, and what it approves is signed only if the sign function finds the same. Read `runSession` in session.ts,
 * `relayRequest` in work.ts and `decideRequest` in approval.ts; the rest serves these.
 */
import { createHealth } from './observe/health.ts';
import type { Health } from './observe/health.ts';
import { runAsLeader } from './cluster/leader.ts';
import { createRelayMetrics } from './observe/metrics.ts';
import type { RelayMetrics } from './observe/metrics.ts';
import { observedApi, observedEndpoint } from './observe/observed.ts';
import type { RelayOptions, RelayPorts } from './settings/options.ts';
import { runSession } from './session.ts';

export interface Relay {
  /** Until `stop` and the drain that follows it. Never rejects for what the world does. */
  run(stop: AbortSignal): Promise<void>;
  readonly health: Health;
  readonly metrics: RelayMetrics;
  /** The same connections, watched: for the webhook proxy beside it. */
  readonly connections: Pick<RelayPorts, 'api' | 'endpoint'>;
}

export function createRelay(options: RelayOptions, ports: RelayPorts): Relay {
  const health = createHealth(options.signerNames, () => ports.clock.monotonic());
  const metrics = createRelayMetrics();
  const { clock, log } = ports;
  const api = observedApi(ports.api, health, metrics);
  const endpoint = observedEndpoint(ports.endpoint, clock, health, metrics);
  const observed = { ...ports, api, endpoint, health, metrics };

  async function work(stop: AbortSignal, lost: AbortSignal): Promise<void> {
    health.role('working');
    metrics.leads(true);
    await runSession(options, observed, stop, lost);
    metrics.leads(false);
    health.role(stop.aborted ? 'draining' : 'standby');
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
