/**
 * How the sign function invokes the attest function, without a front door. The answer tells only whether attest reached a
 * verdict: sign acts on the stored verdict.
 */
import { InvokeCommand } from '@aws-sdk/client-lambda';
import type { LambdaClient, LambdaClientConfig } from '@aws-sdk/client-lambda';
import { LaterError, MisconfigurationError, ThrottledError } from '../../core/ports/errors.ts';
import type { JsonObject } from '../../core/ports/kubernetes-api.ts';
import { idleConnections, isReset, retryOnce } from '../http/stale-connections.ts';
import { attestCall, readAttestCallAnswer } from './attest-call.ts';
import type { AttestCallAnswer } from './attest-call.ts';

/**
 * Shorter than the sign function's own 25 s. It repeats a call only if the connection was reset: attest answers the same bytes with
 * the stored verdict. After a timeout a second call would only wait behind the first one.
 */
export const invocationClientConfig = {
  maxAttempts: 2,
  retryStrategy: retryOnce(isReset),
  requestHandler: {
    connectionTimeout: 1_000,
    requestTimeout: 18_000,
    throwOnRequestTimeout: true,
    ...idleConnections(1),
  },
} as const satisfies LambdaClientConfig;

export interface AttestInvocation {
  /** Called once, at the first invocation; the connections of the client are kept. */
  readonly client: () => LambdaClient;
  /** Name or ARN. */
  readonly functionName: string;
  readonly cluster: string;
}

export function invokeAttest({
  client,
  functionName,
  cluster,
}: AttestInvocation): (object: JsonObject) => Promise<void> {
  let connected: LambdaClient | undefined;
  return async (object) => {
    const payload = Buffer.from(JSON.stringify(attestCall(cluster, object)));
    const command = new InvokeCommand({ FunctionName: functionName, Payload: payload });
    connected ??= client();
    let result;
    try {
      result = await connected.send(command);
    } catch (error) {
      throw invocationError(error);
    }
    // It crashed or ran out of time, perhaps after it stored the verdict.
    if (result.FunctionError !== undefined) throw new Error('the attest function failed');
    const { outcome = 'no outcome', later } = answerIn(result.Payload) ?? {};
    if (later !== undefined) throw new LaterError(later.why, 'attest has the request wait', later.afterMilliseconds);
    if (outcome !== 'verdict') throw new Error(`the attest function reached no verdict (${outcome})`);
  };
}

function answerIn(payload: Uint8Array | undefined): AttestCallAnswer | undefined {
  if (payload === undefined) return undefined;
  try {
    return readAttestCallAnswer(JSON.parse(Buffer.from(payload).toString('utf8')));
  } catch {
    return undefined;
  }
}

function invocationError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { $metadata } = error as { readonly $metadata?: { readonly httpStatusCode?: number } };
  const status = $metadata?.httpStatusCode ?? 0;
  if (status === 429) return new ThrottledError('the attest function is busy', { cause: error });
  if (status >= 400 && status < 500)
    return new MisconfigurationError(`the attest function cannot be called (${error.name})`, { cause: error });
  return new Error('the attest function cannot be reached', { cause: error });
}
