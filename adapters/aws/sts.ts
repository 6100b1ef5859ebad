/** GetCallerIdentity over HTTPS, exactly as core rebuilt it: what is asked and what counts as an answer is decided there. */
import { request as httpRequest } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { StsAnswer, StsEndpoint, StsRequest } from '../../core/attestation/aws/endpoints.ts';
import { ThrottledError } from '../../core/ports/errors.ts';

/** The whole exchange. With what EC2 may take besides, the function still answers before its 25 s are over. */
const totalMilliseconds = 5_000;
/** A true answer is below 1 KiB. */
const maxBytes = 65_536;

export interface StsOptions {
  /** AWS_ENDPOINT_URL_STS: where to connect instead; the Host header stays the one that was signed. For tests. */
  readonly endpoint?: string;
  readonly timeoutMilliseconds?: number;
}

export function stsEndpoint({ endpoint, timeoutMilliseconds = totalMilliseconds }: StsOptions = {}): StsEndpoint {
  return async (asked) => {
    const signal = AbortSignal.timeout(timeoutMilliseconds);
    const answer = await send(asked, endpoint, signal);
    if (answer.status === 429) throw new ThrottledError('STS asks to slow down');
    // Nothing was said about the caller: neither yes nor no.
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
    // Host, path and headers are ours, character by character: a URL parser could make others of them.
    const outgoing = connect({
      host: base.hostname,
      ...(base.port === '' ? {} : { port: base.port }),
      method: 'GET',
      path,
      headers: { ...headers, host },
      servername: host,
      signal,
      agent: false, // a connection that slept through a freeze of the function would only fail
    });
    // A client follows no redirects here: node:http never does.
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
