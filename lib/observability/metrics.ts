/** The metrics that users of the constructs get. */
import { Duration } from 'aws-cdk-lib';
import { Metric } from 'aws-cdk-lib/aws-cloudwatch';
import type { MetricOptions } from 'aws-cdk-lib/aws-cloudwatch';
import { FilterPattern, MetricFilter } from 'aws-cdk-lib/aws-logs';
import type { ILogGroup } from 'aws-cdk-lib/aws-logs';
import type { Construct } from 'constructs';
import { namespaceOf } from './metric-names.ts';

/** A metric that the cluster counts from log lines. */
export function clusterMetric(cluster: string, metricName: string, options: MetricOptions | undefined): Metric {
  return new Metric({
    namespace: namespaceOf(cluster),
    metricName,
    statistic: 'Sum',
    period: Duration.minutes(5),
    ...options,
  });
}

/** `each` is the log of one function. Lines that match the pattern count in one metric. */
export interface Counted {
  readonly metricName: 'Issued' | 'Refused';
  readonly pattern: string;
  readonly each: ReadonlyMap<string, ILogGroup>;
}

/** Not every cluster has these metrics: each is billed as a custom metric. The first call makes the filters. */
export function countOnce(scope: Construct, cluster: string, { metricName, pattern, each }: Counted): void {
  for (const [service, logGroup] of each) {
    const id = `Filter-${metricName}-${service}`;
    if (scope.node.tryFindChild(id) !== undefined) continue;
    new MetricFilter(scope, id, {
      logGroup,
      filterPattern: FilterPattern.literal(`{ ${pattern} }`),
      metricNamespace: namespaceOf(cluster),
      metricName,
      metricValue: '1',
    });
  }
}
