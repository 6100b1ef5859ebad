/**
 * The CloudWatch alarms of a cluster. Each description names its section of docs/runbook.md. One test compares the two,
 * and another runs the filters over log lines that the functions write.
 */
import { Duration } from 'aws-cdk-lib';
import type { Stack } from 'aws-cdk-lib';
import { Alarm, ComparisonOperator, MathExpression, TreatMissingData } from 'aws-cdk-lib/aws-cloudwatch';
import type { AlarmProps, IMetric } from 'aws-cdk-lib/aws-cloudwatch';
import { SnsAction } from 'aws-cdk-lib/aws-cloudwatch-actions';
import { FilterPattern, MetricFilter } from 'aws-cdk-lib/aws-logs';
import type { LogGroup } from 'aws-cdk-lib/aws-logs';
import { Topic } from 'aws-cdk-lib/aws-sns';
import type { ClusterConfiguration } from '../core/configuration/model/cluster.ts';
import type { DeploymentConfiguration } from '../core/configuration/model/deployment.ts';
import { refusalCodes } from '../core/outcome/outcome.ts';
import type { BusyWhy, RefusalCode } from '../core/outcome/outcome.ts';
import type { ServiceFunction } from './functions.ts';

export interface AlarmOptions {
  readonly cluster: ClusterConfiguration;
  readonly alarms: DeploymentConfiguration['alarms'];
  readonly sign: ServiceFunction;
  readonly ca: ServiceFunction;
  readonly attest?: ServiceFunction;
  readonly authorizer?: ServiceFunction;
  /** The count of answers with status 500 and above, by front door. */
  readonly serverErrors: ReadonlyMap<string, IMetric>;
}

export const period = Duration.minutes(5);

/** How often the ca function logs the days that its CAs have left. */
export const caStatusInterval = Duration.hours(6);

/** `first`: one event alarms. `many`: the configured number of refusals alarms. `lasting`: a quarter of an hour alarms. */
type Threshold = 'first' | 'many' | 'lasting';

/**
 * Refusals within one period: `first` for a refusal that a correct client never causes. Some only occur with attestation,
 * and one only with `freshKeys`.
 */
const refusalThresholds: Readonly<
  Record<RefusalCode, readonly [threshold: 'first' | 'many', needs?: 'attestation' | 'freshKeys']>
> = {
  SignerValidationFailure: ['many'],
  RequestMalformed: ['many'],
  RequestTooLarge: ['many'],
  SignatureInvalid: ['first'],
  KeyNotPermitted: ['many'],
  UsageNotPermitted: ['many'],
  SubjectNotPermitted: ['many'],
  SanNotPermitted: ['many'],
  NameReserved: ['first'],
  RequesterNotAllowed: ['many'],
  UidReused: ['first'],
  IntentExpired: ['first'],
  Locked: ['first'],
  AttestationMissing: ['many', 'attestation'],
  AttestationInvalid: ['many', 'attestation'],
  AttestationVersion: ['many', 'attestation'],
  AttestationChallenge: ['many', 'attestation'],
  IdentityNotAllowed: ['many', 'attestation'],
  TofuReuse: ['first', 'attestation'],
  TofuNodeMismatch: ['first', 'attestation'],
  TofuNodeTaken: ['first', 'attestation'],
  Revoked: ['first', 'attestation'],
  KeyReused: ['many', 'freshKeys'],
  NameNotOwned: ['first', 'attestation'],
};

/** The codes that the functions of this cluster can refuse with. */
function codesOf({ attestation, profiles }: ClusterConfiguration): readonly RefusalCode[] {
  const has = {
    attestation: attestation !== undefined,
    freshKeys: [...profiles.values()].some((profile) => profile.freshKeys === true),
  };
  return refusalCodes.filter((code) => {
    const [, needs] = refusalThresholds[code];
    return needs === undefined || has[needs];
  });
}

/** Returns the metric filters that must exist before the ca function first logs. */
export function createAlarms(stack: Stack, options: AlarmOptions): readonly MetricFilter[] {
  const { cluster, alarms, sign, ca, attest, authorizer, serverErrors } = options;
  const namespace = `Countersign/${cluster.name}`;
  const topics = alarms.topics.map((arn, index) => new SnsAction(Topic.fromTopicArn(stack, `AlarmTopic${index}`, arn)));

  /** `section` is a heading of the runbook; `of` distinguishes the alarms that share it. */
  function addAlarm(section: string, of: string | undefined, meaning: string, props: AlarmProps): void {
    const name = of === undefined ? section : `${section}-${of}`;
    const alarm = new Alarm(stack, `Alarm-${name}`, {
      alarmName: `countersign-${cluster.name}-${name}`,
      alarmDescription: `Cluster ${cluster.name}: ${meaning}. What to do: docs/runbook.md#${section.toLowerCase()}`,
      ...props,
    });
    alarm.addAlarmAction(...topics);
    alarm.addOkAction(...topics);
  }

  function alarmOn(section: string, meaning: string, metric: IMetric, threshold: Threshold, of?: string): void {
    const periods = threshold === 'lasting' ? 3 : 1;
    addAlarm(section, of, threshold === 'lasting' ? `${meaning} for a quarter of an hour` : meaning, {
      metric,
      threshold: threshold === 'many' ? alarms.refusals : 1,
      comparisonOperator: ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
      evaluationPeriods: periods,
      datapointsToAlarm: periods,
      treatMissingData: TreatMissingData.NOT_BREACHING,
    });
  }

  /** Functions write one JSON object per line. Only CallersRefused has a dimension, since each alarm watches one number. */
  function addFilter(
    metricName: string,
    logGroup: LogGroup,
    pattern: string,
    {
      metricValue = '1',
      kind = 'Filter',
      dimensions,
    }: {
      readonly metricValue?: string;
      readonly kind?: string;
      readonly dimensions?: Readonly<Record<string, string>>;
    } = {},
  ): MetricFilter {
    return new MetricFilter(stack, `${kind}-${metricName}`, {
      logGroup,
      filterPattern: FilterPattern.literal(`{ ${pattern} }`),
      metricNamespace: namespace,
      metricName,
      metricValue,
      ...(dimensions === undefined ? {} : { dimensions }),
    });
  }
  const sumOf = (...of: Parameters<typeof addFilter>): IMetric => addFilter(...of).metric({ statistic: 'Sum', period });

  const error = '$.level = "error"';
  const failed = 'crashed or took longer than 25 s';

  /** The alarms of each function that callers wait for. `one` and `all` name it in their texts. */
  function addRunAlarms(section: string, one: string, all: string, { function: of }: ServiceFunction): void {
    alarmOn(`${section}-errors`, `${one} ${failed}`, of.metricErrors({ period }), 'first');
    const busy = `${all} have been busy and calls turned away`;
    alarmOn(`${section}-throttles`, busy, of.metricThrottles({ period }), 'lasting');
  }

  /** The alarms that sign and attest share. `depends`: the services they call; `work`: what they cannot do when they fail. */
  function addServiceAlarms(section: 'sign' | 'attest', of: ServiceFunction, depends: string, work: string): void {
    const prefix = section === 'sign' ? 'Sign' : 'Attest';
    addRunAlarms(section, `the ${section} function`, `all ${section} functions`, of);
    alarmOn(
      `${section}-internal`,
      `a fault that does not pass by itself keeps the ${section} function from ${work}`,
      sumOf(`${prefix}Internal`, of.logGroup, error),
      'first',
    );
    const why = (why: BusyWhy): IMetric => sumOf(`${prefix}${why}`, of.logGroup, `$.why = "${why}"`);
    alarmOn(`${section}-unavailable`, `${depends} has not answered properly`, why('Unavailable'), 'lasting');
    alarmOn(`${section}-throttled`, `${depends} has been asking to slow down`, why('Throttled'), 'lasting');
  }
  addServiceAlarms('sign', sign, 'KMS or DynamoDB', 'signing');
  if (attest !== undefined) addServiceAlarms('attest', attest, 'STS, EC2 or DynamoDB', 'proving machines');

  // The first code is the reason of the whole refusal (core/outcome/outcome.ts).
  for (const code of codesOf(cluster)) {
    const refusals = sumOf(`Refused${code}`, sign.logGroup, `$.outcome = "refused" && $.codes[0] = "${code}"`);
    // The relay denies by attest's verdict, so sign never sees these requests. Attest's log counts into the same metric.
    if (attest !== undefined)
      addFilter(`Refused${code}`, attest.logGroup, `$.outcome = "verdict" && $.codes[0] = "${code}"`, {
        kind: 'Verdict',
      });
    alarmOn(`refused-${code}`, `requests are refused with ${code}`, refusals, refusalThresholds[code][0]);
  }
  // A metric without an alarm: audit mode is for clusters that are known not to pass yet.
  if (attest !== undefined) addFilter('WouldRefuse', attest.logGroup, '$.wouldRefuse[0] = *');

  // One time series per caller, so that the notification names the caller as the alarm's contributor.
  // https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/multi-time-series-alarm.html
  const dimensions = { Caller: '$.callerPrincipal' };
  addFilter('CallersRefused', sign.logGroup, '$.outcome = "forbidden"', { kind: 'Sign', dimensions });
  if (attest !== undefined)
    addFilter('CallersRefused', attest.logGroup, '$.outcome = "forbidden"', { kind: 'Attest', dimensions });
  alarmOn(
    'callers-refused',
    'a caller whom IAM lets in and the cluster does not know asked for certificates; the contributor to the alarm is the caller',
    new MathExpression({
      expression: `SELECT SUM(CallersRefused) FROM SCHEMA("${namespace}", Caller) GROUP BY Caller`,
      usingMetrics: {},
      period,
    }),
    'first',
  );

  for (const [door, metric] of serverErrors)
    alarmOn('front-door-errors', `callers who come by ${door} have been getting 5xx`, metric, 'lasting', door);

  if (authorizer !== undefined) {
    const { logGroup: log } = authorizer;
    addRunAlarms('authorizer', 'the authorizer', 'all authorizers', authorizer);
    alarmOn('authorizer-faults', 'no token can be checked', sumOf('AuthorizerFaults', log, error), 'first');
    alarmOn(
      'authorizer-keys',
      'the keys of the token issuer have been out of reach',
      sumOf('AuthorizerKeys', log, '$.reason = "KeysUnreachable"'),
      'lasting',
    );
  }

  alarmOn('ca-errors', `the ca function failed, ${failed}`, ca.function.metricErrors({ period }), 'first');
  alarmOn(
    'ca-faults',
    'a CA is missing, or its certificate does not fit its key',
    sumOf('CaFaults', ca.logGroup, error),
    'first',
  );
  return [...cluster.cas.keys()].map((name) => {
    const daysLeft = addFilter(`CaDaysLeft-${name}`, ca.logGroup, `$.daysLeft.${name} = *`, {
      metricValue: `$.daysLeft.${name}`,
    });
    addAlarm(
      'ca-days-left',
      name,
      `CA ${name} ends in less than ${alarms.caDaysLeft} days, or has not been looked at for a day`,
      {
        metric: daysLeft.metric({ statistic: 'Minimum', period: caStatusInterval }),
        threshold: alarms.caDaysLeft,
        comparisonOperator: ComparisonOperator.LESS_THAN_THRESHOLD,
        evaluationPeriods: 4,
        datapointsToAlarm: 4,
        // If data is missing, the ca function does not run, and nothing watches the CA's end.
        treatMissingData: TreatMissingData.BREACHING,
      },
    );
    return daysLeft;
  });
}
