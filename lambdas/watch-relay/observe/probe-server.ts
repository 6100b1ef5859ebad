import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { boundConnections } from '../runtime/connections.ts';
import type { ListenAddress } from '../settings/flag-values.ts';
import type { Health } from './health.ts';
import type { RelayMetrics } from './metrics.ts';

/** What the probes show. */
export interface ProbeSource {
  readonly health: Pick<Health, 'problems'>;
  readonly metrics: Pick<RelayMetrics, 'exposition' | 'registry'>;
}

/** `/healthz`, `/readyz` and `/metrics`: for kubelet and Prometheus, nothing secret in any of them. */
export interface ProbeServer {
  readonly address: AddressInfo;
  close(): Promise<void>;
}

/** A probe and a scrape are one packet each. Node looks for late ones every 30 s unless told otherwise. */
const timeouts = { requestTimeout: 5_000, headersTimeout: 3_000, connectionsCheckingInterval: 1_000 };
/** Kubelet and a few Prometheus servers. Every pod may be able to connect, and kubelet must always get in. */
const connectionLimits = { total: 64, perAddress: 16 };

/** Without `host` on all interfaces, as a pod's probes need it. Rejects if the port cannot be had. */
export async function serveProbes(relay: ProbeSource, { host, port }: ListenAddress): Promise<ProbeServer> {
  // Whatever somebody sends, and whatever goes wrong with it, ends that call at most and never the relay.
  const server = createServer(timeouts, (request, response) => {
    answer(relay, request, response).catch(() => response.destroy());
  });
  boundConnections(server, connectionLimits);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port, ...(host === undefined ? {} : { host }) }, resolve);
  });
  return {
    address: server.address() as AddressInfo,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function answer(relay: ProbeSource, request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.method !== 'GET' && request.method !== 'HEAD') return send(response, 405, 'only GET\n');
  // Not by way of a URL: what the request line holds need not be one (`//`).
  const [path = ''] = (request.url ?? '/').split('?', 1);
  switch (path) {
    case '/healthz':
      // Answering at all is the proof: one thread does everything, and the lease runs out by itself.
      return send(response, 200, 'ok\n');
    case '/readyz': {
      const problems = relay.health.problems();
      return send(
        response,
        problems.length === 0 ? 200 : 503,
        `${problems.length === 0 ? 'ok' : problems.join('\n')}\n`,
      );
    }
    case '/metrics': {
      const text = await relay.metrics.exposition().catch(() => undefined);
      if (text === undefined) return send(response, 500, 'no metrics\n');
      return send(response, 200, text, relay.metrics.registry.contentType);
    }
    default:
      return send(response, 404, 'only /healthz, /readyz and /metrics\n');
  }
}

function send(response: ServerResponse, status: number, text: string, type = 'text/plain; charset=utf-8'): void {
  response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' }).end(text);
}
