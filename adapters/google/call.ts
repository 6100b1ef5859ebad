/** One HTTPS call to an API of Google: no redirects, bounded in time and size, JSON answers. */
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isObject } from '../../core/encoding/json-object.ts';
import type { JsonObject } from '../../core/encoding/json-object.ts';
import { ThrottledError } from '../../core/ports/errors.ts';
import { exchange, wholeAnswer } from '../http/exchange.ts';

/** For one call, so that the four calls about one VM fit into the function's 25 s. */
const callMilliseconds = 4_000;
/** The description of a VM with large metadata: Google limits metadata to 512 KiB. */
const maxBytes = 1_048_576;

export type GoogleHost =
  'sts.googleapis.com' | 'iamcredentials.googleapis.com' | 'compute.googleapis.com' | 'www.googleapis.com';

export interface GoogleCallOptions {
  /** For tests: the URL to connect to instead. The Host header stays Google's. */
  readonly endpoint?: (host: GoogleHost) => string;
  readonly timeoutMilliseconds?: number;
}

export interface GoogleCall {
  readonly host: GoogleHost;
  /** With the query. Only text of closed patterns is put into it, so nothing needs an escape. */
  readonly path: string;
  readonly token?: string;
  readonly post?: { readonly contentType: string; readonly body: string };
}

export interface GoogleAnswer {
  readonly status: number;
  /** Empty unless the answer is one JSON object. */
  readonly body: JsonObject;
}

/** Throws on a temporary failure: network, 5xx, 429. */
export async function callGoogle(
  { host, path, token, post }: GoogleCall,
  { endpoint, timeoutMilliseconds = callMilliseconds }: GoogleCallOptions,
): Promise<GoogleAnswer> {
  const base = new URL(endpoint?.(host) ?? `https://${host}`);
  const connect = base.protocol === 'https:' ? httpsRequest : httpRequest;
  const { status, body } = await exchange({
    timeoutMilliseconds,
    send: () =>
      connect({
        host: base.hostname,
        ...(base.port === '' ? {} : { port: base.port }),
        method: post === undefined ? 'GET' : 'POST',
        path,
        headers: {
          host,
          accept: 'application/json',
          ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
          ...(post === undefined
            ? {}
            : { 'content-type': post.contentType, 'content-length': Buffer.byteLength(post.body) }),
        },
        servername: host,
        agent: false, // a connection that was open while the function was frozen would fail
      }).end(post?.body),
    read: wholeAnswer(maxBytes),
  }).catch((cause: unknown) => {
    throw new Error(`${host} did not answer properly`, { cause });
  });
  if (status === 429) throw new ThrottledError(`${host} asks to slow down`);
  if (status >= 500) throw new Error(`${host} answered with status ${status}`);
  return { status, body: objectIn(body) };
}

function objectIn(body: Buffer): JsonObject {
  try {
    const value: unknown = JSON.parse(body.toString('utf8'));
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}
