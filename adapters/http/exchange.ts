/** One request and its answer over node:http, bounded in time and size. No redirects, no retries. */
import { ClientRequest } from 'node:http';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { asError } from '../../core/outcome/error-message.ts';

export interface Exchange<T, Login> {
  readonly signal?: AbortSignal;
  readonly timeoutMilliseconds: number;
  /** Obtains what `send` needs, such as credentials; `timeoutMilliseconds` includes it. */
  readonly login?: () => Promise<Login>;
  /** Sends the request, or returns the result and sends nothing. */
  readonly send: (login: Login) => ClientRequest | { readonly result: T };
  readonly read: (incoming: IncomingMessage, outgoing: ClientRequest) => Promise<T>;
}

/** The result of `read`. Throws at the deadline, when `signal` aborts, and for a broken connection. */
export function exchange<T, Login = undefined>(options: Exchange<T, Login>): Promise<T> {
  const { signal, timeoutMilliseconds, login, send, read } = options;
  return new Promise<T>((resolve, reject) => {
    let outgoing: ClientRequest | undefined;
    let settled = false;
    const end = (settle: () => void): void => {
      if (settled) return;
      settled = true;
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
      settle();
    };
    const fail = (reason: unknown): void =>
      end(() => {
        reject(asError(reason));
        outgoing?.destroy();
      });
    const onAbort = (): void => fail(signal?.reason);
    const onTimeout = (): void => fail(new Error(`no answer in ${timeoutMilliseconds / 1_000} s`));
    const timer = setTimeout(onTimeout, timeoutMilliseconds);
    if (signal?.aborted === true) return onAbort();
    signal?.addEventListener('abort', onAbort);

    const begin = async (): Promise<void> => {
      const credentials = (await login?.()) as Login;
      if (settled) return; // the login took too long: the request must not be sent any more
      const sent = send(credentials);
      if (!(sent instanceof ClientRequest)) return end(() => resolve(sent.result));
      outgoing = sent;
      sent.on('error', fail);
      sent.on('response', (incoming) => {
        read(incoming, sent).then((value) => end(() => resolve(value)), fail);
      });
    };
    begin().catch(fail);
  });
}

/**
 * The whole body; undefined if it is longer than `maxBytes`, and then the connection is closed. It listens to
 * events, since an async iterator over a body of one chunk costs as much as reading the answer's head.
 */
export function readBody(
  incoming: IncomingMessage,
  outgoing: ClientRequest,
  maxBytes: number,
): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let length = 0;
  return new Promise((resolve, reject) => {
    incoming.on('data', (chunk: Buffer) => {
      length += chunk.length;
      if (length <= maxBytes) return void chunks.push(chunk);
      resolve(undefined);
      incoming.destroy();
    });
    incoming.on('end', () => {
      resolve(Buffer.concat(chunks, length));
      // If the server answered before it read the request, Node would keep the connection open without limit.
      if (!outgoing.writableFinished) outgoing.destroy();
    });
    incoming.on('error', reject);
    incoming.on('close', () => {
      if (!incoming.complete) reject(new Error('the connection closed before the end of the answer'));
    });
  });
}

export interface WholeAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** A `read` for answers of at most `maxBytes`; it throws for a longer one. */
export function wholeAnswer(maxBytes: number): Exchange<WholeAnswer, unknown>['read'] {
  return async (incoming, outgoing) => {
    const body = await readBody(incoming, outgoing, maxBytes);
    if (body === undefined) throw new Error('the answer is too large');
    return { status: incoming.statusCode ?? 0, headers: incoming.headers, body };
  };
}
