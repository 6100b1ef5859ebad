import { objectOf, parsedObject } from '../../core/encoding/json-object.ts';
import { failure, success } from '../../core/outcome/result.ts';
import { ThrottledError } from '../../core/ports/errors.ts';
import type { ApiAnswer, ApiRefusal, JsonObject } from '../../core/ports/kubernetes-api.ts';
import type { HttpResult } from './transport.ts';

/** An answer of the API server as a value or a definite refusal. Throws if the answer does not tell what happened. */
export function interpret({ status, text }: HttpResult): ApiAnswer<JsonObject> {
  const accepted = status >= 200 && status <= 299;
  if (text === undefined && accepted) return failure({ why: 'TooLarge', message: 'the answer is too large' });
  const body = parsedObject(text ?? '');
  if (accepted) {
    if (body === undefined) throw new Error(`HTTP ${status} without a JSON object`);
    return success(body);
  }
  const { why, message } = refusalOf(status, body);
  if (why === 'Throttled') throw new ThrottledError(message);
  if (why === 'Unavailable') throw new Error(message);
  return failure({ why, message });
}

export function refusalOf(
  code: number,
  status: JsonObject | undefined,
): { why: ApiRefusal | 'Throttled' | 'Unavailable'; message: string } {
  const text = typeof status?.['message'] === 'string' ? status['message'].slice(0, 500) : '';
  const message = `HTTP ${code}${text === '' ? '' : `: ${text}`}`;
  switch (code) {
    case 401:
      return { why: 'Unauthorized', message };
    case 403:
      return { why: 'Forbidden', message };
    case 404:
      return { why: 'NotFound', message };
    case 409:
      return { why: 'Conflict', message };
    case 410:
      return { why: 'Expired', message };
    // The body or the URL is longer than the API server reads (3 MiB, 1 MiB).
    case 413:
    case 414:
    case 431:
      return { why: 'TooLarge', message };
    case 429:
      return { why: 'Throttled', message };
    default:
      // etcd was restored from a backup, so this resourceVersion is in its future. Only a new list helps.
      if (isResourceVersionTooLarge(status)) return { why: 'Expired', message };
      if (tooLargeForEtcd.test(text)) return { why: 'TooLarge', message };
      // 408 asks to try again. 3xx and 1xx do not come from the API server.
      return { why: code >= 400 && code <= 499 && code !== 408 ? 'Invalid' : 'Unavailable', message };
  }
}

/**
 * The API server's messages, with status 500, for an object that is too large: from etcd (--max-request-bytes, 1.5 MiB by
 * default) and from its own etcd client.
 */
const tooLargeForEtcd = /etcdserver: request is too large|trying to send message larger than max/;

function isResourceVersionTooLarge(status: JsonObject | undefined): boolean {
  const { causes } = objectOf(status?.['details']);
  return Array.isArray(causes) && causes.some((cause) => objectOf(cause)['reason'] === 'ResourceVersionTooLarge');
}
