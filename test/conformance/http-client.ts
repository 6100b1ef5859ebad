/**
 * The HTTP client of the checks. Unlike `fetch` it can use another address and Host header (for emulators), add
 * credentials, and report whether a connection was reused.
 */
import { Agent as HttpAgent, request as httpRequest } from 'node:http';
import type { ClientRequest, IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { isIP } from 'node:net';

export interface ConformanceRequest {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Uint8Array<ArrayBuffer>;
  readonly signal: AbortSignal;
  readonly redirect: 'manual';
}

export interface ConformanceResponse {
  readonly status: number;
  readonly headers: { get(name: string): string | null };
  arrayBuffer(): Promise<ArrayBuffer>;
  /** Whether the call used a connection of an earlier call; absent if the client cannot know. */
  readonly reusedConnection?: boolean;
}

/** The global `fetch` satisfies this type. */
export type ConformanceFetch = (url: string, request: ConformanceRequest) => Promise<ConformanceResponse>;

export interface ClientOptions {
  /** Sent with every call. Values may be credentials, and are never shown. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Replaces the URL's host, for endpoints whose name does not resolve here. */
  readonly hostHeader?: string;
  /** Where to connect to instead of the URL's host and port. */
  readonly connect?: { readonly host: string; readonly port: number };
  /** Credential headers for one call, computed from everything that will be sent. */
  readonly authorize?: (call: AuthorizedCall) => Promise<Readonly<Record<string, string>>>;
}

export interface AuthorizedCall {
  readonly method: string;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array | undefined;
}

/** An answer holds the object that was sent and a chain: at most a few times the largest object. */
const maxAnswerBytes = 8 * 1_048_576;

export function httpClient(options: ClientOptions = {}): {
  readonly fetch: ConformanceFetch;
  readonly close: () => void;
} {
  const agentOptions = { keepAlive: true, maxSockets: 64 };
  const agents = { http: new HttpAgent(agentOptions), https: new HttpsAgent(agentOptions) };
  const close = (): void => {
    agents.http.destroy();
    agents.https.destroy();
  };

  async function call(address: string, request: ConformanceRequest): Promise<ConformanceResponse> {
    const url = new URL(address);
    const secure = url.protocol === 'https:';
    const hostname = url.hostname.replace(/^\[|\]$/g, '');
    const plain = { host: options.hostHeader ?? url.host, ...request.headers, ...options.headers };
    const credentials = await options.authorize?.({ method: request.method, url, headers: plain, body: request.body });
    const outgoing = (secure ? httpsRequest : httpRequest)({
      agent: secure ? agents.https : agents.http,
      method: request.method,
      host: options.connect?.host ?? hostname,
      port: options.connect?.port ?? (url.port === '' ? (secure ? 443 : 80) : Number(url.port)),
      // The server must prove the name in the URL, wherever the connection goes. RFC 6066 §3 has no addresses.
      ...(isIP(hostname) === 0 ? { servername: hostname } : {}),
      path: `${url.pathname}${url.search}`,
      headers: { ...plain, ...credentials, ...(request.body && { 'content-length': request.body.length }) },
      signal: request.signal,
    });
    const incoming = await answerTo(outgoing, request.body);
    const body = await readAll(incoming);
    return {
      status: incoming.statusCode ?? 0,
      headers: { get: (name) => headerOf(incoming, name) },
      arrayBuffer: async () => body,
      reusedConnection: outgoing.reusedSocket,
    };
  }

  return {
    close,
    async fetch(address, request) {
      try {
        return await call(address, request);
      } catch (error) {
        // A server may close an idle connection while the client uses it: this is allowed (RFC 9112 §9.3.1).
        if (!(error instanceof StaleConnectionError)) throw error;
        return call(address, request);
      }
    },
  };
}

class StaleConnectionError extends Error {
  override readonly name = 'StaleConnectionError';
}

function answerTo(outgoing: ClientRequest, body: Uint8Array | undefined): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    outgoing.on('response', resolve);
    outgoing.on('error', (error: NodeJS.ErrnoException) =>
      reject(outgoing.reusedSocket && error.code === 'ECONNRESET' ? new StaleConnectionError(error.message) : error),
    );
    outgoing.end(body);
  });
}

async function readAll(incoming: IncomingMessage): Promise<ArrayBuffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > maxAnswerBytes) throw new Error('the answer is larger than 8 MiB');
    chunks.push(chunk);
  }
  const whole = Buffer.concat(chunks);
  return whole.buffer.slice(whole.byteOffset, whole.byteOffset + whole.byteLength);
}

function headerOf(incoming: IncomingMessage, name: string): string | null {
  const value = incoming.headers[name.toLowerCase()];
  return value === undefined ? null : Array.isArray(value) ? value.join(', ') : value;
}
