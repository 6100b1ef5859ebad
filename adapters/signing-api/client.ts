import { Agent as HttpAgent, request as httpRequest } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { ClientRequest, RequestOptions } from 'node:http';
import type { LookupFunction } from 'node:net';
import { success } from '../../core/outcome/result.ts';
import type { Result } from '../../core/outcome/result.ts';
import type { LookEndpoint, SigningEndpoint } from '../../core/ports/signing-endpoint.ts';
import { exchange, wholeAnswer } from '../http/exchange.ts';
import type { ForwardProxy } from '../http/proxy.ts';
import { encodeContext } from './context.ts';
import { interpretAttest, interpretLook, interpretSign } from './answers.ts';
import type { WholeAnswer } from '../http/exchange.ts';

/** API Gateway ends a call after 30 s. The relay gives up before, so that it always knows why a call has ended. */
const answerMilliseconds = 29_000;
/** An answer holds the object that was sent and a certificate chain: at most twice the size of the largest object. */
const readAnswer = wholeAnswer(4 * 1_048_576);
/** Shorter than the idle time of load balancers (60 s), so that no request uses a connection that is being closed. */
const idleMilliseconds = 30_000;

export interface SignerHttpOptions {
  /** `https://…/v1/clusters/<name>`; `/sign` and `/attest` are added. */
  readonly url: string;
  /** The same for attest, if it has another URL: each function URL belongs to one function. */
  readonly attestUrl?: string;
  /** The maximum. It must allow all concurrent calls, since waiting for a connection counts towards a call's time limit. */
  readonly connections: number;
  /** Credentials for one call; the call's time limit includes it. */
  readonly authorize?: Authorize;
  /** Trusted instead of the system's CAs. */
  readonly caPem?: string;
  /** For https. */
  readonly proxy?: ForwardProxy;
  readonly timeoutMilliseconds?: number;
}

/** The part of a call that credentials can depend on. */
export interface OutgoingCall {
  readonly method: 'GET' | 'POST';
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/** Headers to add. A problem is one that only an operator can solve; its text holds no secret. */
export type Credentials = Result<Readonly<Record<string, string>>, string>;

/** Throws for a temporary failure. */
export type Authorize = (call: OutgoingCall) => Promise<Credentials>;

/** For other calls to the endpoint, over the same connections. */
export interface EndpointConnection {
  readonly url: URL;
  readonly request: (url: URL, options: RequestOptions) => ClientRequest;
  readonly authorize?: Authorize;
}

/** The sign and attest functions behind HTTP. Redirects are not followed: only the host in the URL may answer. */
export function connectSigner(options: SignerHttpOptions): SigningEndpoint &
  LookEndpoint & {
    readonly revoked: EndpointConnection;
    readonly trustBundles: EndpointConnection;
    readonly health: EndpointConnection;
    close(): void;
  } {
  const url = pathUrl(options.url, 'sign');
  const attestUrl = pathUrl(options.attestUrl ?? options.url, 'attest');
  const lookUrl = pathUrl(options.attestUrl ?? options.url, 'attest/look');
  if (attestUrl.protocol !== url.protocol) throw new Error('both URLs must be https, or both http');
  const secure = url.protocol === 'https:';
  const agentOptions = {
    keepAlive: true,
    maxSockets: options.connections,
    timeout: idleMilliseconds,
    ...([url, attestUrl].every(({ hostname }) => hostname.endsWith('.localhost')) ? { lookup: loopback } : {}),
  };
  const agent = secure
    ? new HttpsAgent({
        ...agentOptions,
        ...(options.caPem === undefined ? {} : { ca: options.caPem }),
        ...(options.proxy === undefined ? {} : { proxyEnv: { ...options.proxy } }),
      })
    : new HttpAgent(agentOptions);
  // All connections trust the same CAs and have no client certificate. Node would repeat the CAs in the name of each pool.
  agent.getName = ({ host, port } = {}) => `${host}:${port}`;

  function post(url: URL, json: unknown, signal: AbortSignal): Promise<Result<WholeAnswer, string>> {
    const body = Buffer.from(JSON.stringify(json), 'utf8');
    const headers = { accept: 'application/json', 'content-type': 'application/json' };
    return exchange<Result<WholeAnswer, string>, Credentials | undefined>({
      signal,
      timeoutMilliseconds: options.timeoutMilliseconds ?? answerMilliseconds,
      login: async () => options.authorize?.({ method: 'POST', url, headers, body }),
      send: (credentials) => {
        if (credentials?.ok === false) return { result: credentials };
        const callHeaders = { ...headers, 'user-agent': 'countersign-watch-relay', 'content-length': body.length };
        const target = { agent, method: 'POST', headers: { ...callHeaders, ...credentials?.value } };
        return (secure ? httpsRequest : httpRequest)(url, target).end(body);
      },
      read: async (incoming, outgoing) => success(await readAnswer(incoming, outgoing)),
    });
  }

  const connection = (name: 'healthz' | 'revoked' | 'trust-bundles'): EndpointConnection => ({
    url: pathUrl(options.url, name),
    request: (target, call) => (secure ? httpsRequest : httpRequest)(target, { ...call, agent }),
    ...(options.authorize === undefined ? {} : { authorize: options.authorize }),
  });

  return {
    async sign(object, signal) {
      const answer = await post(url, object, signal);
      return answer.ok ? interpretSign(answer.value) : { kind: 'unauthorized', message: answer.problem };
    },
    async attest(request, context, signal) {
      const encoded = encodeContext(context);
      const call = { request, ...(encoded === undefined ? {} : { context: encoded }) };
      const answer = await post(attestUrl, call, signal);
      return answer.ok ? interpretAttest(answer.value) : { kind: 'unauthorized', message: answer.problem };
    },
    async look(nodeNames, signal) {
      const answer = await post(lookUrl, { nodeNames }, signal);
      return answer.ok ? interpretLook(answer.value) : { kind: 'unauthorized', message: answer.problem };
    },
    revoked: connection('revoked'),
    trustBundles: connection('trust-bundles'),
    health: connection('healthz'),
    close: () => agent.destroy(),
  };
}

/** Throws a message for the operator if the URL cannot be an endpoint. */
export function signUrl(base: string): URL {
  return pathUrl(base, 'sign');
}

function pathUrl(base: string, name: 'attest' | 'attest/look' | 'healthz' | 'revoked' | 'sign' | 'trust-bundles'): URL {
  const url = new URL(base);
  if (url.protocol !== 'https:' && url.protocol !== 'http:') throw new Error('the URL must be http or https');
  // A password in a URL would be written to logs. Some clients of the protocol drop a query.
  if (url.username !== '' || url.password !== '') throw new Error('the URL must not carry credentials');
  if (url.search !== '' || url.hash !== '') throw new Error('the URL must not have a query or fragment');
  url.pathname = `${url.pathname.replace(/\/+$/, '')}/${name}`;
  return url;
}

/** RFC 6761 §6.3: names under localhost are the loopback address, which not every resolver implements. */
const loopback: LookupFunction = (_name, { all }, done) =>
  all === true ? done(null, [{ address: '127.0.0.1', family: 4 }]) : done(null, '127.0.0.1', 4);
