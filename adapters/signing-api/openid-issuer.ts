import { request } from 'node:https';
import type { IncomingMessage } from 'node:http';

/** Both documents together; a caller's own call waits for them. */
const totalMilliseconds = 3_000;
/** kube-apiserver's are below 2 KiB. */
const maxBytes = 65_536;

export interface IssuerOptions {
  /** Trusted instead of the system's CAs. */
  readonly caPem?: string;
  readonly timeoutMilliseconds?: number;
}

/**
 * The key set that an OpenID issuer names in its discovery document (OpenID Connect Discovery 1.0 §4). Over TLS only,
 * no redirects, two small answers in bounded time, nothing kept. Throws when they cannot be had; the messages hold
 * hosts and statuses, never contents.
 */
export function connectIssuer(options: IssuerOptions = {}): (issuer: string) => Promise<unknown> {
  const limit = options.timeoutMilliseconds ?? totalMilliseconds;
  return async (issuer) => {
    const signal = AbortSignal.timeout(limit);
    try {
      return await keysOf(issuer, options, signal);
    } catch (error) {
      throw signal.aborted ? new Error(`${issuer}: no answer in ${limit / 1_000} s`, { cause: error }) : error;
    }
  };
}

async function keysOf(issuer: string, options: IssuerOptions, signal: AbortSignal): Promise<unknown> {
  const discovery = await get(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`, options, signal);
  const { issuer: named, jwks_uri: uri } = (discovery ?? {}) as { issuer?: unknown; jwks_uri?: unknown };
  // §4.3: must be the same, or one tenant of a host could speak for another.
  if (named !== issuer) throw new Error('the discovery document is of another issuer');
  if (typeof uri !== 'string') throw new Error('the discovery document names no key set');
  return get(uri, options, signal);
}

async function get(address: string, { caPem }: IssuerOptions, signal: AbortSignal): Promise<unknown> {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url?.protocol !== 'https:') throw new Error('not an https address');
  const incoming = await new Promise<IncomingMessage>((resolve, reject) => {
    const outgoing = request(url, {
      signal,
      agent: false, // a connection that slept through a freeze of the function would only fail
      // kube-apiserver answers 406 for its keys to whoever takes application/json alone.
      headers: { accept: 'application/json, application/jwk-set+json', 'user-agent': 'countersign-authorizer' },
      ...(caPem === undefined ? {} : { ca: caPem }),
    });
    outgoing.on('error', (error) => reject(new Error(`${url.host}: ${error.message}`, { cause: error })));
    outgoing.on('response', resolve);
    outgoing.end();
  });
  if (incoming.statusCode !== 200) {
    incoming.destroy();
    throw new Error(`${url.host}: HTTP ${incoming.statusCode}`);
  }
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > maxBytes) throw new Error(`${url.host}: the answer is too large`);
    chunks.push(chunk);
  }
  try {
    return JSON.parse(Buffer.concat(chunks, length).toString('utf8'));
  } catch {
    throw new Error(`${url.host}: the answer is not JSON`);
  }
}
