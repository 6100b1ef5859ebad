/**
 * The embedded store and key are for one machine: a demo, development, tests. Inside Lambda they would seem to work, with
 * another CA and other records in each container, gone an hour later. So they refuse to start there.
 */
export function refuseInsideLambda(standIn: string, environment: Readonly<Record<string, string | undefined>>): void {
  // CloudShell and CodeBuild set AWS_EXECUTION_ENV too, and are places to try things out: only Lambda's own value counts.
  const ofLambda = environment['AWS_EXECUTION_ENV']?.startsWith('AWS_Lambda') === true ? ['AWS_EXECUTION_ENV'] : [];
  const set = ['AWS_LAMBDA_FUNCTION_NAME', 'LAMBDA_TASK_ROOT'].filter((name) => environment[name] !== undefined);
  const [sign] = [...set, ...ofLambda];
  if (sign === undefined) return;
  throw new Error(`${standIn} is for one machine and refuses to start inside AWS Lambda (${sign} is set)`);
}
