import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { boundConnections } from '../runtime/connections.ts';
import type { ListenAddress } from '../settings/flag-values.ts';
import type { Health } from './health.ts';
import type { RelayMetrics } from './metrics.ts';

export interface ProbeSource {
  readonly health: Pick<Health, 'problems'>;
  readonly metrics: Pick<RelayMetrics, 'exposition' | 'registry'>;
}

/** `/healthz`, `/readyz` and `/metrics`, without authentication: none of them contains a secret. */
export interface ProbeServer {
  readonly address: AddressInfo;
  close(): Promise<void>;
}

/** Short, since a probe or scrape is one packet. By default Node checks for late requests every 30 s only. */
const timeouts = { requestTimeout: 5_000, headersTimeout: 3_000, connectionsCheckingInterval: 1_000 };
/** Enough for kubelet and a few Prometheus servers. Other pods may connect too, and must not exclude kubelet. */
const connectionLimits = { total: 64, perAddress: 16 };

/** Without `host` it listens on all interfaces, as the probes of a pod require. Rejects if the port is in use. */
export async function serveProbes(relay: ProbeSource, { host, port }: ListenAddress): Promise<ProbeServer> {
  // An error ends only this call, never the relay.
  const server = createServer(timeouts, (request, response) => {
    answer(relay, request, response).catch(() => response.destroy());
  });
  boundConnections(server, connectionLimits);
  await once(server.listen({ port, ...(host === undefined ? {} : { host }) }), 'listening');
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
  // The request target is not parsed as a URL, since it may not be one (`//`).
  const [path = ''] = (request.url ?? '/').split('?', 1);
  switch (path) {
    case '/healthz':
      // The process has one thread, so any answer shows that it works.
      return send(response, 200, 'ok\n');
    case '/readyz': {
      const problems = relay.health.problems();
      return problems.length === 0 ? send(response, 200, 'ok\n') : send(response, 503, `${problems.join('\n')}\n`);
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
