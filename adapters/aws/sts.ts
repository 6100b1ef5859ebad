/** Sends GetCallerIdentity over HTTPS, exactly as core/attestation/aws/ rebuilt it. That code also checks the answer. */
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { StsEndpoint } from '../../core/attestation/aws/endpoints.ts';
import { ThrottledError } from '../../core/ports/errors.ts';
import { exchange, wholeAnswer } from '../http/exchange.ts';

/** For the whole exchange, so that it fits into the function's 25 s together with the calls to EC2. */
const totalMilliseconds = 5_000;
/** A genuine answer has less than 1 KiB. */
const maxBytes = 65_536;

export interface StsOptions {
  /** AWS_ENDPOINT_URL_STS, for tests: connect there instead. The Host header stays the one that was signed. */
  readonly endpoint?: string;
  readonly timeoutMilliseconds?: number;
}

export function stsEndpoint({ endpoint, timeoutMilliseconds = totalMilliseconds }: StsOptions = {}): StsEndpoint {
  return async ({ host, path, headers: signed }) => {
    const base = new URL(endpoint ?? `https://${host}`);
    const connect = base.protocol === 'https:' ? httpsRequest : httpRequest;
    // Host, path and headers are sent unchanged: a URL parser could normalize them into others.
    const outgoing = {
      host: base.hostname,
      ...(base.port === '' ? {} : { port: base.port }),
      method: 'GET',
      path,
      headers: { ...signed, host },
      servername: host,
      agent: false, // a connection that was open while the function was frozen would fail
    };
    const read = wholeAnswer(maxBytes);
    const { status, headers, body } = await exchange({
      timeoutMilliseconds,
      send: () => connect(outgoing).end(),
      read,
    }).catch((cause: unknown) => {
      throw new Error('STS did not answer properly', { cause });
    });
    if (status === 429) throw new ThrottledError('STS asks to slow down');
    // A 5xx says nothing about the caller.
    if (status >= 500) throw new Error(`STS answered with status ${status}`);
    return { status, contentType: headers['content-type'] ?? '', body: body.toString('utf8') };
  };
}
