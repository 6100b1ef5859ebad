/**
 * Has a request judged by the attest function: the sign function's way to it, over no front door. What it answers is not
 * looked at beyond "did it run": sign believes the stored verdict alone.
 */
import { InvokeCommand } from '@aws-sdk/client-lambda';
import type { LambdaClient, LambdaClientConfig } from '@aws-sdk/client-lambda';
import { LaterError, MisconfigurationError, ThrottledError } from '../../core/ports/errors.ts';
import type { JsonObject } from '../../core/ports/kubernetes-api.ts';
import { attestCall, readAttestCallAnswer } from './attest-call.ts';
import type { AttestCallAnswer } from './attest-call.ts';

/** Below the sign function's own 25 s. A second try would only queue behind the first. */
export const invocationClientConfig = {
  maxAttempts: 1,
  requestHandler: { connectionTimeout: 1_000, requestTimeout: 18_000, throwOnRequestTimeout: true },
} as const satisfies LambdaClientConfig;

export interface AttestInvocation {
  /** Called once, when somebody is asked for the first time: then its connections are kept, as any client's. */
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
    // It crashed or ran out of time; it may have concluded before.
    if (result.FunctionError !== undefined) throw new Error('the attest function failed');
    const { outcome = 'no outcome', later } = answerIn(result.Payload) ?? {};
    if (later !== undefined) throw new LaterError(later.why, 'attest has it wait', later.afterMilliseconds);
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
