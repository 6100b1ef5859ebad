/**
 * Has a request judged by the attest function: the sign function's way to it, over no front door. What it answers is not
 * looked at beyond "did it run": sign believes the stored verdict alone.
 */
import { InvokeCommand } from '@aws-sdk/client-lambda';
import type { LambdaClient, LambdaClientConfig } from '@aws-sdk/client-lambda';
import { MisconfigurationError, ThrottledError } from '../core/ports.ts';
import type { JsonObject } from '../core/ports.ts';
import type { HttpEvent } from './lambda-http.ts';

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
    const payload = Buffer.from(JSON.stringify(attestEvent(cluster, object)));
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
    const status = statusOf(result.Payload);
    if (status !== 200) throw new Error(`the attest function answered with status ${status ?? 'none'}`);
  };
}

/** As an HTTP API sends it (payload format 2.0), so that the function knows one kind of event. */
export function attestEvent(cluster: string, object: JsonObject): HttpEvent {
  const path = `/v1/clusters/${cluster}/attest`;
  return {
    version: '2.0',
    rawPath: path,
    rawQueryString: '',
    headers: { 'content-type': 'application/json' },
    requestContext: { http: { method: 'POST', path } },
    body: JSON.stringify({ request: object }),
    isBase64Encoded: false,
  };
}

function statusOf(payload: Uint8Array | undefined): number | undefined {
  if (payload === undefined) return undefined;
  try {
    const { statusCode } = JSON.parse(Buffer.from(payload).toString('utf8')) as { readonly statusCode?: unknown };
    return typeof statusCode === 'number' ? statusCode : undefined;
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
