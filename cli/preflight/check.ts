/** One row of the preflight report, and a question to AWS whose answer may be missing. */
import { failure, success } from '../../core/outcome/result.ts';
import type { Result } from '../../core/outcome/result.ts';
import type { ClusterConfiguration } from '../../core/configuration/model/cluster.ts';
import type { DeploymentConfiguration } from '../../core/configuration/model/deployment.ts';
import type { CheckRow } from '../output/check-rows.ts';
import { awsFailure } from '../aws/aws-failure.ts';
import { asError } from '../../core/outcome/error-message.ts';
import type { AccountView } from '../runtime/account-view.ts';

export interface Check extends CheckRow {
  readonly id: 'identity' | 'region' | 'bootstrap' | 'concurrency' | 'kms' | 'principal' | 'stack';
  /** The right that the login lacks, if that is why the check is unknown. */
  readonly permission?: string;
}

/** The clusters of one account and region, and the login by which AWS is asked about it. */
export interface Site {
  readonly view: AccountView;
  readonly account: string;
  readonly region: string;
  readonly partition: string;
  readonly clusters: readonly PlannedCluster[];
}

export interface PlannedCluster {
  readonly cluster: ClusterConfiguration;
  readonly deployment: DeploymentConfiguration;
}

/** All rights that the command uses, with what each is for. GetCallerIdentity needs none. */
export const permissions = {
  'ssm:GetParameters': 'the services of the region, the version of the CDK bootstrap',
  'lambda:GetAccountSettings': 'how much concurrency may be reserved',
  'lambda:GetFunctionConcurrency': 'how much of it this cluster has reserved already',
  'servicequotas:GetServiceQuota': 'how many signatures a second KMS makes',
  'servicequotas:GetAWSDefaultServiceQuota': 'the same, where AWS applies its default',
  'iam:GetRole': 'whether the roles exist that countersign.yaml names',
  'iam:GetUser': 'whether the users exist that countersign.yaml names',
  'cloudformation:DescribeStacks': 'whether the names of the stacks are free',
} as const;
export type Permission = keyof typeof permissions;

type Unanswered = Pick<Check, 'result' | 'seen' | 'mend' | 'permission'>;

/** `permission`: what the call needs. A missing one, and a service that does not answer, make the check unknown. */
export async function ask<T>(call: Promise<T>, permission: Permission): Promise<Result<T, Unanswered>> {
  try {
    return success(await call);
  } catch (error) {
    const { name, message } = asError(error);
    if (/AccessDenied|NotAuthorized|UnauthorizedOperation/.test(name)) {
      // A call of the view may need two permissions; AWS's message names the missing one.
      const [, lacking = permission] = /not authorized to perform: ([\w-]+:\w+)/.exec(message) ?? [];
      const mend = `allow ${lacking} to the login, or check it by hand`;
      return failure({ result: 'unknown', seen: `the login lacks ${lacking}`, mend, permission: lacking });
    }
    const { message: seen, hint } = awsFailure(permission.split(':')[0] ?? '', error);
    return failure({ result: 'unknown', seen, ...(hint === undefined ? {} : { mend: hint }) });
  }
}
