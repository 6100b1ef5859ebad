import type { Table } from 'aws-cdk-lib/aws-dynamodb';
import { PolicyStatement } from 'aws-cdk-lib/aws-iam';

/** The right to these actions on the items whose keys begin so (adapters/dynamodb/table.ts): `uid`, `once#address`. */
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
