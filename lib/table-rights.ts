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
    conditions: { 'ForAllValues:StringLike': { 'dynamodb:LeadingKeys': prefixes.map((prefix) => `${prefix}#*`) } },
  });
}
