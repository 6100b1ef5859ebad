/**
 * When somebody is called. Each alarm says in its description where docs/runbook.md tells what to do; a test holds the
 * two together.
 */
import { Duration } from 'aws-cdk-lib';
import type { Stack } from 'aws-cdk-lib';
import { Alarm, ComparisonOperator, Metric, TreatMissingData } from 'aws-cdk-lib/aws-cloudwatch';
import type { IMetric } from 'aws-cdk-lib/aws-cloudwatch';
import { SnsAction } from 'aws-cdk-lib/aws-cloudwatch-actions';
import { FilterPattern, MetricFilter } from 'aws-cdk-lib/aws-logs';
import type { LogGroup } from 'aws-cdk-lib/aws-logs';
import { Topic } from 'aws-cdk-lib/aws-sns';
import type { ClusterConfiguration } from '../core/configuration.ts';
import type { DeploymentConfiguration } from '../core/deployment.ts';
import { refusalCodes } from '../core/outcome.ts';
import type { RefusalCode } from '../core/outcome.ts';
import type { ServiceFunction } from './functions.ts';

export interface AlarmOptions {
  readonly cluster: ClusterConfiguration;
  readonly alarms: DeploymentConfiguration['alarms'];
  readonly sign: ServiceFunction;
  readonly ca: ServiceFunction;
  readonly authorizer?: ServiceFunction;
  /** Answers of 500 and above, of each way in. */
  readonly serverErrors: readonly IMetric[];
}

interface AlarmText {
  /** The heading of its section in the runbook; names the alarm too. */
  readonly name: string;
  readonly meaning: string;
}

interface Threshold {
  readonly atLeast: number;
  /** Periods of five minutes in a row; more than one for what comes and goes by itself. */
  readonly periods?: number;
}

const period = Duration.minutes(5);

/**
 * At how many of one reason in five minutes: `few` where a well-behaved client never causes one, so that the first is
 * news; otherwise the configured number, at which a policy or a client is likely to be wrong. Complete by its type.
 */
const refusalThresholds: Readonly<Record<RefusalCode, 'first' | 'many'>> = {
  SignerValidationFailure: 'many',
  RequestMalformed: 'many',
  RequestTooLarge: 'many',
  SignatureInvalid: 'first',
  KeyNotPermitted: 'many',
  UsageNotPermitted: 'many',
  SubjectNotPermitted: 'many',
  SanNotPermitted: 'many',
  NameReserved: 'first',
  RequesterNotAllowed: 'many',
  UidReused: 'first',
  IntentExpired: 'first',
};

export function createAlarms(
  stack: Stack,
  { cluster, alarms, sign, ca, authorizer, serverErrors }: AlarmOptions,
): void {
  const topics = alarms.topics.map((arn, index) => Topic.fromTopicArn(stack, `AlarmTopic${index}`, arn));
  const namespace = `Countersign/${cluster.name}`;

  const add = (
    id: string,
    { name, meaning }: AlarmText,
    alarm: Omit<ConstructorParameters<typeof Alarm>[2], 'alarmName'>,
  ) => {
    const made = new Alarm(stack, id, {
      alarmName: `countersign-${cluster.name}-${name}`,
      alarmDescription: `Cluster ${cluster.name}: ${meaning} docs/runbook.md#${name.toLowerCase()}`,
      treatMissingData: TreatMissingData.NOT_BREACHING,
      ...alarm,
    });
    for (const topic of topics) {
      made.addAlarmAction(new SnsAction(topic));
      made.addOkAction(new SnsAction(topic));
    }
  };
  const counted = (id: string, text: AlarmText, metric: IMetric, { atLeast, periods = 1 }: Threshold): void =>
    add(id, text, {
      metric,
      threshold: atLeast,
      comparisonOperator: ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
      evaluationPeriods: periods,
      datapointsToAlarm: periods,
    });
  /** Counts log lines. The functions write each as one JSON object. */
  const lines = (id: string, logGroup: LogGroup, pattern: string, name: string): IMetric => {
    new MetricFilter(stack, `${id}Filter`, {
      logGroup,
      filterPattern: FilterPattern.literal(pattern),
      metricNamespace: namespace,
      metricName: name,
      metricValue: '1',
    });
    return new Metric({ namespace, metricName: name, statistic: 'Sum', period });
  };

  const { function: signFunction, logGroup: signLog } = sign;
  counted(
    'SignErrors',
    { name: 'sign-errors', meaning: 'the sign function crashed or took longer than 25 s.' },
    signFunction.metricErrors({ period }),
    { atLeast: 1 },
  );
  counted(
    'SignThrottles',
    {
      name: 'sign-throttles',
      meaning: 'calls were turned away for a quarter of an hour: all reserved functions are busy.',
    },
    signFunction.metricThrottles({ period }),
    { atLeast: 1, periods: 3 },
  );
  counted(
    'SignInternal',
    {
      name: 'sign-internal',
      meaning: 'the sign function met a fault that does not pass by itself, and signs nothing.',
    },
    lines('SignInternal', signLog, '{ $.level = "error" }', 'Internal'),
    { atLeast: 1 },
  );
  counted(
    'SignUnavailable',
    { name: 'sign-unavailable', meaning: 'KMS or DynamoDB has not answered properly for a quarter of an hour.' },
    lines('SignUnavailable', signLog, '{ $.why = "Unavailable" }', 'Unavailable'),
    { atLeast: 1, periods: 3 },
  );
  counted(
    'SignThrottled',
    { name: 'sign-throttled', meaning: 'KMS or DynamoDB has been asking to slow down for a quarter of an hour.' },
    lines('SignThrottled', signLog, '{ $.why = "Throttled" }', 'Throttled'),
    { atLeast: 1, periods: 3 },
  );
  serverErrors.forEach((metric, index) =>
    counted(
      `FrontDoorErrors${index}`,
      {
        name: index === 0 ? 'front-door-errors' : `front-door-errors-${index + 1}`,
        meaning: 'callers have been getting 5xx for a quarter of an hour.',
      },
      metric,
      { atLeast: 1, periods: 3 },
    ),
  );
  for (const code of refusalCodes)
    counted(
      `Refused${code}`,
      { name: `refused-${code}`, meaning: `requests are refused with ${code}.` },
      // The first code is the reason of the whole refusal (core/outcome.ts).
      lines(`Refused${code}`, signLog, `{ $.outcome = "refused" && $.codes[0] = "${code}" }`, `Refused${code}`),
      { atLeast: refusalThresholds[code] === 'first' ? 1 : alarms.refusals },
    );

  if (authorizer !== undefined) {
    counted(
      'AuthorizerErrors',
      { name: 'authorizer-errors', meaning: 'the authorizer crashed or took longer than 25 s.' },
      authorizer.function.metricErrors({ period }),
      { atLeast: 1 },
    );
    counted(
      'AuthorizerThrottles',
      {
        name: 'authorizer-throttles',
        meaning: 'tokens have not been looked at for a quarter of an hour: all authorizers are busy.',
      },
      authorizer.function.metricThrottles({ period }),
      { atLeast: 1, periods: 3 },
    );
    counted(
      'AuthorizerFaults',
      { name: 'authorizer-faults', meaning: 'no token can be checked: rules or key set are unusable.' },
      lines('AuthorizerFaults', authorizer.logGroup, '{ $.level = "error" }', 'AuthorizerFaults'),
      { atLeast: 1 },
    );
    counted(
      'AuthorizerKeys',
      {
        name: 'authorizer-keys',
        meaning: 'the keys of the token issuer have been out of reach for a quarter of an hour.',
      },
      lines('AuthorizerKeys', authorizer.logGroup, '{ $.reason = "KeysUnreachable" }', 'AuthorizerKeysUnreachable'),
      { atLeast: 1, periods: 3 },
    );
  }

  counted('CaErrors', { name: 'ca-errors', meaning: 'the ca function failed.' }, ca.function.metricErrors({ period }), {
    atLeast: 1,
  });
  counted(
    'CaFaults',
    { name: 'ca-faults', meaning: 'a CA is missing, or its certificate does not belong to its key.' },
    lines('CaFaults', ca.logGroup, '{ $.level = "error" }', 'CaFaults'),
    { atLeast: 1 },
  );
  for (const name of cluster.cas.keys()) {
    const metricName = `CaDaysLeft-${name}`;
    new MetricFilter(stack, `CaDaysLeft-${name}Filter`, {
      logGroup: ca.logGroup,
      filterPattern: FilterPattern.literal(`{ $.daysLeft.${name} = * }`),
      metricNamespace: namespace,
      metricName,
      metricValue: `$.daysLeft.${name}`,
    });
    add(
      `CaDaysLeft-${name}`,
      {
        name: `ca-days-left-${name}`,
        meaning: `CA ${name} ends in less than ${alarms.caDaysLeft} days, or nobody has looked for a day.`,
      },
      {
        metric: new Metric({ namespace, metricName, statistic: 'Minimum', period: Duration.days(1) }),
        threshold: alarms.caDaysLeft,
        comparisonOperator: ComparisonOperator.LESS_THAN_THRESHOLD,
        evaluationPeriods: 1,
        // Silence is no good news here: whoever should look every few hours does not.
        treatMissingData: TreatMissingData.BREACHING,
      },
    );
  }
}
