/** What the operator's AWS clients have in common. */
import { DescribeStacksCommand } from '@aws-sdk/client-cloudformation';
import type { CloudFormationClient, Stack } from '@aws-sdk/client-cloudformation';

/** Undefined if the stack does not exist. Needs `cloudformation:DescribeStacks`. */
export async function describeStack(client: CloudFormationClient, name: string): Promise<Stack | undefined> {
  const asked = client.send(new DescribeStacksCommand({ StackName: name }));
  // CloudFormation has no error code of its own for a stack that does not exist.
  const answer = await asked.catch(undefinedIf('ValidationError'));
  return answer?.Stacks?.[0];
}

/** For `catch`: the errors with these names mean that the thing asked for does not exist. */
export function undefinedIf(...names: readonly string[]): (error: unknown) => undefined {
  return (error) => {
    if (!(error instanceof Error) || !names.includes(error.name)) throw error;
    return undefined;
  };
}

/** Names of IAM's error for a role or user that does not exist; the SDK and the emulators differ. */
export const noSuchEntity = ['NoSuchEntityException', 'NoSuchEntity'] as const;
