/** Maps errors of AWS to an exit code, a message and what to do next. */
import { MisconfigurationError, ThrottledError } from '../../core/ports/errors.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import { asError } from '../../core/outcome/error-message.ts';

interface AwsError {
  readonly name: string;
  readonly message: string;
  /** Node's code for a failed connection. */
  readonly code?: string;
  readonly $metadata?: { readonly httpStatusCode?: number };
}

/**
 * `service`: name of the AWS service or function, for the message. `permission`: what the call needs; the hint names it if AWS
 * denies the call.
 */
export function awsFailure(service: string, error: unknown, permission?: string): CommandFailure {
  if (error instanceof CommandFailure) return error;
  if (error instanceof ThrottledError)
    return new CommandFailure(exitCodes.temporary, `${service}: ${error.message}`, 'try again');
  if (error instanceof MisconfigurationError && error.cause === undefined)
    return new CommandFailure(exitCodes.configuration, error.message);
  // The adapters hide AWS's message in `cause`, because functions must not log it. Here it names the permission that the operator lacks.
  const cause = error instanceof MisconfigurationError ? error.cause : error;
  const { name, message, code, $metadata }: AwsError = asError(cause);
  const errorCode = code ?? name;
  if (errorCode === 'ResourceNotFoundException')
    return new CommandFailure(exitCodes.notFound, `${service}: there is no such table in this account and region`);
  // Without a login or a region the SDK sends no request.
  if (/^region (is missing|not accepted)/i.test(message))
    return new CommandFailure(exitCodes.configuration, message, 'name it: --region, or AWS_REGION');
  if (name === 'CredentialsProviderError')
    return new CommandFailure(exitCodes.configuration, message, 'log in to AWS as for the aws command line');
  const http = $metadata?.httpStatusCode ?? 0;
  if (error instanceof MisconfigurationError || (http >= 400 && http <= 499 && http !== 429))
    return new CommandFailure(
      exitCodes.configuration,
      `${service} refuses: ${errorCode}: ${message}`.slice(0, 600),
      permission !== undefined && errorCode.startsWith('AccessDenied') ? `it needs ${permission}` : undefined,
    );
  return new CommandFailure(exitCodes.temporary, `${service} did not answer: ${errorCode}: ${message}`.slice(0, 600));
}
