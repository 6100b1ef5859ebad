/**
 * The metrics that are counted from log lines. CloudWatch bills such a metric only for the hours in which a line adds to it.
 * https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch_billing.html
 */
import type { HttpApi } from 'aws-cdk-lib/aws-apigatewayv2';
import type { IFunction } from 'aws-cdk-lib/aws-lambda';
import { FilterPattern, MetricFilter } from 'aws-cdk-lib/aws-logs';
import type { ILogGroup } from 'aws-cdk-lib/aws-logs';
import type { Construct } from 'constructs';
import type { ClusterConfiguration } from '../../core/configuration/model/cluster.ts';
import type { functionName } from '../../core/configuration/resolve/deployment.ts';
import { logAlarms } from '../../core/outcome/trouble.ts';
import type { LogAlarm } from '../../core/outcome/trouble.ts';
import { caDaysLeft, metricNames, namespaceOf, retiredMachines, wouldRefuse } from './metric-names.ts';

/** The parts of a deployed cluster that alarms and dashboards look at. */
export interface Watched {
  readonly functions: ReadonlyMap<Service, WatchedFunction>;
  /** The HTTP APIs by who may call them, and their access logs. */
  readonly apis: ReadonlyMap<'iam' | 'jwt', { readonly api: HttpApi; readonly accessLog: ILogGroup }>;
  /** Sign and attest have URLs, which have no access log. */
  readonly functionUrls: boolean;
}

export type Service = Parameters<typeof functionName>[1];

export interface WatchedFunction {
  readonly function: IFunction;
  readonly logGroup: ILogGroup;
}

/** The alarms that the lines of a function can raise. */
const raisedBy: Readonly<Record<Service, readonly LogAlarm[]>> = {
  sign: logAlarms.filter((alarm) => alarm !== 'retirement'),
  attest: logAlarms,
  authorizer: ['faults', 'interruptions'],
  ca: ['faults'],
  kubeadm: ['faults'],
};

/** Returns the metric filters that must exist before the ca function first logs. */
export function countLines(scope: Construct, cluster: ClusterConfiguration, watched: Watched): readonly MetricFilter[] {
  const { functions, apis } = watched;

  /** Functions and API Gateway write one JSON object per line. */
  function addFilter(
    id: string,
    metricName: string,
    logGroup: ILogGroup,
    pattern: string,
    metricValue = '1',
  ): MetricFilter {
    return new MetricFilter(scope, `Filter-${id}`, {
      logGroup,
      filterPattern: FilterPattern.literal(`{ ${pattern} }`),
      metricNamespace: namespaceOf(cluster.name),
      metricName,
      metricValue,
    });
  }

  for (const [service, { logGroup }] of functions)
    for (const alarm of raisedBy[service])
      if (alarm !== 'retirement' || cluster.attestation?.retireTerminated === true)
        addFilter(`${service}-${alarm}`, metricNames[alarm], logGroup, `$.alarm = "${alarm}"`);
  for (const [name, { accessLog }] of apis)
    addFilter(`${name}-api`, metricNames.interruptions, accessLog, '$.status = "5*"');
  // A metric without an alarm: audit mode is for clusters that are known not to pass yet.
  const attest = functions.get('attest');
  if (attest !== undefined) {
    addFilter('would-refuse', wouldRefuse, attest.logGroup, '$.wouldRefuse[0] = *');
    // A line has the field only if machines were retired, so that the metric is billed only for the hours in which machines end.
    if (cluster.attestation?.retireTerminated === true)
      addFilter('retired-machines', retiredMachines, attest.logGroup, '$.retired = *', '$.retired');
  }

  const ca = functions.get('ca');
  if (ca === undefined) throw new Error(`${cluster.name} has no ca function`);
  // All CAs in one metric: its minimum is the CA that ends first.
  return [...cluster.cas.keys()].map((name) => {
    const days = `$.daysLeft.${name}`;
    return addFilter(`ca-days-left-${name}`, caDaysLeft, ca.logGroup, `${days} = *`, days);
  });
}
