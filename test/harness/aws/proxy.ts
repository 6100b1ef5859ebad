import { Agent } from 'node:http';
import { passBack, passOn, readAll, startLoopbackServer } from '../processes/forwarding.ts';

/** One call of an AWS API on its way through. */
export interface AwsCall {
  /** From 1, in the order of arrival. */
  readonly number: number;
  /** `TrentService.Sign`, `DynamoDB_20120810.PutItem` …; method and path where the API has no such header. */
  readonly operation: string;
  /** As it was sent: JSON, in the APIs that have such a header. */
  readonly body: Buffer;
  /** When it arrived, by performance.now(), and when its answer was there; undefined while it is under way. */
  readonly begun: number;
  answered?: number;
}

/**
 * `lost`: never arrives. `answerLost`: takes effect, and the connection breaks instead of an answer. The others are
 * answers of the service, without effect; the last two are DynamoDB's to transactions, which emulators never give.
 */
export type AwsFault = 'lost' | 'answerLost' | keyof typeof faultAnswers;

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
  conflict: {
    status: 400,
    type: 'TransactionCanceledException',
    CancellationReasons: [{ Code: 'None' }, { Code: 'TransactionConflict' }],
  },
  inProgress: { status: 400, type: 'TransactionInProgressException' },
} as const;

/**
 * Counts what an SDK asks of AWS, and lets chosen calls fail. Calls go on with the Host they were signed for, so
 * signatures hold. The upstream may have no address yet, when it is to be told the proxy's first: calls wait for it.
 */
export async function startAwsProxy(upstreamUrl: string | Promise<string>): Promise<AwsProxy> {
  // Kept ones the upstream may close just then: a call that fails for it is made again, and is one too many.
  const agent = new Agent({ keepAlive: false });
  const calls: AwsCall[] = [];

  const server = await startLoopbackServer(async (incoming, outgoing) => {
    const body = await readAll(incoming);
    const target = incoming.headers['x-amz-target'];
    const call: AwsCall = {
      number: calls.length + 1,
      operation: typeof target === 'string' ? target : `${incoming.method} ${incoming.url}`,
      body,
      begun: performance.now(),
    };
    calls.push(call);
    const fault = await proxy.inject(call);
    if (fault === 'lost') return void outgoing.destroy();
    if (fault !== undefined && fault !== 'answerLost') {
      const { status, type, ...more } = faultAnswers[fault];
      outgoing.writeHead(status, { 'content-type': 'application/x-amz-json-1.0', 'x-amzn-errortype': type });
      return void outgoing.end(JSON.stringify({ __type: type, message: 'injected', ...more }));
    }
    const answer = await passOn(incoming, { upstream: await upstreamUrl, agent, headers: incoming.headers, body });
    const text = await readAll(answer);
    call.answered = performance.now();
    if (fault === 'answerLost') return void outgoing.destroy();
    passBack(answer, text, outgoing);
  });
  const proxy: AwsProxy = {
    url: server.url,
    calls,
    count: (operation) => calls.filter((call) => call.operation === operation).length,
    inject: () => undefined,
    async close() {
      agent.destroy();
      await server.close();
    },
  };
  return proxy;
}
