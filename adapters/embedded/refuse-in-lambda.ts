/**
 * The embedded store and key are for one machine: a demo, development, tests. Inside Lambda they would look as if they
 * worked (each container with a CA and a memory of its own, gone an hour later), so they refuse to start there.
 */
export function refuseInsideLambda(standIn: string, environment: Readonly<Record<string, string | undefined>>): void {
  // CloudShell and CodeBuild set AWS_EXECUTION_ENV too, and are places to try things out: only Lambda's own value counts.
  const sign =
    environment['AWS_LAMBDA_FUNCTION_NAME'] !== undefined
      ? 'AWS_LAMBDA_FUNCTION_NAME'
      : environment['LAMBDA_TASK_ROOT'] !== undefined
        ? 'LAMBDA_TASK_ROOT'
        : environment['AWS_EXECUTION_ENV']?.startsWith('AWS_Lambda') === true
          ? 'AWS_EXECUTION_ENV'
          : undefined;
  if (sign === undefined) return;
  throw new Error(`${standIn} is for one machine and refuses to start inside AWS Lambda (${sign} is set)`);
}
