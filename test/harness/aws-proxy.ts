import { Agent, createServer, request, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** One call of an AWS API on its way through. */
export interface AwsCall {
  /** From 1, in the order of arrival. */
  readonly number: number;
  /** `TrentService.Sign`, `DynamoDB_20120810.PutItem` …; method and path where the API has no such header. */
  readonly operation: string;
  /** As it was sent: JSON, in the APIs that have such a header. */
  readonly body: Buffer;
}

/**
 * `lost`: never arrives. `answerLost`: takes effect, and the connection breaks instead of an answer. `throttled` and
 * `failed`: an answer of the service, without effect.
 */
export type AwsFault = 'lost' | 'answerLost' | 'throttled' | 'failed';

export interface AwsProxy {
  readonly url: string;
  /** All calls so far, in the order of arrival. */
  readonly calls: readonly AwsCall[];
  count(operation: string): number;
  /** Asked for each call, which waits for its promise; nothing lets it pass. */
  inject: (call: AwsCall) => AwsFault | undefined | Promise<AwsFault | undefined>;
  close(): Promise<void>;
}

const faultAnswers = {
  throttled: { status: 400, type: 'ThrottlingException' },
  failed: { status: 500, type: 'InternalServerError' },
} as const;

/**
 * Counts what an SDK asks of AWS, and lets chosen calls fail. Calls go on with the Host they were signed for, so
 * signatures hold. The upstream may have no address yet, when it is to be told the proxy's first: calls wait for it.
 */
export async function startAwsProxy(upstreamUrl: string | Promise<string>): Promise<AwsProxy> {
  const agent = new Agent({ keepAlive: true });
  const calls: AwsCall[] = [];

  async function forward(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const body = await readAll(incoming);
    const target = incoming.headers['x-amz-target'];
    const call: AwsCall = {
      number: calls.length + 1,
      operation: typeof target === 'string' ? target : `${incoming.method} ${incoming.url}`,
      body,
    };
    calls.push(call);
    const fault = await proxy.inject(call);
    if (fault === 'lost') return void outgoing.destroy();
    if (fault === 'throttled' || fault === 'failed') {
      const { status, type } = faultAnswers[fault];
      outgoing.writeHead(status, { 'content-type': 'application/x-amz-json-1.0', 'x-amzn-errortype': type });
      return void outgoing.end(JSON.stringify({ __type: type, message: 'injected' }));
    }
    const { hostname, port } = new URL(await upstreamUrl);
    const { method, url, headers } = incoming;
    const onward = request({ hostname, port, agent, method, path: url, headers });
    onward.on('error', () => outgoing.destroy());
    onward.on('response', (answer) => {
      readAll(answer)
        .then((text) => {
          if (fault === 'answerLost') return void outgoing.destroy();
          const { 'transfer-encoding': _chunked, ...rest } = answer.headers;
          outgoing.writeHead(answer.statusCode ?? 0, { ...rest, 'content-length': text.length });
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
  const proxy: AwsProxy = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    count: (operation) => calls.filter((call) => call.operation === operation).length,
    inject: () => undefined,
    async close() {
      agent.destroy();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return proxy;
}

async function readAll(stream: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
