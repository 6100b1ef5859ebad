/** What both webhooks of the relay take: one JSON document, posted. */
import { decodeBody } from '../../../core/encoding/json-body.ts';
import { failure, success } from '../../../core/outcome/result.ts';
import type { Result } from '../../../core/outcome/result.ts';
import { errorAnswer, rejected, signAnswer, wrongContentType } from '../../../adapters/lambda/answers.ts';
import type { HttpAnswer } from '../../../adapters/lambda/http.ts';

export interface WebhookCall {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  readonly contentType: string | undefined;
  readonly body: Uint8Array;
}

export type WebhookProxy = (call: WebhookCall, signal: AbortSignal) => Promise<HttpAnswer>;

/** The document; or the answer to a call that posts none. */
export function postedDocument({ method, contentType, body }: WebhookCall): Result<unknown, HttpAnswer> {
  if (method !== 'POST')
    return failure(errorAnswer(405, 'invalid', 'only POST is allowed here', [], { headers: { allow: 'POST' } }));
  const wrongType = wrongContentType(new Map([['content-type', contentType ?? '']]));
  if (wrongType !== undefined) return failure(wrongType);
  const decoded = decodeBody(body);
  return decoded.ok ? success(decoded.value) : failure(unreadable(decoded.problem));
}

export function unreadable(problem: Parameters<typeof rejected>[0]): HttpAnswer {
  return signAnswer(rejected(problem), undefined);
}
