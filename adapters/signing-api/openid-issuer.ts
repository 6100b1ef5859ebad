import { request } from 'node:https';
import { errorMessage } from '../../core/outcome/error-message.ts';
import { exchange, wholeAnswer } from '../http/exchange.ts';
import type { Exchange } from '../http/exchange.ts';

/** For both documents together; the caller's API call waits for them. */
const totalMilliseconds = 3_000;
/** kube-apiserver's are below 2 KiB. */
const maxBytes = 65_536;

export interface IssuerOptions {
  /** Trusted instead of the system's CAs. */
  readonly caPem?: string;
  readonly timeoutMilliseconds?: number;
}

/**
 * Reads the key set that an OpenID issuer names in its discovery document (OpenID Connect Discovery 1.0 §4): over TLS
 * only, without redirects, bounded in size and time, and without a cache. Throws if a document cannot be read; messages hold
 * hosts and statuses, never contents.
 */
export function connectIssuer(options: IssuerOptions = {}): (issuer: string) => Promise<unknown> {
  const limit = options.timeoutMilliseconds ?? totalMilliseconds;
  return async (issuer) => {
    const signal = AbortSignal.timeout(limit);
    try {
      return await keysOf(issuer, options, { signal, timeoutMilliseconds: limit });
    } catch (error) {
      throw signal.aborted ? new Error(`${issuer}: no answer in ${limit / 1_000} s`, { cause: error }) : error;
    }
  };
}

type Limits = Pick<Exchange<unknown, unknown>, 'signal' | 'timeoutMilliseconds'>;

async function keysOf(issuer: string, options: IssuerOptions, limits: Limits): Promise<unknown> {
  const discovery = await get(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`, options, limits);
  const { issuer: named, jwks_uri: uri } = (discovery ?? {}) as { issuer?: unknown; jwks_uri?: unknown };
  // §4.3: must be the same, or one tenant of a host could impersonate another.
  if (named !== issuer) throw new Error('the discovery document names another issuer');
  if (typeof uri !== 'string') throw new Error('the discovery document names no key set');
  return get(uri, options, limits);
}

async function get(address: string, { caPem }: IssuerOptions, limits: Limits): Promise<unknown> {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url?.protocol !== 'https:') throw new Error('not an https address');
  const outgoing = {
    agent: false, // a connection that was open while the function was frozen would fail
    // kube-apiserver answers 406 for its keys if only application/json is accepted.
    headers: { accept: 'application/json, application/jwk-set+json', 'user-agent': 'countersign-authorizer' },
    ...(caPem === undefined ? {} : { ca: caPem }),
  };
  try {
    return await exchange({
      ...limits,
      send: () => request(url, outgoing).end(),
      async read(incoming, sent) {
        if (incoming.statusCode !== 200) throw new Error(`HTTP ${incoming.statusCode}`);
        return parse((await wholeAnswer(maxBytes)(incoming, sent)).body);
      },
    });
  } catch (error) {
    throw new Error(`${url.host}: ${errorMessage(error)}`, { cause: error });
  }
}

function parse(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    throw new Error('the answer is not JSON');
  }
}
