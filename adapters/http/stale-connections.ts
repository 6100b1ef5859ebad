/**
 * The connections of AWS clients in Lambda functions. While an environment is frozen, the service closes the connections that
 * the client keeps for its next calls. The next call on such a connection is reset. So a client repeats a call that was reset,
 * and keeps fewer idle connections than it has attempts: the last attempt then opens a new one.
 */

/** What the SDK reports of a failed attempt. */
interface Failure {
  readonly error?: unknown;
  readonly errorType: string;
}

/** The part of `requestHandler` that limits the idle connections of a client to one host. */
export const idleConnections = (maxFreeSockets: number) =>
  ({ httpsAgent: { maxFreeSockets }, httpAgent: { maxFreeSockets } }) as const;

/** A `retryStrategy` with one retry, if `mayRetry`. The SDK's own also retry throttled calls and calls without an answer. */
export function retryOnce(mayRetry: (failure: Failure) => boolean) {
  return {
    acquireInitialRetryToken: async () => retryToken(0),
    async refreshRetryTokenForRetry(before: RetryToken, failure: Failure): Promise<RetryToken> {
      if (before.getRetryCount() > 0 || !mayRetry(failure)) throw new Error('no retry is left');
      return retryToken(1);
    },
    recordSuccess() {},
  };
}

type RetryToken = ReturnType<typeof retryToken>;
const retryToken = (count: number) => ({
  getRetryCount: () => count,
  getRetryCost: () => 0,
  getRetryDelay: () => (count === 0 ? 0 : 50),
});

/** The connection ended before the answer: the service may or may not have executed the call. */
export function isReset({ error }: Failure): boolean {
  const { code } = (error ?? {}) as { readonly code?: unknown };
  return code === 'ECONNRESET' || code === 'EPIPE';
}
