import { createServer } from 'node:http';
import type { ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ListenAddress } from './listen-address.ts';
import type { Relay } from './relay.ts';

/** `/healthz`, `/readyz` and `/metrics`: for kubelet and Prometheus, nothing secret in any of them. */
export interface ProbeServer {
  readonly address: AddressInfo;
  close(): Promise<void>;
}

/** Without `host` on all interfaces, as a pod's probes need it. Rejects if the port cannot be had. */
export async function serveProbes(
  relay: Pick<Relay, 'health' | 'metrics'>,
  { host, port }: ListenAddress,
): Promise<ProbeServer> {
  const server = createServer((request, response) => {
    if (request.method !== 'GET' && request.method !== 'HEAD') return send(response, 405, 'only GET\n');
    switch (new URL(request.url ?? '/', 'http://relay').pathname) {
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
      case '/metrics':
        relay.metrics.exposition().then(
          (text) => send(response, 200, text, relay.metrics.registry.contentType),
          () => send(response, 500, 'no metrics\n'),
        );
        return undefined;
      default:
        return send(response, 404, 'only /healthz, /readyz and /metrics\n');
    }
  });
  server.requestTimeout = 10_000;
  server.headersTimeout = 10_000;
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

function send(response: ServerResponse, status: number, text: string, type = 'text/plain; charset=utf-8'): void {
  response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' }).end(text);
}
