import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { Agent as HttpAgent } from 'node:http';
import type { AddressInfo } from 'node:net';

/** One call on its way through. */
export interface ProxiedCall {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** JSON, or undefined. */
  readonly body: unknown;
}

/** `before` it is forwarded: the far side knows nothing of it. `after` the far side answered: the caller knows nothing. */
export type Moment = 'before' | 'after';

/** `cut` breaks the caller's connection without an answer. */
export type Decision = 'pass' | 'cut';

export interface Proxy {
  readonly url: string;
  /** Asked twice for each call, except watches, which only have a `before`. Calls wait for its promise. */
  intervene: (call: ProxiedCall, moment: Moment, status?: number) => Decision | Promise<Decision>;
  /** Breaks every connection that is open now, watches too. */
  cutAll(): void;
  close(): Promise<void>;
}

/** Stands between a client and its server, in plain HTTP on loopback, and does nothing until told. */
export async function startProxy(upstream: { url: string; caPem?: string }): Promise<Proxy> {
  const secure = upstream.url.startsWith('https:');
  const agent = secure
    ? new HttpsAgent({ keepAlive: true, ...(upstream.caPem === undefined ? {} : { ca: upstream.caPem }) })
    : new HttpAgent({ keepAlive: false }); // a server that was killed leaves no idle connection to trip over

  async function forward(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const body = await readAll(incoming);
    const { pathname, searchParams } = new URL(incoming.url ?? '/', 'http://proxy');
    const call = { method: incoming.method ?? '', path: pathname, query: searchParams, body: parse(body) };
    const isWatch = searchParams.has('watch');
    if ((await proxy.intervene(call, 'before')) === 'cut') return void outgoing.destroy();

    const { host: _ours, connection: _hop, ...headers } = incoming.headers;
    const onward = (secure ? httpsRequest : httpRequest)(new URL(incoming.url ?? '/', upstream.url), {
      agent,
      method: call.method,
      headers,
    });
    outgoing.on('close', () => onward.destroy());
    onward.on('error', () => outgoing.destroy());
    onward.on('response', (answer) => {
      answer.on('error', () => outgoing.destroy());
      const status = answer.statusCode ?? 0;
      if (isWatch && status === 200) {
        outgoing.writeHead(status, answer.headers);
        outgoing.flushHeaders();
        answer.pipe(outgoing);
        answer.on('close', () => outgoing.destroy());
        return;
      }
      readAll(answer)
        .then(async (text) => {
          if ((await proxy.intervene(call, 'after', status)) === 'cut') return void outgoing.destroy();
          const { 'transfer-encoding': _chunked, ...rest } = answer.headers;
          outgoing.writeHead(status, { ...rest, 'content-length': text.length });
          outgoing.end(text);
        })
        .catch(() => outgoing.destroy());
    });
    onward.end(body);
  }

  const server = createServer((incoming, outgoing) => {
    forward(incoming, outgoing).catch(() => outgoing.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const proxy: Proxy = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    intervene: () => 'pass',
    cutAll: () => server.closeAllConnections(),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
        agent.destroy();
      }),
  };
  return proxy;
}

async function readAll(stream: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks);
}

function parse(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    return undefined;
  }
}
