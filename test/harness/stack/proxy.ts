import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { pipeline } from 'node:stream/promises';
import { passBack, passOn, readAll, startLoopbackServer } from '../processes/forwarding.ts';

/** One call on its way through. */
export interface ProxiedCall {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  /** What a test changes in it `before` the call is forwarded, the far side is asked. */
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

  const server = await startLoopbackServer(async (incoming, outgoing) => {
    const body = await readAll(incoming);
    const { pathname, searchParams } = new URL(incoming.url ?? '/', 'http://proxy');
    const call = { method: incoming.method ?? '', path: pathname, query: searchParams, body: parse(body) };
    if ((await proxy.intervene(call, 'before')) === 'cut') return void outgoing.destroy();

    if (searchParams.size > 0) incoming.url = `${pathname}?${searchParams.toString()}`;
    const { host: _ours, connection: _hop, ...headers } = incoming.headers;
    const gone = new AbortController();
    outgoing.on('close', () => gone.abort());
    const answer = await passOn(incoming, { upstream: upstream.url, agent, headers, body, signal: gone.signal });
    if (searchParams.has('watch') && answer.statusCode === 200) {
      outgoing.writeHead(200, answer.headers);
      outgoing.flushHeaders();
      return pipeline(answer, outgoing);
    }
    const text = await readAll(answer);
    if ((await proxy.intervene(call, 'after', answer.statusCode)) === 'cut') return void outgoing.destroy();
    passBack(answer, text, outgoing);
  });
  const proxy: Proxy = {
    url: server.url,
    intervene: () => 'pass',
    cutAll: () => server.cutAll(),
    async close() {
      await server.close();
      agent.destroy();
    },
  };
  return proxy;
}

function parse(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    return undefined;
  }
}
