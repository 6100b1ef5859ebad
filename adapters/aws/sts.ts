/** Sends GetCallerIdentity over HTTPS, exactly as core rebuilt it. core also decides which answers are valid. */
import { request as httpRequest } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { StsAnswer, StsEndpoint, StsRequest } from '../../core/attestation/aws/endpoints.ts';
import { ThrottledError } from '../../core/ports/errors.ts';

/** The whole exchange. Together with the calls of EC2 it leaves time within the function's 25 s. */
const totalMilliseconds = 5_000;
/** A genuine answer has less than 1 KiB. */
const maxBytes = 65_536;

export interface StsOptions {
  /** AWS_ENDPOINT_URL_STS, for tests: connect there instead. The Host header stays the one that was signed. */
  readonly endpoint?: string;
  readonly timeoutMilliseconds?: number;
}

export function stsEndpoint({ endpoint, timeoutMilliseconds = totalMilliseconds }: StsOptions = {}): StsEndpoint {
  return async (asked) => {
    const signal = AbortSignal.timeout(timeoutMilliseconds);
    const answer = await send(asked, endpoint, signal);
    if (answer.status === 429) throw new ThrottledError('STS asks to slow down');
    // A 5xx says nothing about the caller.
    if (answer.status >= 500) throw new Error(`STS answered with status ${answer.status}`);
    return answer;
  };
}

async function send(
  { host, path, headers }: StsRequest,
  endpoint: string | undefined,
  signal: AbortSignal,
): Promise<StsAnswer> {
  const base = new URL(endpoint ?? `https://${host}`);
  const connect = base.protocol === 'https:' ? httpsRequest : httpRequest;
  const incoming = await new Promise<IncomingMessage>((resolve, reject) => {
    // Host, path and headers are sent unchanged: a URL parser could normalize them into others.
    const outgoing = connect({
      host: base.hostname,
      ...(base.port === '' ? {} : { port: base.port }),
      method: 'GET',
      path,
      headers: { ...headers, host },
      servername: host,
      signal,
      agent: false, // a connection that was open while the function was frozen would fail
    });
    // node:http never follows redirects.
    outgoing.on('error', (error) => reject(new Error('STS cannot be reached', { cause: error })));
    outgoing.on('response', resolve);
    outgoing.end();
  });
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    for await (const chunk of incoming as AsyncIterable<Buffer>) {
      length += chunk.length;
      if (length > maxBytes) throw new Error('the answer of STS is too large');
      chunks.push(chunk);
    }
  } finally {
    incoming.destroy();
  }
  return {
    status: incoming.statusCode ?? 0,
    contentType: incoming.headers['content-type'] ?? '',
    body: Buffer.concat(chunks, length).toString('utf8'),
  };
}
