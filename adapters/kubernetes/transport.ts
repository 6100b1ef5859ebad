import { Agent as HttpAgent, request as httpRequest } from 'node:http';
import type { ClientRequest, IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { AgentOptions, RequestOptions } from 'node:https';
import { isDeepStrictEqual } from 'node:util';
import { asError, exchange, readBody } from '../http/exchange.ts';
import type { Exchange } from '../http/exchange.ts';

/** Connections that idle longer are closed by us, well before the API server (90 s) or a load balancer (60 s) does. */
const idleMilliseconds = 30_000;
/** Bound service-account tokens and client certificates are rotated in place; client-go looks once a minute too. */
const credentialsMilliseconds = 30_000;
/** After a 401 the credentials are read again at once, but not for each of many calls. */
const minimumReloadMilliseconds = 2_000;
const answerMilliseconds = 30_000;
/** For a login, which may run a program of the kubeconfig: as long as a call waits for it. */
export const loginMilliseconds = 30_000;
const maxAnswerBytes = 4 * 1_048_576;

export interface HttpCall {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly signal: AbortSignal;
  /** Of the whole answer; for a stream, of its head. */
  readonly timeoutMilliseconds?: number;
  readonly maxBytes?: number;
}

/** `undefined` text: the answer was longer than `maxBytes`, and was not read to its end. */
export interface HttpResult {
  readonly status: number;
  readonly text: string | undefined;
}

/** Who we are and whom we trust, as node:https wants it. Asked for again and again, since all of it rotates. */
export type CredentialSource = (reload: boolean) => Promise<RequestOptions>;

export interface KubernetesTransport {
  /** Any status is an answer. Throws when there is none, none in time, or `signal` came. */
  call(call: HttpCall): Promise<HttpResult>;
  /** The same, the body of a 200 unread. */
  stream(call: HttpCall, lifetimeMilliseconds: number): Promise<HttpResult | { readonly body: IncomingMessage }>;
  close(): void;
}

/** HTTP/1.1 on kept connections, JSON only. No redirects, no retries: what happened once is told once. */
export function createTransport(
  server: URL,
  credentials: CredentialSource,
  monotonic: () => number = () => performance.now(),
  loginLimit: number = loginMilliseconds,
): KubernetesTransport {
  const identity = keepIdentity(server, (reload) => inTime(credentials(reload), loginLimit), monotonic);
  const request = server.protocol === 'https:' ? httpsRequest : httpRequest;
  const host = server.hostname.replace(/^\[|\]$/g, '');
  const port = server.port === '' ? undefined : server.port;
  const basePath = server.pathname.replace(/\/$/, '');

  function send(call: HttpCall, { agent, headers }: { agent: HttpAgent; headers: Record<string, string> }) {
    // As a string it leaves in one piece with the header: one write, one TLS record, and no copy on the way there.
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
        accept: 'application/json',
        ...(body === undefined
          ? {}
          : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
      },
    });
    outgoing.end(body);
    return outgoing;
  }

  function exchangeAs<T>(call: HttpCall, read: Exchange<T, unknown>['read']): Promise<T> {
    return exchange({
      signal: call.signal,
      timeoutMilliseconds: call.timeoutMilliseconds ?? answerMilliseconds,
      login: () => identity.current(),
      send: (login) => send(call, login),
      read: (incoming, outgoing) => {
        if (incoming.statusCode === 401) identity.suspect();
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
        // From here on the reader of the body is in charge; the signal and the end of its time still end it.
        const end = (): void => void incoming.destroy(asError(call.signal.reason ?? 'the watch outlived its time'));
        incoming.on('error', () => {}); // the reader gets it; should there be none yet, it must not be the process's
        const timer = setTimeout(end, lifetimeMilliseconds);
        call.signal.addEventListener('abort', end);
        incoming.once('close', () => {
          clearTimeout(timer);
          call.signal.removeEventListener('abort', end);
        });
        return { body: incoming };
      }),

    close: () => identity.close(),
  };
}

/** One login that never ends must not end all: every call waits for the same one. */
async function inTime<T>(login: Promise<T>, milliseconds: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no login in ${milliseconds / 1_000} s`)), milliseconds);
  });
  try {
    return await Promise.race([login, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** The agent and headers of now; a new agent only when what it was made of has changed. */
function keepIdentity(server: URL, credentials: CredentialSource, monotonic: () => number) {
  let made: { tls: AgentOptions; agent: HttpAgent; headers: Record<string, string> } | undefined;
  let refreshing: Promise<void> | undefined;
  let readAt = 0;
  let suspected = false;

  async function refresh(): Promise<void> {
    const options = await credentials(suspected);
    suspected = false;
    readAt = monotonic();
    const { ca, cert, key, passphrase, servername, rejectUnauthorized, auth, agent: given } = options;
    const tls = defined({ ca, cert, key, passphrase, servername, rejectUnauthorized });
    const headers = { ...(options.headers as Record<string, string> | undefined) };
    if (typeof auth === 'string') headers['Authorization'] ??= `Basic ${Buffer.from(auth).toString('base64')}`;
    if (made !== undefined && isDeepStrictEqual(made.tls, tls)) {
      made = { ...made, headers };
      return;
    }
    // The old agent's connections finish what they carry and idle out: a watch under way is not cut off.
    const keep = { keepAlive: true, keepAliveMsecs: 15_000, timeout: idleMilliseconds };
    const own = server.protocol === 'https:' ? new HttpsAgent({ ...tls, ...keep }) : new HttpAgent(keep);
    // One server, one identity: every connection of this agent is as good as any other. Node's own name for them is made
    // of CA, certificate and key, kilobytes for each request.
    own.getName = () => server.host;
    made = { tls, agent: given instanceof HttpAgent ? given : own, headers };
  }

  return {
    async current() {
      const age = monotonic() - readAt;
      const stale = age > credentialsMilliseconds || (suspected && age > minimumReloadMilliseconds);
      if (made === undefined || stale) {
        refreshing ??= refresh().finally(() => {
          refreshing = undefined;
        });
        await refreshing;
      }
      if (made === undefined) throw new Error('no credentials');
      return made;
    },
    suspect: () => {
      suspected = true;
    },
    close: () => made?.agent.destroy(),
  };
}

async function readAll(incoming: IncomingMessage, outgoing: ClientRequest, maxBytes: number): Promise<HttpResult> {
  const body = await readBody(incoming, outgoing, maxBytes);
  return { status: incoming.statusCode ?? 0, text: body?.toString('utf8') };
}

function defined(options: AgentOptions): AgentOptions {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}
