/**
 * The authorization webhook of kube-apiserver that refuses revoked certificates. The API server calls it only for certificates
 * that its AuthorizationConfiguration lists (core/revocation/authorization-configuration.ts), and refuses what gets no answer.
 *
 * A known entry is answered from memory, since a revocation is final. For any other fingerprint the list is fetched first: the
 * operator's file may be ahead of it. So the relay asks the service only after a revocation, and an answer is never stale.
 */
import { errorMessage } from '../../../core/outcome/error-message.ts';
import { printable } from '../../../core/outcome/printable-text.ts';
import { answerAccessReview, decodeAccessReview } from '../../../core/revocation/access-review.ts';
import type { RevokedList } from '../../../core/revocation/revoked-list.ts';
import { errorAnswer, outcomeHeader } from '../../../adapters/lambda/answers.ts';
import { jsonAnswer } from '../../../adapters/lambda/http.ts';
import type { RevokedSource } from '../../../adapters/signing-api/revoked.ts';
import { createLineLimit } from '../runtime/log.ts';
import type { Log } from '../runtime/log.ts';
import type { Clock } from '../runtime/clock.ts';
import { postedDocument, unreadable } from './posted.ts';
import type { WebhookProxy } from './posted.ts';

export interface RevokedPorts {
  readonly source: RevokedSource;
  readonly clock: Clock;
  readonly log: Log;
}

/** A certificate that is in the API server's list and not in the service's causes at most one fetch a second. */
const freshMilliseconds = 1_000;

export function revokedPath(cluster: string): string {
  return `/v1/clusters/${cluster}/revoked`;
}

/** Never rejects. */
export function createRevokedWebhook({ source, clock, log }: RevokedPorts): WebhookProxy {
  const lineLimit = createLineLimit(clock);
  let list: RevokedList = new Map();
  let etag: string | undefined;
  let fetchedAt = -Infinity;
  let fetching: Promise<void> | undefined;

  async function readList(): Promise<void> {
    const started = clock.monotonic();
    const answer = await source.read(etag);
    if (answer !== 'unchanged') ({ list, etag } = answer);
    fetchedAt = started;
  }

  /** Calls at the same moment share one fetch. */
  async function refresh(): Promise<void> {
    if (clock.monotonic() < fetchedAt + freshMilliseconds) return;
    fetching ??= readList().finally(() => {
      fetching = undefined;
    });
    await fetching;
  }

  return async (call) => {
    const body = postedDocument(call);
    if (!body.ok) return body.problem;
    const review = decodeAccessReview(body.value);
    if (!review.ok) return unreadable(review.problem);
    const { fingerprints } = review.value;
    try {
      if (!fingerprints.some((each) => list.has(each))) await refresh();
    } catch (error) {
      const due = lineLimit('list');
      const detail = printable(errorMessage(error).slice(0, 300));
      if (due !== undefined)
        log.warn({ detail, ...due }, 'webhook: the list of revoked certificates cannot be fetched');
      // Not "no opinion": the API server lists the certificate as revoked, and refuses it when it gets no answer.
      return errorAnswer(503, 'busy', 'the list of revoked certificates cannot be fetched');
    }
    const denied = fingerprints.some((each) => list.has(each));
    if (denied && lineLimit('denied') !== undefined) log.info({ fingerprints }, 'webhook: revoked certificate refused');
    return jsonAnswer(200, answerAccessReview(review.value, list), outcomeHeader('verdict'));
  };
}
