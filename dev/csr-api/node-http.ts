/**
 * Serves a Lambda handler on loopback with node:http. Like an HTTP API or function URL, it limits size and time before it buffers a
 * request, and it refuses requests for other host names.
 */
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { HttpAnswer, HttpEvent, HttpHandler } from '../../adapters/lambda/http.ts';

export interface ServeOptions {
  /** 0 selects a free port. */
  readonly port: number;
  /** A larger body is answered with `tooLarge` and not read into memory. */
  readonly maxBodyBytes: number;
  readonly tooLarge: HttpAnswer;
  /** The handler threw; the caller got a plain 500. */
  readonly onError: (error: unknown) => void;
}

export interface HttpService {
  readonly port: number;
  /** `http://127.0.0.1:<port>` */
  readonly url: string;
  /** Waits for requests in progress, at most `drainMilliseconds`, then closes their connections. */
  readonly close: () => Promise<void>;
}

/** Shorter than the sign function's own limit of 25 s, since a user at a terminal waits for the stop. */
const drainMilliseconds = 5_000;
/** Bytes beyond the limit that are read and dropped, so that the caller reads the answer and not a connection reset. */
const discardBytes = 8 * 1024 * 1024;

export async function serveHttp(handler: HttpHandler, options: ServeOptions): Promise<HttpService> {
  const server = createServer({
    // A client that sends one byte a second holds only a socket: 10 s for the headers, 30 s for the whole request.
    headersTimeout: 10_000,
    requestTimeout: 30_000,
    connectionsCheckingInterval: 2_000,
    keepAliveTimeout: 5_000,
    maxHeaderSize: 16_384,
  });
  server.maxConnections = 1_024;
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    answer(handler, options, server, request, response).catch((error: unknown) => {
      options.onError(error);
      response.destroy();
    });
  });
  const port = await listen(server, options.port);
  return { port, url: `http://127.0.0.1:${port}`, close: () => close(server) };
}

async function answer(
  handler: HttpHandler,
  options: ServeOptions,
  server: Server,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (!isLoopbackName(request.headers.host)) {
    // A web page can make a browser send requests here under its own host name (DNS rebinding). Clients use a loopback name.
    return send(response, { statusCode: 421, headers: {}, body: '{"message":"ask for 127.0.0.1 or localhost"}' }, true);
  }
  const body = await readBody(request, options.maxBodyBytes);
  if (body === 'aborted') return;
  if (body === 'too large') {
    send(response, options.tooLarge, true);
    discard(request);
    return;
  }
  try {
    const answered = await handler(eventOf(request, body));
    // While the server stops, an open connection would delay the stop.
    send(response, answered, !server.listening);
  } catch (error) {
    options.onError(error);
    send(response, { statusCode: 500, headers: {}, body: '{"message":"Internal Server Error"}' }, true);
  }
}

/** A web page reaches a server on loopback under a host name of its own (DNS rebinding). */
export function isLoopbackName(host: string | undefined): boolean {
  return host !== undefined && /^(127\.0\.0\.1|localhost|\[::1\])(:\d{1,5})?$/i.test(host);
}

/** The whole body, or why it was not read. The declared length is used only to refuse it. */
async function readBody(request: IncomingMessage, limit: number): Promise<Buffer | 'too large' | 'aborted'> {
  if (Number(request.headers['content-length'] ?? 0) > limit) return 'too large';
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let size = 0;
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size <= limit) return void chunks.push(chunk);
      request.pause();
      request.removeAllListeners('data');
      resolve('too large');
    });
    request.on('end', () => resolve(Buffer.concat(chunks)));
    request.on('error', () => resolve('aborted'));
    request.on('close', () => resolve('aborted'));
  });
}

function discard(request: IncomingMessage): void {
  let size = 0;
  request.on('data', (chunk: Buffer) => {
    size += chunk.length;
    if (size > discardBytes) request.destroy();
  });
  request.resume();
}

function eventOf(request: IncomingMessage, body: Buffer): HttpEvent {
  const [path = '/', query = ''] = (request.url ?? '/').split('?', 2);
  const headers = Object.entries(request.headers).map(
    ([name, value]) => [name, Array.isArray(value) ? value.join(',') : value] as const,
  );
  return {
    version: '2.0',
    rawPath: path,
    rawQueryString: query,
    headers: Object.fromEntries(headers),
    requestContext: { http: { method: request.method ?? '', path } },
    // Always base64, as AWS encodes binary bodies, so that the handler gets the bytes that were sent.
    body: body.toString('base64'),
    isBase64Encoded: true,
  };
}

function send(response: ServerResponse, answer: HttpAnswer, closeAfter: boolean): void {
  if (response.destroyed) return;
  const { statusCode, headers } = answer;
  const body = Buffer.from(answer.body, answer.isBase64Encoded === true ? 'base64' : 'utf8');
  response.writeHead(statusCode, {
    'content-type': 'application/json',
    ...headers,
    'content-length': body.length,
    ...(closeAfter ? { connection: 'close' } : {}),
  });
  response.end(body);
}

/** Always listens on loopback only: the embedded key signs for every process that can reach the port. */
function listen(server: Server, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port, host: '127.0.0.1' }, () => {
      server.off('error', reject);
      resolve((server.address() as AddressInfo).port);
    });
  });
}

async function close(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => {
    server.close(() => resolve());
  });
  server.closeIdleConnections();
  const deadline = setTimeout(() => server.closeAllConnections(), drainMilliseconds);
  await closed;
  clearTimeout(deadline);
}
