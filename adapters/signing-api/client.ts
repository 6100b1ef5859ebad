import { Agent as HttpAgent, request as httpRequest } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { LookupFunction } from 'node:net';
import type { SigningEndpoint } from '../../core/ports/signing-endpoint.ts';
import { exchange, wholeAnswer } from '../http/exchange.ts';
import { interpretAttest, interpretSign } from './answers.ts';
import type { WholeAnswer } from '../http/exchange.ts';

/** API Gateway ends a call after 30 s: give up before, so that it is always we who know that nothing came. */
const answerMilliseconds = 29_000;
/** The object that was sent, with a certificate chain: no more than twice the largest object. */
const maxAnswerBytes = 4 * 1_048_576;
/** Shorter than the idle time of the load balancers in front (60 s): no request meets a connection being closed. */
const idleMilliseconds = 30_000;

export interface SignerHttpOptions {
  /** `https://…/v1/clusters/<name>`; `/sign` and `/attest` are added. */
  readonly url: string;
  /** Likewise, where attest is reached elsewhere: each function URL is one function's. */
  readonly attestUrl?: string;
  /** At once; as many as there are calls at once, since one more waits for one of them, and its time runs. */
  readonly connections: number;
  /** Who we are, for one call. Asked each time, within the time that the call has. */
  readonly authorize?: Authorize;
  /** Trusted instead of the system's CAs. */
  readonly caPem?: string;
  readonly timeoutMilliseconds?: number;
}

/** What is about to be sent, as far as credentials can depend on it. */
export interface OutgoingCall {
  readonly method: 'POST';
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/** Headers to add; or none are to be had until somebody mends something, and the message says what, nothing secret. */
export type Credentials =
  | { readonly ok: true; readonly headers: Readonly<Record<string, string>> }
  | { readonly ok: false; readonly message: string };

/** Throws when it is only a matter of time. */
export type Authorize = (call: OutgoingCall) => Promise<Credentials>;

/** The sign and attest functions behind HTTP. No redirects are followed: whoever may answer is named in the URL. */
export function connectSigner(options: SignerHttpOptions): SigningEndpoint & { close(): void } {
  const url = pathUrl(options.url, 'sign');
  const attestUrl = pathUrl(options.attestUrl ?? options.url, 'attest');
  if (attestUrl.protocol !== url.protocol) throw new Error('both URLs must be https, or both http');
  const secure = url.protocol === 'https:';
  const agentOptions = {
    keepAlive: true,
    maxSockets: options.connections,
    timeout: idleMilliseconds,
    ...([url, attestUrl].every(({ hostname }) => hostname.endsWith('.localhost')) ? { lookup: loopback } : {}),
  };
  const agent = secure
    ? new HttpsAgent({ ...agentOptions, ...(options.caPem === undefined ? {} : { ca: options.caPem }) })
    : new HttpAgent(agentOptions);
  // All connections trust the same CAs and show no certificate. Node's own name for them would repeat the CAs each time.
  agent.getName = ({ host, port } = {}) => `${host}:${port}`;

  function post(url: URL, json: unknown, signal: AbortSignal): Promise<WholeAnswer | NoCredentials> {
    const body = Buffer.from(JSON.stringify(json), 'utf8');
    const headers = { accept: 'application/json', 'content-type': 'application/json' };
    return exchange<WholeAnswer | NoCredentials, Credentials | undefined>({
      signal,
      timeoutMilliseconds: options.timeoutMilliseconds ?? answerMilliseconds,
      login: async () => options.authorize?.({ method: 'POST', url, headers, body }),
      send: (credentials) => {
        if (credentials?.ok === false) return { result: credentials };
        const own = { ...headers, 'user-agent': 'countersign-watch-relay', 'content-length': body.length };
        const to = { agent, method: 'POST', headers: { ...own, ...credentials?.headers } };
        return (secure ? httpsRequest : httpRequest)(url, to).end(body);
      },
      read: wholeAnswer(maxAnswerBytes),
    });
  }

  return {
    async sign(object, signal) {
      const answer = await post(url, object, signal);
      return 'status' in answer ? interpretSign(answer) : { kind: 'unauthorized', message: answer.message };
    },
    async attest(request, context, signal) {
      const answer = await post(attestUrl, { request, ...(context === undefined ? {} : { context }) }, signal);
      return 'status' in answer ? interpretAttest(answer) : { kind: 'unauthorized', message: answer.message };
    },
    close: () => agent.destroy(),
  };
}

/** Throws a sentence for the user when the URL cannot be an endpoint of ours. */
export function signUrl(base: string): URL {
  return pathUrl(base, 'sign');
}

function pathUrl(base: string, name: 'sign' | 'attest'): URL {
  const url = new URL(base);
  if (url.protocol !== 'https:' && url.protocol !== 'http:') throw new Error('the URL must be http or https');
  // A password in a URL ends in logs; a query is dropped by some clients of the protocol.
  if (url.username !== '' || url.password !== '') throw new Error('the URL must not carry credentials');
  if (url.search !== '' || url.hash !== '') throw new Error('the URL must not have a query or fragment');
  url.pathname = `${url.pathname.replace(/\/+$/, '')}/${name}`;
  return url;
}

/** RFC 6761 §6.3: names under localhost are this machine's, though not every resolver knows. */
const loopback: LookupFunction = (_name, { all }, done) =>
  all === true ? done(null, [{ address: '127.0.0.1', family: 4 }]) : done(null, '127.0.0.1', 4);

type NoCredentials = Credentials & { readonly ok: false };
