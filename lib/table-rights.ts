import type { Table } from 'aws-cdk-lib/aws-dynamodb';
import { PolicyStatement } from 'aws-cdk-lib/aws-iam';

/** Allows actions on the items whose keys begin with a prefix, such as `once#address` (adapters/dynamodb/table.ts). */
export function allowItems(
  sid: string,
  { tableArn }: Table,
  actions: string | readonly string[],
  prefixes: readonly string[],
): PolicyStatement {
  return new PolicyStatement({
    sid,
    actions: [actions].flat().map((action) => `dynamodb:${action}`),
    resources: [tableArn],
    conditions: leadingKeys(prefixes),
  });
}

/** Allows queries of the partitions of an index whose keys begin with a prefix. */
export function allowIndex(
  sid: string,
  { tableArn }: Table,
  index: string,
  prefixes: readonly string[],
): PolicyStatement {
  const resources = [`${tableArn}/index/${index}`];
  return new PolicyStatement({ sid, actions: ['dynamodb:Query'], resources, conditions: leadingKeys(prefixes) });
}

/** `uid`: all items of that kind. `uid#kubeadm/`: those whose names begin so. */
function leadingKeys(prefixes: readonly string[]) {
  const patterns = prefixes.map((prefix) => (prefix.endsWith('/') ? `${prefix}*` : `${prefix}#*`));
  return { 'ForAllValues:StringLike': { 'dynamodb:LeadingKeys': patterns } };
}
