import { Agent as HttpAgent, request as httpRequest } from 'node:http';
import type { ClientRequest, IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { LookupFunction } from 'node:net';
import { isRefusalCode, violation } from '../core/outcome.ts';
import type { Violation } from '../core/outcome.ts';
import type { JsonObject, SignAnswer, SigningEndpoint } from '../core/ports.ts';

/** API Gateway ends a call after 30 s: give up before, so that it is always we who know that nothing came. */
const answerMilliseconds = 29_000;
/** The object that was sent, with a certificate chain: no more than twice the largest object. */
const maxAnswerBytes = 4 * 1_048_576;
/** Shorter than the idle time of the load balancers in front (60 s): no request meets a connection being closed. */
const idleMilliseconds = 30_000;

export interface SignerHttpOptions {
  /** `https://…/v1/clusters/<name>`; `/sign` is added. */
  readonly url: string;
  /** Connections at once; as many as calls at once. */
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

/** The sign function behind HTTP. No redirects are followed: whoever may answer is named in the URL. */
export function connectSigner(options: SignerHttpOptions): SigningEndpoint & { close(): void } {
  const url = signUrl(options.url);
  const secure = url.protocol === 'https:';
  const agentOptions = {
    keepAlive: true,
    maxSockets: options.connections,
    timeout: idleMilliseconds,
    ...(url.hostname.endsWith('.localhost') ? { lookup: loopback } : {}),
  };
  const agent = secure
    ? new HttpsAgent({ ...agentOptions, ...(options.caPem === undefined ? {} : { ca: options.caPem }) })
    : new HttpAgent(agentOptions);

  /** One call between its deadline, its signal and its answer: whichever comes first ends it, and nothing stays. */
  function post(body: Buffer, signal: AbortSignal): Promise<RawAnswer | NoCredentials> {
    return new Promise((resolve, reject) => {
      let outgoing: ClientRequest | undefined;
      let over = false;
      const end = (settle: () => void): void => {
        if (over) return;
        over = true;
        clearTimeout(timer);
        signal.removeEventListener('abort', aborted);
        settle();
      };
      const fail = (reason: unknown): void =>
        end(() => {
          reject(reason instanceof Error ? reason : new Error(String(reason)));
          outgoing?.destroy();
        });
      const aborted = (): void => fail(signal.reason);
      const limit = options.timeoutMilliseconds ?? answerMilliseconds;
      const timer = setTimeout(() => fail(new Error(`no answer in ${limit / 1_000} s`)), limit);
      if (signal.aborted) return aborted();
      signal.addEventListener('abort', aborted);

      const begin = async (): Promise<void> => {
        const headers = { accept: 'application/json', 'content-type': 'application/json' };
        const credentials = await options.authorize?.({ method: 'POST', url, headers, body });
        if (over) return; // it took too long: nothing must be sent any more
        if (credentials?.ok === false) return end(() => resolve(credentials));
        outgoing = (secure ? httpsRequest : httpRequest)(url, {
          agent,
          method: 'POST',
          headers: {
            ...headers,
            'user-agent': 'countersign-watch-relay',
            'content-length': body.length,
            ...credentials?.headers,
          },
        });
        outgoing.on('error', fail);
        outgoing.on('response', (incoming) => {
          readAll(incoming).then((answer) => end(() => resolve(answer)), fail);
        });
        outgoing.end(body);
      };
      begin().catch(fail);
    });
  }

  return {
    async sign(object, signal) {
      const answer = await post(Buffer.from(JSON.stringify(object), 'utf8'), signal);
      return 'status' in answer ? interpret(answer) : { kind: 'unauthorized', message: answer.message };
    },
    close: () => agent.destroy(),
  };
}

/** Throws a sentence for the user when the URL cannot be an endpoint of ours. */
export function signUrl(base: string): URL {
  const url = new URL(base);
  if (url.protocol !== 'https:' && url.protocol !== 'http:') throw new Error('the URL must be http or https');
  // A password in a URL ends in logs; a query is dropped by some clients of the protocol (http-api.md).
  if (url.username !== '' || url.password !== '') throw new Error('the URL must not carry credentials');
  if (url.search !== '' || url.hash !== '') throw new Error('the URL must not have a query or fragment');
  url.pathname = `${url.pathname.replace(/\/+$/, '')}/sign`;
  return url;
}

/** RFC 6761 §6.3: names under localhost are this machine's, though not every resolver knows. */
const loopback: LookupFunction = (_name, { all }, done) =>
  all === true ? done(null, [{ address: '127.0.0.1', family: 4 }]) : done(null, '127.0.0.1', 4);

type NoCredentials = Credentials & { readonly ok: false };

interface RawAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/**
 * What the far side said (contracts.md, HTTP). Only an answer that is ours beyond doubt can end a request: the header,
 * the status that belongs to it, and a body that keeps its form. Everything else is somebody else talking.
 */
function interpret({ status, headers, body }: RawAnswer): SignAnswer {
  const outcome = headers['x-countersign-outcome'];
  // Of ours and of API Gateway alike: no more now.
  if (status === 429 || status === 503) return { kind: 'busy', ...retryAfter(parse(body)) };
  if (status === 401 || status === 403) return { kind: 'unauthorized', message: `HTTP ${status}` };
  const unexpected = (message: string): SignAnswer => ({ kind: 'unexpected', status, message });
  if (outcome === undefined) return unexpected('not an answer of countersign');
  const json = parse(body);
  if (outcome === 'issued' && status === 200) {
    const certificatePem = certificateIn(json);
    return certificatePem === undefined ? unexpected('no certificate in it') : { kind: 'issued', certificatePem };
  }
  if (outcome === 'refused' && (status === 422 || status === 413)) {
    const [first, ...more] = violationsIn(json);
    return first === undefined
      ? unexpected('a refusal without reasons we know')
      : { kind: 'refused', violations: [first, ...more] };
  }
  if (outcome === 'ignored' && status === 409) return { kind: 'ignored' };
  if (outcome === 'invalid' && status === 400) return { kind: 'invalid' };
  return unexpected('outcome and status do not go together');
}

/** All or none: a reason we do not know may mean "wait" in the newer version that wrote it. */
function violationsIn(json: JsonObject | undefined): readonly Violation[] {
  if (json?.['kind'] !== 'Status' || json['status'] !== 'Failure') return [];
  const details = json['details'];
  const causes = isObject(details) ? details['causes'] : undefined;
  if (!Array.isArray(causes)) return [];
  const violations: Violation[] = [];
  for (const cause of causes as readonly unknown[]) {
    if (!isObject(cause)) return [];
    const { reason, message } = cause;
    if (!isRefusalCode(reason) || typeof message !== 'string') return [];
    violations.push(violation(reason, message));
  }
  return violations;
}

function certificateIn(json: JsonObject | undefined): string | undefined {
  const status = json?.['status'];
  const encoded = isObject(status) ? status['certificate'] : undefined;
  if (typeof encoded !== 'string' || encoded === '') return undefined;
  const bytes = Buffer.from(encoded, 'base64');
  return bytes.toString('base64') === encoded ? bytes.toString('utf8') : undefined;
}

function retryAfter(json: JsonObject | undefined): { retryAfterSeconds?: number } {
  const seconds = json?.['retryAfterSeconds'];
  return typeof seconds === 'number' && seconds >= 0 && Number.isFinite(seconds) ? { retryAfterSeconds: seconds } : {};
}

async function readAll(incoming: IncomingMessage): Promise<RawAnswer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > maxAnswerBytes) throw new Error('the answer is too large');
    chunks.push(chunk);
  }
  return { status: incoming.statusCode ?? 0, headers: incoming.headers, body: Buffer.concat(chunks, length) };
}

function parse(body: Buffer): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(body.toString('utf8'));
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
