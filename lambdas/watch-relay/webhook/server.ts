/** The HTTPS server of the webhook proxy: TLS, limits, authentication of callers. */
import { once } from 'node:events';
import { createServer } from 'node:https';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { maxObjectBytes } from '../../../core/encoding/json-body.ts';
import { errorAnswer, tooLarge } from '../../../adapters/lambda/answers.ts';
import type { HttpAnswer } from '../../../adapters/lambda/http.ts';
import { deadline } from '../runtime/clock.ts';
import type { Clock } from '../runtime/clock.ts';
import { boundConnections } from '../runtime/connections.ts';
import { createLineLimit } from '../runtime/log.ts';
import type { Log } from '../runtime/log.ts';
import { authenticateCaller } from './caller.ts';
import type { WebhookProxy } from './posted.ts';
import { busy } from './proxy.ts';
import { watchTlsFiles } from './files.ts';
import type { WebhookSettings } from '../settings/webhook-settings.ts';

export interface WebhookServerOptions {
  /** Calls in flight at most; further calls are answered with busy. */
  readonly concurrency: number;
  readonly clock: Clock;
  readonly log: Log;
  /** Called for each answer with its outcome, or `unauthenticated`. */
  readonly answered: (outcome: string) => void;
}

export interface WebhookServer {
  readonly address: AddressInfo;
  /** Accepts no more calls, and finishes those in flight within the grace period. */
  close(graceMilliseconds: number): Promise<void>;
}

/** Less than the client's own timeout of 30 s, so that the client gets an answer. */
const answerMilliseconds = 25_000;
/** Many more than callers need: any client can open connections, at some kilobytes each. */
const connectionLimits = { total: 256, perAddress: 64 };

/** Rejects with a sentence for the operator if a file or the port cannot be used. */
export async function serveWebhook(
  settings: WebhookSettings,
  proxy: WebhookProxy,
  { concurrency, clock, log, answered }: WebhookServerOptions,
): Promise<WebhookServer> {
  const files = watchTlsFiles(settings, clock, log);
  const server = createServer({
    ...files.current(),
    // An invalid certificate gets a 401 instead of a broken connection.
    requestCert: settings.client !== undefined,
    rejectUnauthorized: false,
    // Callers are in the same network, so their handshakes take milliseconds.
    handshakeTimeout: 3_000,
    headersTimeout: 5_000,
    requestTimeout: 15_000,
    connectionsCheckingInterval: 1_000,
    keepAliveTimeout: 30_000,
    maxHeaderSize: 16_384,
  });
  const connections = boundConnections(server, connectionLimits);
  const lineLimit = createLineLimit(clock);
  files.onChange((context) => {
    server.setSecureContext(context);
    server.closeIdleConnections();
  });
  let inFlight = 0;

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<HttpAnswer | undefined> {
    const socket = request.socket as TLSSocket;
    const certificate = socket.authorized ? socket.getPeerX509Certificate() : undefined;
    const why = await authenticateCaller(settings, { authorization: request.headers.authorization, certificate });
    if (why !== undefined) {
      const due = lineLimit('unauthenticated');
      if (due !== undefined) log.info({ why, remote: socket.remoteAddress, ...due }, 'webhook: caller refused');
      answered('unauthenticated');
      const headers = { 'www-authenticate': 'Bearer', connection: 'close' };
      return errorAnswer(401, 'invalid', 'not authenticated', [], { headers });
    }
    connections.keep(socket);
    if (inFlight >= concurrency) return count(busy(1));
    inFlight += 1;
    const disconnected = new AbortController();
    response.once('close', () => disconnected.abort(new Error('the client is gone')));
    const { signal, cancel } = deadline(clock, answerMilliseconds, disconnected.signal);
    try {
      const body = await readBody(request);
      if (body === undefined) return undefined;
      if (body === 'too large') return count(tooLarge());
      const [path = ''] = (request.url ?? '').split('?', 1);
      const { method = '', headers } = request;
      return count(await proxy({ method, path, contentType: headers['content-type'], body }, signal));
    } finally {
      cancel();
      inFlight -= 1;
    }
  }

  function count(answer: HttpAnswer): HttpAnswer {
    answered(answer.headers['x-countersign-outcome'] ?? 'unknown');
    return answer;
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const reply = await respond(request, response);
    if (reply === undefined || response.destroyed) return void response.destroy();
    const closing = server.listening && request.complete ? {} : { connection: 'close' };
    const { statusCode, headers, body } = reply;
    response.writeHead(statusCode, { ...headers, 'content-length': Buffer.byteLength(body), ...closing }).end(body);
  }

  server.on('request', (request, response) => {
    answer(request, response).catch((error: unknown) => {
      log.error(
        { detail: error instanceof Error ? (error.stack ?? error.message) : String(error) },
        'webhook: internal error',
      );
      response.destroy();
    });
  });
  await once(server.listen(settings.address), 'listening');
  return {
    address: server.address() as AddressInfo,
    close: (graceMilliseconds) =>
      new Promise((resolve) => {
        files.close();
        const cancel = clock.after(graceMilliseconds, () => server.closeAllConnections());
        server.close(() => {
          cancel();
          resolve();
        });
        server.closeIdleConnections();
      }),
  };
}

/** The whole body; undefined if the client closed the connection. Content-Length is used only to refuse early. */
function readBody(request: IncomingMessage): Promise<Buffer | 'too large' | undefined> {
  if (Number(request.headers['content-length'] ?? 0) > maxObjectBytes) return Promise.resolve('too large');
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let length = 0;
    request.on('data', (chunk: Buffer) => {
      length += chunk.length;
      if (length <= maxObjectBytes) return void chunks.push(chunk);
      chunks.length = 0;
      resolve('too large'); // further data is discarded until the answer is sent
    });
    request.on('end', () => resolve(Buffer.concat(chunks)));
    request.on('error', () => resolve(undefined));
    request.on('close', () => resolve(undefined));
  });
}
