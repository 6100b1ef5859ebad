/** The caller's ARN (STS) and the outputs of a stack (CloudFormation), with the operator's AWS login. */
import { stackNames } from '../../core/configuration/resolve/deployment.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import { awsFailure } from './aws-failure.ts';
import { clientOptions } from './client-options.ts';

/** Without `region` the SDK chooses one as the aws command line does. */
type AwsRegion = { readonly region?: string };

/** The ARN of the operator's login. It needs no permission. */
export async function callerArn(place: AwsRegion): Promise<string> {
  // Each client is loaded where it is used, since loading one takes longer than running a command that needs none.
  const { GetCallerIdentityCommand, STSClient } = await import('@aws-sdk/client-sts');
  const client = new STSClient({ ...clientOptions(), ...place });
  try {
    const { Arn: arn } = await client.send(new GetCallerIdentityCommand());
    if (arn === undefined) throw new Error('STS returned no ARN');
    return arn;
  } catch (error) {
    throw awsFailure('STS', error);
  } finally {
    client.destroy();
  }
}

/** The outputs of a cluster's stack: they hold the names that CloudFormation generated. */
export async function deployedOutputs(cluster: string, place: AwsRegion): Promise<Readonly<Record<string, string>>> {
  const stack = stackNames(cluster).service;
  const outputs = await stackOutputs(stack, place, 'it needs cloudformation:DescribeStacks');
  if (outputs !== undefined) return outputs;
  throw new CommandFailure(
    exitCodes.notFound,
    `there is no stack ${stack} in this account and region`,
    'npm run cdk -- deploy creates it; --cluster and --region select another one',
  );
}

/** Undefined if the stack does not exist. Needs `cloudformation:DescribeStacks`; `hint` says what to do without that permission. */
export async function stackOutputs(
  stack: string,
  place: AwsRegion,
  hint: string,
): Promise<Readonly<Record<string, string>> | undefined> {
  const { CloudFormationClient } = await import('@aws-sdk/client-cloudformation');
  const { describeStack } = await import('./calls.ts');
  const client = new CloudFormationClient({ ...clientOptions(), ...place });
  try {
    const found = await describeStack(client, stack);
    if (found === undefined) return undefined;
    return Object.fromEntries(
      (found.Outputs ?? []).map(({ OutputKey: key = '', OutputValue: value = '' }) => [key, value]),
    );
  } catch (error) {
    const failure = awsFailure('CloudFormation', error);
    if (failure.code !== exitCodes.configuration || failure.hint !== undefined) throw failure;
    throw new CommandFailure(failure.code, failure.message, hint);
  } finally {
    client.destroy();
  }
}
