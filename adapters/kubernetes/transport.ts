import { Agent as HttpAgent, request as httpRequest } from 'node:http';
import type { ClientRequest, IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { AgentOptions, RequestOptions } from 'node:https';
import { isDeepStrictEqual } from 'node:util';
import { asError } from '../../core/outcome/error-message.ts';
import { exchange, readBody } from '../http/exchange.ts';
import type { Exchange } from '../http/exchange.ts';

/** Idle connections are closed after this time, before the API server (90 s) or a load balancer (60 s) closes them. */
const idleMilliseconds = 30_000;
/** Bound service-account tokens and client certificates are rotated in place; client-go reads them once a minute. */
const credentialsMilliseconds = 30_000;
/** After a 401 the credentials are read again, at most this often. */
const minimumReloadMilliseconds = 2_000;
const answerMilliseconds = 30_000;
/** The time limit of a login, which may run an exec plugin. */
export const loginMilliseconds = 30_000;
const maxAnswerBytes = 4 * 1_048_576;

export interface HttpCall {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** Media types; JSON by default. */
  readonly accept?: string;
  readonly contentType?: string;
  readonly signal: AbortSignal;
  /** For the whole answer; for a stream, for its head. */
  readonly timeoutMilliseconds?: number;
  readonly maxBytes?: number;
}

/** `text` is undefined if the answer was longer than `maxBytes`; the rest was not read. */
export interface HttpResult {
  readonly status: number;
  readonly text: string | undefined;
}

/** Credentials and trusted CAs, as node:https takes them. Read repeatedly, since they are rotated. */
export type CredentialSource = (reload: boolean) => Promise<RequestOptions>;

export interface KubernetesTransport {
  /** Any status is an answer. Throws without an answer in time, and when `signal` aborts. */
  call(call: HttpCall): Promise<HttpResult>;
  /** Like `call`, but the caller reads the body of a 200. */
  stream(call: HttpCall, lifetimeMilliseconds: number): Promise<HttpResult | { readonly body: IncomingMessage }>;
  close(): void;
}

/** HTTP/1.1 with keep-alive, JSON only. No redirects, no retries. */
export function createTransport(
  server: URL,
  credentials: CredentialSource,
  monotonic: () => number = () => performance.now(),
  loginLimit: number = loginMilliseconds,
): KubernetesTransport {
  const login = keepLogin(server, (reload) => withinTime(credentials(reload), loginLimit), monotonic);
  const request = server.protocol === 'https:' ? httpsRequest : httpRequest;
  const host = server.hostname.replace(/^\[|\]$/g, '');
  const port = server.port === '' ? undefined : server.port;
  const basePath = server.pathname.replace(/\/$/, '');

  function send(call: HttpCall, { agent, headers }: { agent: HttpAgent; headers: Record<string, string> }) {
    // A string is sent together with the head: one write, one TLS record, no copy.
    const body = call.body === undefined ? undefined : JSON.stringify(call.body);
    const query = call.query === undefined ? '' : `?${new URLSearchParams(call.query).toString()}`;
    const outgoing = request({
      agent,
      method: call.method,
      host,
      port,
      path: `${basePath}${call.path}${query}`,
      headers: {
        'user-agent': 'countersign-watch-relay',
        ...headers,
        accept: call.accept ?? 'application/json',
        ...(body === undefined
          ? {}
          : { 'content-type': call.contentType ?? 'application/json', 'content-length': Buffer.byteLength(body) }),
      },
    });
    outgoing.end(body);
    return outgoing;
  }

  function exchangeAs<T>(call: HttpCall, read: Exchange<T, unknown>['read']): Promise<T> {
    return exchange({
      signal: call.signal,
      timeoutMilliseconds: call.timeoutMilliseconds ?? answerMilliseconds,
      login: () => login.get(),
      send: (current) => send(call, current),
      read: (incoming, outgoing) => {
        if (incoming.statusCode === 401) login.reject();
        return read(incoming, outgoing);
      },
    });
  }

  return {
    call: (call) =>
      exchangeAs(call, (incoming, outgoing) => readAll(incoming, outgoing, call.maxBytes ?? maxAnswerBytes)),

    stream: (call, lifetimeMilliseconds) =>
      exchangeAs(call, async (incoming, outgoing) => {
        if (incoming.statusCode !== 200) return readAll(incoming, outgoing, maxAnswerBytes);
        // From here on the caller reads the body; the signal and the lifetime still end it.
        const end = (): void => void incoming.destroy(asError(call.signal.reason ?? 'the watch exceeded its lifetime'));
        incoming.on('error', () => {}); // the reader gets the error; without a reader yet, it must not end the process
        const timer = setTimeout(end, lifetimeMilliseconds);
        call.signal.addEventListener('abort', end);
        incoming.once('close', () => {
          clearTimeout(timer);
          call.signal.removeEventListener('abort', end);
        });
        return { body: incoming };
      }),

    close: () => login.close(),
  };
}

/** Limits the time of a login, since all calls wait for the same one. */
async function withinTime<T>(login: Promise<T>, milliseconds: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no login in ${milliseconds / 1_000} s`)), milliseconds);
  });
  try {
    return await Promise.race([login, timeout]);
  } finally {
    clearTimeout(timer);
  }
}

/** The current agent and headers. The agent is replaced only if its TLS options have changed. */
function keepLogin(server: URL, credentials: CredentialSource, monotonic: () => number) {
  let current: { tls: AgentOptions; agent: HttpAgent; headers: Record<string, string> } | undefined;
  let refreshing: Promise<void> | undefined;
  let readAt = 0;
  let rejected = false;

  async function refresh(): Promise<void> {
    const options = await credentials(rejected);
    rejected = false;
    readAt = monotonic();
    const { ca, cert, key, passphrase, servername, rejectUnauthorized, auth, agent: proxyAgent } = options;
    const tls = defined({ ca, cert, key, passphrase, servername, rejectUnauthorized });
    const headers = { ...(options.headers as Record<string, string> | undefined) };
    if (typeof auth === 'string') headers['Authorization'] ??= `Basic ${Buffer.from(auth).toString('base64')}`;
    if (current !== undefined && isDeepStrictEqual(current.tls, tls)) {
      current = { ...current, headers };
      return;
    }
    // Connections of the old agent end when they are idle, so a running watch is not interrupted.
    const keep = { keepAlive: true, keepAliveMsecs: 15_000, timeout: idleMilliseconds };
    const ownAgent = server.protocol === 'https:' ? new HttpsAgent({ ...tls, ...keep }) : new HttpAgent(keep);
    // All connections of this agent have the same server and login, so the host is a sufficient name for its pool. Node would
    // build the name from CA, certificate and key: kilobytes for each request.
    ownAgent.getName = () => server.host;
    current = { tls, agent: proxyAgent instanceof HttpAgent ? proxyAgent : ownAgent, headers };
  }

  return {
    async get() {
      const age = monotonic() - readAt;
      const stale = age > credentialsMilliseconds || (rejected && age > minimumReloadMilliseconds);
      if (current === undefined || stale) {
        refreshing ??= refresh().finally(() => {
          refreshing = undefined;
        });
        await refreshing;
      }
      if (current === undefined) throw new Error('no credentials');
      return current;
    },
    reject: () => {
      rejected = true;
    },
    close: () => current?.agent.destroy(),
  };
}

async function readAll(incoming: IncomingMessage, outgoing: ClientRequest, maxBytes: number): Promise<HttpResult> {
  const body = await readBody(incoming, outgoing, maxBytes);
  return { status: incoming.statusCode ?? 0, text: body?.toString('utf8') };
}

function defined(options: AgentOptions): AgentOptions {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}
