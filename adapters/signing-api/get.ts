/** One GET of a document of the sign function. */
import { success } from '../../core/outcome/result.ts';
import type { Result } from '../../core/outcome/result.ts';
import { exchange, wholeAnswer } from '../http/exchange.ts';
import type { WholeAnswer } from '../http/exchange.ts';
import type { Credentials, EndpointConnection } from './client.ts';

/** Lambda answers with at most 6 MB. */
const readAnswer = wholeAnswer(6 * 1_048_576);

export interface GetOptions {
  readonly timeoutMilliseconds: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** Throws if no answer arrives in time, or if the relay has no credentials. */
export async function getDocument(
  { url, request, authorize }: EndpointConnection,
  { timeoutMilliseconds, headers: own, signal }: GetOptions,
): Promise<WholeAnswer> {
  const headers = { accept: 'application/json', ...own };
  const answer = await exchange<Result<WholeAnswer, string>, Credentials | undefined>({
    timeoutMilliseconds,
    ...(signal === undefined ? {} : { signal }),
    login: async () => authorize?.({ method: 'GET', url, headers, body: new Uint8Array() }),
    send: (credentials) => {
      if (credentials?.ok === false) return { result: credentials };
      const sent = { 'user-agent': 'countersign-watch-relay', ...headers, ...credentials?.value };
      return request(url, { method: 'GET', headers: sent }).end();
    },
    read: async (incoming, outgoing) => success(await readAnswer(incoming, outgoing)),
  });
  if (!answer.ok) throw new Error(answer.problem);
  return answer.value;
}
