/** What the proxies between components have in common: a server on loopback that passes calls on. */
import {
  createServer,
  request as httpRequest,
  type Agent as HttpAgent,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import { request as httpsRequest, type Agent as HttpsAgent } from 'node:https';
import type { AddressInfo } from 'node:net';

export interface LoopbackServer {
  readonly url: string;
  /** Breaks every connection that is open now. */
  cutAll(): void;
  close(): Promise<void>;
}

/** Whatever `handle` throws breaks the caller's connection, without an answer. */
export async function startLoopbackServer(
  handle: (incoming: IncomingMessage, outgoing: ServerResponse) => Promise<void>,
): Promise<LoopbackServer> {
  const server = createServer((incoming, outgoing) => {
    handle(incoming, outgoing).catch(() => outgoing.destroy());
  });
  // A busy test would find out too late that a connection has been idle, and close it under the next call.
  server.keepAliveTimeout = 600_000;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cutAll: () => server.closeAllConnections(),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** Asks the upstream the same; resolves when it begins to answer. */
export function passOn(
  incoming: IncomingMessage,
  options: {
    readonly upstream: string;
    readonly agent: HttpAgent | HttpsAgent;
    readonly headers: IncomingHttpHeaders;
    readonly body: Buffer;
    /** Gives the call up, also while it is answered. */
    readonly signal?: AbortSignal;
  },
): Promise<IncomingMessage> {
  const { upstream, agent, headers, body, signal } = options;
  const url = new URL(incoming.url ?? '/', upstream);
  return new Promise((resolve, reject) => {
    const onward = (url.protocol === 'https:' ? httpsRequest : httpRequest)(url, {
      agent,
      method: incoming.method ?? '',
      headers,
      ...(signal === undefined ? {} : { signal }),
    });
    onward.on('error', reject);
    onward.on('response', resolve);
    onward.end(body);
  });
}

/** Gives the upstream's answer, read whole, to the caller. */
export function passBack(answer: IncomingMessage, body: Buffer, outgoing: ServerResponse): void {
  const { 'transfer-encoding': _chunked, ...headers } = answer.headers;
  outgoing.writeHead(answer.statusCode ?? 0, { ...headers, 'content-length': body.length });
  outgoing.end(body);
}

export async function readAll(stream: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks);
}
