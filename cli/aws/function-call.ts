/** Calls a function of a deployed cluster with the operator's AWS login. */
import type { FunctionCall } from '../runtime/io.ts';
import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import { awsFailure } from './aws-failure.ts';
import { clientOptions } from './client-options.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';

/** Longer than a call of an operator takes. The ca function pauses only for CloudFormation. */
const timeoutMilliseconds = 35_000;

/** The result of the function. Throws only CommandFailure. */
export async function callFunction({ functionName, region, request }: FunctionCall): Promise<unknown> {
  const client = new LambdaClient({
    ...(region === undefined ? {} : { region }),
    ...clientOptions(timeoutMilliseconds),
  });
  try {
    const answer = await client.send(
      new InvokeCommand({ FunctionName: functionName, Payload: Buffer.from(JSON.stringify(request)) }),
    );
    const payload: unknown = JSON.parse(Buffer.from(answer.Payload ?? []).toString('utf8') || 'null');
    if (answer.FunctionError !== undefined) throw functionFailure(functionName, payload);
    return payload;
  } catch (error) {
    if (error instanceof Error && error.name === 'ResourceNotFoundException')
      throw new CommandFailure(
        exitCodes.notFound,
        `there is no function ${functionName} in this account and region`,
        'npm run cdk -- deploy creates it; --region and --function select another one',
      );
    throw awsFailure(functionName, error);
  } finally {
    client.destroy();
  }
}

/** A MisconfigurationError means a wrong configuration. Every other error of a function is temporary. */
function functionFailure(functionName: string, payload: unknown): CommandFailure {
  const { errorType, errorMessage } = (payload ?? {}) as { errorType?: unknown; errorMessage?: unknown };
  const message = `${functionName} failed: ${String(errorType)}: ${String(errorMessage)}`.slice(0, 600);
  return errorType === 'MisconfigurationError'
    ? new CommandFailure(exitCodes.configuration, message)
    : new CommandFailure(exitCodes.temporary, message, 'try again; its log has the details');
}
