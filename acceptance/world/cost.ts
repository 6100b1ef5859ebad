/**
 * An upper estimate of what a run costs: counted calls times list prices of us-east-1 (docs/cost.md says where the prices come
 * from), and what is paid by the hour while it exists.
 */

export interface CostLine {
  readonly what: string;
  readonly count: number;
  readonly dollars: number;
}

/** Dollars for each call. Calls that are not listed are free. */
const perCall: Readonly<Record<string, { readonly what: string; readonly dollars: number }>> = {
  // API Gateway, Lambda with 60 ms, an authorizer call, one signature, two writes and three reads of DynamoDB.
  'endpoint call': { what: 'calls of the endpoints, each as if it were a certificate', dollars: 0.000_029 },
  'Lambda Invoke': { what: 'direct invocations', dollars: 0.000_001 },
  'S3 PutObject': { what: 'objects written to the bootstrap bucket', dollars: 0.000_005 },
  'KMS Sign': { what: 'signatures that were tried directly', dollars: 0.000_015 },
  'CloudWatch GetMetricStatistics': { what: 'looks at metrics', dollars: 0.000_01 },
  // 0.0042 an hour for t4g.nano, 0.005 for a public address, and 8 GB of gp3 for 0.08 a month.
  'EC2 RunInstances': { what: 'starts of two t4g.nano, for an hour', dollars: 0.02 },
  // 0.15 for each GB.
  'DynamoDB RestoreTableToPointInTime': { what: 'tables restored, of less than a MB', dollars: 0.000_15 },
};

/** Per month of 730 hours, for each cluster: two CA keys (one is added and taken away), nine alarms, six metrics of its log. */
const clusterMonth = 2 + 9 * 0.1 + 6 * 0.3;

/** For `--plan`. */
export const costText = `Cost: counted calls times list prices of us-east-1, less than $0.20 together:
${Object.values(perCall)
  .map(({ what, dollars }) => `  ${what}: $${String(dollars)} each\n`)
  .join('')}  keys, alarms and metrics of a cluster: $${(clusterMonth / 730).toFixed(4)} an hour`;

export function costOf(
  calls: ReadonlyMap<string, number>,
  seconds: number,
): { readonly lines: readonly CostLine[]; readonly dollars: number } {
  const counted = Object.entries(perCall).flatMap(([name, { what, dollars }]) => {
    const count = calls.get(name) ?? 0;
    return count === 0 ? [] : [{ what, count, dollars: count * dollars }];
  });
  const clusters = Math.floor((calls.get('CloudFormation CreateStack') ?? 0) / 2);
  // AWS prices an hour that has begun.
  const hours = Math.max(1, Math.ceil(seconds / 3_600));
  const standing = {
    what: 'hours of keys, alarms and metrics',
    count: clusters * hours,
    dollars: (clusters * hours * clusterMonth) / 730,
  };
  const lines = [...counted, standing];
  return { lines, dollars: lines.reduce((sum, each) => sum + each.dollars, 0) };
}
