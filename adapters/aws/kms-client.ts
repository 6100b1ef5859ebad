/** The client of KMS that functions use, and what its errors mean. */
import type { KMSClientConfig } from '@aws-sdk/client-kms';
import { KeyStateError, MisconfigurationError, ThrottledError } from '../../core/ports/errors.ts';
import { idleConnections, isReset, retryOnce } from '../http/stale-connections.ts';

/**
 * The client repeats a call only if the connection was reset. Two signatures are then over the bytes of one recorded intent.
 * After any other failure only the code that records attempts (core/issue.ts) requests another signature.
 */
export const kmsClientConfig = {
  maxAttempts: 2,
  retryStrategy: retryOnce(isReset),
  requestHandler: {
    connectionTimeout: 1_000,
    requestTimeout: 4_000,
    throwOnRequestTimeout: true,
    ...idleConnections(1),
  },
} as const satisfies KMSClientConfig;

/** Throttling → ThrottledError; other 4xx, which an operator must correct → MisconfigurationError; the rest unchanged. */
export async function mapKmsErrors<T>(send: () => Promise<T>): Promise<T> {
  try {
    return await send();
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    const { $metadata } = error as { readonly $metadata?: { readonly httpStatusCode?: number } };
    const status = $metadata?.httpStatusCode ?? 0;
    if (error.name === 'ThrottlingException' || status === 429)
      throw new ThrottledError('KMS is busy', { cause: error });
    if (error.name === 'KMSInvalidStateException')
      throw new KeyStateError(`the key cannot be used (${error.name})`, { cause: error });
    if (status >= 400 && status <= 499)
      throw new MisconfigurationError(`the key cannot be used (${error.name})`, { cause: error });
    throw error;
  }
}
