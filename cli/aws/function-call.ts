/** Calls one of a deployed cluster's functions as the operator who is logged in to AWS here. */
import type { FunctionCall } from '../runtime/io.ts';
import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import { notAsked } from './aws-failure.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';

/** A little longer than our functions run. */
const timeoutMilliseconds = 35_000;

/** What the function gave. Whatever went wrong is a CommandFailure that says what to do about it. */
export async function callFunction({ functionName, region, request }: FunctionCall): Promise<unknown> {
  const client = new LambdaClient({
    ...(region === undefined ? {} : { region }),
    requestHandler: { connectionTimeout: 5_000, requestTimeout: timeoutMilliseconds, throwOnRequestTimeout: true },
  });
  try {
    const answer = await client.send(
      new InvokeCommand({ FunctionName: functionName, Payload: Buffer.from(JSON.stringify(request)) }),
    );
    const payload: unknown = JSON.parse(Buffer.from(answer.Payload ?? []).toString('utf8') || 'null');
    if (answer.FunctionError !== undefined) throw failedFunction(functionName, payload);
    return payload;
  } catch (error) {
    throw error instanceof CommandFailure ? error : uncallable(functionName, error);
  } finally {
    client.destroy();
  }
}

/** Our functions throw for what is temporary, and for one thing that is not. */
function failedFunction(functionName: string, payload: unknown): CommandFailure {
  const { errorType, errorMessage } = (payload ?? {}) as { errorType?: unknown; errorMessage?: unknown };
  const message = `${functionName} failed: ${String(errorType)}: ${String(errorMessage)}`.slice(0, 600);
  return errorType === 'MisconfigurationError'
    ? new CommandFailure(exitCodes.configuration, message)
    : new CommandFailure(exitCodes.temporary, message, 'try again; its log says more');
}

function uncallable(functionName: string, error: unknown): CommandFailure {
  const { name, message } = error instanceof Error ? error : new Error(String(error));
  const { $metadata } = error as { readonly $metadata?: { readonly httpStatusCode?: number } };
  const status = $metadata?.httpStatusCode ?? 0;
  if (name === 'ResourceNotFoundException')
    return new CommandFailure(
      exitCodes.notFound,
      `there is no function ${functionName} in this account and region`,
      'npx cdk deploy makes it; --region and --function say where else to look',
    );
  const nobodyAsked = notAsked(name, message);
  if (nobodyAsked !== undefined) return nobodyAsked;
  if (status >= 400 && status <= 499 && status !== 429)
    return new CommandFailure(exitCodes.configuration, `${functionName} cannot be called: ${name}: ${message}`);
  return new CommandFailure(exitCodes.temporary, `${functionName} did not answer: ${name}: ${message}`);
}
