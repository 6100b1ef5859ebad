/** What `cdk bootstrap` makes in an account and region, under its default qualifier. */

interface Environment {
  readonly partition: string;
  readonly account: string;
  readonly region: string;
}

/** The SSM parameter with the version of the bootstrap. */
export const bootstrapParameter = '/cdk-bootstrap/hnb659fds/version';

/** ARN of the role that CloudFormation takes. */
export function bootstrapRole({ partition, account, region }: Environment): string {
  return `arn:${partition}:iam::${account}:role/cdk-hnb659fds-cfn-exec-role-${account}-${region}`;
}

/** The bucket of templates and code. */
export function bootstrapBucket({ account, region }: Omit<Environment, 'partition'>): string {
  return `cdk-hnb659fds-assets-${account}-${region}`;
}
