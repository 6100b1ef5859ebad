/**
 * One HTTP server on loopback, as each of the fake AWS services is: reads a request whole, refuses what an honest client
 * never sends (a header twice, a huge body), and fails when told to, before or after the service has done its work.
 */
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import type { ReceivedRequest } from '../aws/sigv4-verifier.ts';
import type { KeyAndCertificate } from '../x509/test-certificates.ts';

export interface Answer {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * `before`: the service never sees the request. `after`: it has done everything, and the client does not hear of it (or
 * hears something else).
 */
export interface Fault {
  readonly when?: 'before' | 'after';
  /** How many requests it meets; absent = all until `mend` or the next `inject`. */
  readonly times?: number;
  /** Said instead of the service's own answer; absent = the connection ends without one (unless `delayMs` is all). */
  readonly answer?: Answer;
  readonly delayMs?: number;
  /** Ends the answer after that many bytes of its body. */
  readonly truncateAt?: number;
}

export interface Service {
  readonly port: number;
  /** `http://127.0.0.1:<port>`, or https. */
  readonly url: string;
  /** Each request that arrived, faulty ones included. */
  readonly received: readonly ReceivedRequest[];
  /** Faults apply in the order given, each as often as it says. */
  inject(...faults: readonly Fault[]): void;
  mend(): void;
  close(): Promise<void>;
}

const maxBodyBytes = 262_144;

export async function startService(
  handle: (request: ReceivedRequest, port: number) => Answer | 'hang up' | Promise<Answer | 'hang up'>,
  tls?: KeyAndCertificate,
): Promise<Service> {
  const received: ReceivedRequest[] = [];
  let faults: { fault: Fault; left: number }[] = [];

  function nextFault(): Fault | undefined {
    const [first] = faults;
    if (first === undefined) return undefined;
    first.left -= 1;
    if (first.left <= 0) faults.shift();
    return first.fault;
  }

  async function serve(message: IncomingMessage, response: ServerResponse): Promise<void> {
    const request = await read(message);
    if (typeof request === 'string') return send(response, plain(400, request));
    received.push(request);
    const fault = nextFault();
    if (fault?.delayMs !== undefined) await pause(fault.delayMs, undefined, { ref: false });
    const delayedOnly = fault?.delayMs !== undefined && fault.answer === undefined && fault.when === undefined;
    const met = delayedOnly ? undefined : fault;
    if (met?.when === 'before') return send(response, met.answer ?? 'hang up', met);
    const answer = await handle(request, (server.address() as AddressInfo).port);
    // A truncated answer is the service's own, cut.
    if (met?.truncateAt !== undefined) return send(response, met.answer ?? answer, met);
    return send(response, met === undefined ? answer : (met.answer ?? 'hang up'));
  }

  const listener: RequestListener = (message, response) => {
    serve(message, response).catch((error: unknown) => {
      // A fault of the fake itself, which no test may take for an answer of AWS.
      send(response, plain(599, `fake AWS failed: ${String(error)}`));
    });
  };
  const server =
    tls === undefined
      ? createServer(listener)
      : createTlsServer({ key: tls.keyPem, cert: tls.certificatePem }, listener);
  // A busy test would find out too late that a connection has been idle, and close it under the next call.
  server.keepAliveTimeout = 600_000;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    port,
    url: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`,
    received,
    inject(...more) {
      faults = faults.filter(({ left }) => left !== Infinity);
      faults.push(...more.map((fault) => ({ fault, left: fault.times ?? Infinity })));
    },
    mend() {
      faults = [];
    },
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

async function read(message: IncomingMessage): Promise<ReceivedRequest | string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of message as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > maxBodyBytes) return 'request too large';
    chunks.push(chunk);
  }
  const names = message.rawHeaders.filter((_, index) => index % 2 === 0).map((name) => name.toLowerCase());
  if (new Set(names).size !== names.length) return 'a header came twice';
  const { method = '', url: target = '' } = message;
  const headers = message.headers as Record<string, string>;
  return { method, target, headers, body: Buffer.concat(chunks) };
}

function send(response: ServerResponse, answer: Answer | 'hang up', { truncateAt }: Fault = {}): void {
  if (answer === 'hang up') return void response.destroy();
  const { status, contentType, body, headers } = answer;
  const length = Buffer.byteLength(body);
  response.writeHead(status, { 'content-type': contentType, 'content-length': String(length), ...headers });
  if (truncateAt === undefined) return void response.end(body);
  // Flushed before the connection goes, so that the client has the beginning in its hands.
  response.write(Buffer.from(body).subarray(0, truncateAt), () => response.destroy());
}

export function plain(status: number, body: string, headers: Readonly<Record<string, string>> = {}): Answer {
  return { status, contentType: 'text/plain', body, headers };
}

/** For XML of fixed shape: text and attribute values. */
export function escapeXml(text: string): string {
  return text.replace(/[<>&"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
