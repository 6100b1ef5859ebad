/**
 * The CloudWatch alarms of a cluster: few and wide, since each costs as much as a tenth of a CA key, quiet or not. The log
 * lines name the trouble. Each description names its section of docs/runbook.md.
 */
import { Duration } from 'aws-cdk-lib';
import { Alarm, ComparisonOperator, Metric, TreatMissingData } from 'aws-cdk-lib/aws-cloudwatch';
import type { AlarmProps, IMetric } from 'aws-cdk-lib/aws-cloudwatch';
import { SnsAction } from 'aws-cdk-lib/aws-cloudwatch-actions';
import { Topic } from 'aws-cdk-lib/aws-sns';
import type { Construct } from 'constructs';
import { hasSchedule, scheduleInterval } from '../../core/attestation/retirement/schedule.ts';
import type { ClusterConfiguration } from '../../core/configuration/model/cluster.ts';
import type { DeploymentConfiguration } from '../../core/configuration/model/deployment.ts';
import { logAlarms, named, troubles } from '../../core/outcome/trouble.ts';
import type { LogAlarm } from '../../core/outcome/trouble.ts';
import type { Service, Watched, WatchedFunction } from './log-metrics.ts';
import { caDaysLeft, metricNames, namespaceOf } from './metric-names.ts';

/** How often the ca function logs the days that its CAs have left. */
export const caStatusInterval = Duration.hours(6);

const period = Duration.minutes(5);

export interface AlarmOptions extends Watched {
  readonly cluster: ClusterConfiguration;
  readonly alarms: DeploymentConfiguration['alarms'];
}

/**
 * `first`: one event alarms. `many`: the configured number of refusals alarms. `lasting`: a quarter of an hour alarms. `hour`: an
 * hour alarms, for what is tried every ten minutes.
 */
type Threshold = 'first' | 'many' | 'lasting' | 'hour';

const logAlarmsMean: Readonly<Record<LogAlarm, readonly [Threshold, meaning: string]>> = {
  faults: ['first', 'a fault that does not pass by itself'],
  'unexpected-refusals': ['first', 'a request or a call was refused that no correct client makes'],
  'many-refusals': ['many', 'many requests are refused'],
  interruptions: ['lasting', 'for a quarter of an hour calls got no answer, or 5xx from an HTTP API'],
  retirement: ['hour', 'for an hour attest could not look for terminated machines'],
};

export function createAlarms(scope: Construct, options: AlarmOptions): readonly Alarm[] {
  const { cluster, alarms, functions, functionUrls } = options;
  const namespace = namespaceOf(cluster.name);
  const topics = alarms.topics.map((arn, index) => new SnsAction(Topic.fromTopicArn(scope, `AlarmTopic${index}`, arn)));

  /** `section` is a heading of the runbook; `of` distinguishes the alarms that share it. */
  function addAlarm(section: string, of: Service | undefined, meaning: string, props: AlarmProps): Alarm {
    const name = of === undefined ? section : `${section}-${of}`;
    const alarm = new Alarm(scope, `Alarm-${name}`, {
      alarmName: `countersign-${cluster.name}-${name}`,
      alarmDescription: `Cluster ${cluster.name}: ${meaning}. What to do: docs/runbook.md#${section}`,
      ...props,
    });
    alarm.addAlarmAction(...topics);
    alarm.addOkAction(...topics);
    return alarm;
  }

  function alarmOn(section: string, meaning: string, metric: IMetric, threshold: Threshold, of?: Service): Alarm {
    const periods = threshold === 'lasting' || threshold === 'hour' ? 3 : 1;
    return addAlarm(section, of, meaning, {
      metric,
      threshold: threshold === 'many' ? alarms.refusals : 1,
      comparisonOperator: ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
      evaluationPeriods: periods,
      datapointsToAlarm: periods,
      treatMissingData: TreatMissingData.NOT_BREACHING,
    });
  }

  /** What an HTTP API answers with 5xx, which its access log has. A function URL has no access log, and throttles with 429. */
  function urlAlarms([service, { function: of }]: readonly [Service, WatchedFunction]): readonly Alarm[] {
    const serverErrors = new Metric({
      namespace: 'AWS/Lambda',
      metricName: 'Url5xxCount',
      dimensionsMap: { FunctionName: of.functionName },
      statistic: 'Sum',
      period,
    });
    const busy = `for a quarter of an hour all ${service} functions were busy and calls turned away`;
    const failing = `for a quarter of an hour callers of the URL of ${service} got 5xx`;
    return [
      alarmOn('throttles', busy, of.metricThrottles({ period }), 'lasting', service),
      alarmOn('front-door-errors', failing, serverErrors, 'lasting', service),
    ];
  }

  return [
    ...logAlarms.flatMap((name) => {
      if (name === 'retirement' && !hasSchedule(cluster)) return [];
      const [threshold, meaning] = logAlarmsMean[name];
      const counted = troubles.filter((trouble) => named(trouble).alarm === name);
      const metric = new Metric({
        namespace,
        metricName: metricNames[name],
        statistic: 'Sum',
        // Twice the interval of the schedule, so that each period has a run.
        period: threshold === 'hour' ? Duration.millis(2 * scheduleInterval) : period,
      });
      // The field `trouble` of the log lines has one of these names, and so has a section of the runbook.
      return alarmOn(name, `${meaning}. The log says which: ${counted.join(', ')}`, metric, threshold);
    }),
    // Lambda's own metrics cost nothing. A crash leaves no log line of the function.
    ...[...functions].map(([service, { function: of }]) =>
      alarmOn(
        'errors',
        `the ${service} function crashed or did not end in time`,
        of.metricErrors({ period }),
        'first',
        service,
      ),
    ),
    ...(functionUrls ? [...functions].filter(([service]) => service === 'sign' || service === 'attest') : []).flatMap(
      urlAlarms,
    ),
    caDaysLeftAlarm(),
  ];

  function caDaysLeftAlarm(): Alarm {
    const alarm = addAlarm(
      'ca-days-left',
      undefined,
      `a CA ends in less than ${alarms.caDaysLeft} days; or, with INSUFFICIENT_DATA, the CAs have not been looked at for a day`,
      {
        metric: new Metric({ namespace, metricName: caDaysLeft, statistic: 'Minimum', period: caStatusInterval }),
        threshold: alarms.caDaysLeft,
        comparisonOperator: ComparisonOperator.LESS_THAN_THRESHOLD,
        evaluationPeriods: 4,
        datapointsToAlarm: 4,
        // A new alarm begins with INSUFFICIENT_DATA, and an action runs only when the state changes. So a first deployment
        // notifies of nothing, and a ca function that stops running is reported.
        treatMissingData: TreatMissingData.MISSING,
      },
    );
    alarm.addInsufficientDataAction(...topics);
    return alarm;
  }
}
