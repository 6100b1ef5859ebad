/** The name under which an instance is recorded: `aws#<partition>/<account>/<region>/<instance id>`. */
import { partitionOf } from './partition.ts';

export interface NamedInstance {
  readonly account: string;
  readonly region: string;
  readonly instanceId: string;
}

export function identityOf({ account, region, instanceId }: NamedInstance): string {
  const partition = partitionOf(region);
  if (partition === undefined) throw new Error(`region ${region} is of no known partition`);
  return `aws#${partition.name}/${account}/${region}/${instanceId}`;
}

/** The inverse of `identityOf`; `undefined` for any other text. */
export function instanceOf(identity: string): NamedInstance | undefined {
  const [account = '', region = '', instanceId = ''] = identity.split('/').slice(1);
  const valid = isAccountId(account) && partitionOf(region) !== undefined && isInstanceId(instanceId);
  return valid && identityOf({ account, region, instanceId }) === identity
    ? { account, region, instanceId }
    : undefined;
}

export function isAccountId(text: string): boolean {
  return /^[0-9]{12}$/.test(text);
}

/** 8 digits until 2016, 17 since then. Lower case only, because it becomes part of names and queries. */
export function isInstanceId(text: string): boolean {
  return /^i-(?:[0-9a-f]{8}|[0-9a-f]{17})$/.test(text);
}
