import { GetRoleCommand } from '@aws-sdk/client-iam';
import { GetCallerIdentityCommand } from '@aws-sdk/client-sts';
import type { Clients } from './clients.ts';

/** The login, and the ARN by which policies name it: of a session, that of its role. */
export async function loginOf({
  sts,
  iam,
}: Clients): Promise<{ readonly account: string; readonly principal: string }> {
  const { Arn: arn = '', Account: account = '' } = await sts.send(new GetCallerIdentityCommand());
  const [, role] = /^arn:[\w-]+:sts::\d+:assumed-role\/([^/]+)\//.exec(arn) ?? [];
  if (role === undefined) return { account, principal: arn };
  // The ARN of a session does not hold its role's path.
  const { Role: found } = await iam.send(new GetRoleCommand({ RoleName: role }));
  if (found?.Arn === undefined) throw new Error(`IAM does not say which role ${role} is`);
  return { account, principal: found.Arn };
}
