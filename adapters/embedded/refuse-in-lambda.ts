/**
 * The embedded stores and CA key are for a demo, development and tests on one machine. In Lambda each container would have
 * its own CA and records and lose them when it ends, so they refuse to start there.
 */
export function refuseInsideLambda(component: string, environment: Readonly<Record<string, string | undefined>>): void {
  // CloudShell and CodeBuild set AWS_EXECUTION_ENV too, and the demo may run there: only Lambda's own value counts.
  const executionEnv = environment['AWS_EXECUTION_ENV']?.startsWith('AWS_Lambda') === true ? ['AWS_EXECUTION_ENV'] : [];
  const set = ['AWS_LAMBDA_FUNCTION_NAME', 'LAMBDA_TASK_ROOT'].filter((name) => environment[name] !== undefined);
  const [variable] = [...set, ...executionEnv];
  if (variable === undefined) return;
  throw new Error(`${component} is for one machine and refuses to start inside AWS Lambda (${variable} is set)`);
}
