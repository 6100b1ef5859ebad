/**
 * What the dashboards show of a cluster. The CloudWatch dashboard and the Grafana dashboard are made from this one list:
 * CloudWatch has the metrics of the functions and of what they call, Prometheus those of the relay.
 */
import type { functionName } from '../../core/configuration/resolve/deployment.ts';
import { logAlarms } from '../../core/outcome/trouble.ts';
import { caDaysLeft, metricNames, namespaceOf, retiredMachines, wouldRefuse } from './metric-names.ts';

type Service = Parameters<typeof functionName>[1];

/** The names by which CloudWatch knows the parts of a cluster. Keys are the words of the legends. */
export interface Names {
  readonly cluster: string;
  readonly functions: ReadonlyMap<Service, string>;
  /** IDs of the HTTP APIs. */
  readonly apis: ReadonlyMap<string, string>;
  readonly tables: { readonly certificates: string; readonly attestations: string };
  readonly functionUrls: boolean;
  /** Whether attest looks for terminated machines. */
  readonly retires: boolean;
}

export interface CloudWatchSeries {
  readonly namespace: string;
  readonly metric: string;
  readonly dimensions: Readonly<Record<string, string>>;
  readonly statistic: 'Sum' | 'Average' | 'Minimum' | 'p50' | 'p99';
  readonly label: string;
}

/** A PromQL expression over the metrics of the relay. */
export interface RelaySeries {
  readonly expression: string;
  readonly label: string;
}

/** A query of CloudWatch Logs Insights. */
export interface LogQuery {
  readonly of: readonly Service[];
  readonly view: 'bar' | 'table';
  readonly lines: readonly string[];
}

export interface Panel {
  readonly title: string;
  readonly cloudWatch?: readonly CloudWatchSeries[];
  readonly cloudWatchUnit?: 'count' | 'milliseconds' | 'days';
  readonly periodMinutes?: number;
  readonly logs?: LogQuery;
  readonly relay?: readonly RelaySeries[];
  readonly relayUnit?: 'count' | 'seconds';
}

export function panels(names: Names): readonly Panel[] {
  const { cluster, functions, apis, tables, functionUrls, retires } = names;
  const lambda = (metric: string, statistic: CloudWatchSeries['statistic'], services: readonly Service[]) =>
    services.flatMap((service): CloudWatchSeries[] => {
      const name = functions.get(service);
      const dimensions = { FunctionName: name ?? '' };
      const label = `${service} ${statistic === 'Sum' ? metric : statistic}`;
      return name === undefined ? [] : [{ namespace: 'AWS/Lambda', metric, dimensions, statistic, label }];
    });
  const api = (metric: string, statistic: CloudWatchSeries['statistic']) =>
    [...apis].map(([name, ApiId]): CloudWatchSeries => {
      const label = `${name} ${statistic === 'Sum' ? metric : statistic}`;
      return { namespace: 'AWS/ApiGateway', metric, dimensions: { ApiId }, statistic, label };
    });
  const table = (
    name: keyof Names['tables'],
    metric: string,
    statistic: CloudWatchSeries['statistic'],
    more: Readonly<Record<string, string>> = {},
  ): CloudWatchSeries => ({
    namespace: 'AWS/DynamoDB',
    metric,
    dimensions: { TableName: tables[name], ...more },
    statistic,
    label: `${name} ${Object.values(more)[0] ?? metric}`,
  });
  const operations = (name: keyof Names['tables'], ...list: readonly string[]) =>
    list.map((Operation) => table(name, 'SuccessfulRequestLatency', 'Average', { Operation }));
  const own = (metric: string, statistic: CloudWatchSeries['statistic']): CloudWatchSeries => ({
    namespace: namespaceOf(cluster),
    metric,
    dimensions: {},
    statistic,
    label: metric,
  });

  const serving = ['sign', 'attest', 'authorizer'] as const;
  const everything = [...serving, 'ca', 'kubeadm'] as const;
  const attests = functions.has('attest');
  return [
    {
      title: 'Certificates issued',
      logs: { of: ['sign'], view: 'bar', lines: ['filter outcome = "issued"', 'stats count(*) as issued by bin(1h)'] },
      relay: [
        relay('sum by (signer) (increase(countersign_relay_requests_total{outcome="issued"}[5m]))', '{{signer}}'),
      ],
    },
    {
      title: 'Refused, by reason',
      logs: {
        of: ['sign', 'attest'],
        view: 'table',
        lines: [
          'filter trouble like /^refused-/',
          'stats count(*) as times, max(@timestamp) as last by trouble, signerName',
          'sort times desc',
        ],
      },
      relay: [
        relay(
          'sum by (outcome) (increase(countersign_relay_requests_total{outcome=~"refused|denied"}[5m]))',
          '{{outcome}}',
        ),
        relay('sum by (code) (increase(countersign_relay_decisions_total{decision="denied"}[5m]))', '{{code}}'),
      ],
    },
    {
      title: 'Troubles, by the alarm that counts them',
      cloudWatch: [
        ...logAlarms
          .filter((alarm) => alarm !== 'retirement' || retires)
          .map((alarm) => own(metricNames[alarm], 'Sum')),
        ...(attests ? [own(wouldRefuse, 'Sum')] : []),
      ],
      relay: [relay('sum by (cause) (increase(countersign_relay_alarms_total[5m]))', '{{cause}}')],
    },
    {
      title: 'Troubles, as the log names them',
      logs: {
        of: everything,
        view: 'table',
        lines: [
          'filter ispresent(trouble)',
          'stats count(*) as times, max(@timestamp) as last by alarm, trouble',
          'sort last desc',
        ],
      },
    },
    {
      title: 'Latency of the endpoint',
      cloudWatch: [
        ...api('Latency', 'p50'),
        ...api('Latency', 'p99'),
        ...(functionUrls ? lambda('UrlRequestLatency', 'p99', ['sign', 'attest']) : []),
      ],
      cloudWatchUnit: 'milliseconds',
      relay: [quantile(0.5, 'issue_latency_seconds'), quantile(0.99, 'issue_latency_seconds')],
      relayUnit: 'seconds',
    },
    {
      title: 'Latency by step: functions',
      cloudWatch: [...lambda('Duration', 'p50', serving), ...lambda('Duration', 'p99', serving)],
      cloudWatchUnit: 'milliseconds',
      relay: [quantile(0.99, 'sign_duration_seconds'), quantile(0.99, 'attest_duration_seconds')],
      relayUnit: 'seconds',
    },
    {
      title: 'Latency by step: tables',
      cloudWatch: [
        ...operations('certificates', 'GetItem', 'PutItem', 'UpdateItem'),
        ...operations('attestations', 'GetItem', ...(attests ? ['TransactGetItems', 'TransactWriteItems'] : [])),
      ],
      cloudWatchUnit: 'milliseconds',
    },
    {
      title: 'Throttles',
      cloudWatch: [
        ...lambda('Throttles', 'Sum', serving),
        ...(['certificates', 'attestations'] as const).flatMap((name) => [
          table(name, 'ReadThrottleEvents', 'Sum'),
          table(name, 'WriteThrottleEvents', 'Sum'),
        ]),
      ],
      relay: [
        relay(
          'sum by (cause) (increase(countersign_relay_retries_total{cause=~"EndpointBusy|ApiBusy"}[5m]))',
          '{{cause}}',
        ),
        relay('max by (step) (countersign_relay_concurrency_limit)', 'limit {{step}}'),
      ],
    },
    {
      title: 'Calls and errors',
      cloudWatch: [
        ...lambda('Invocations', 'Sum', everything),
        ...lambda('Errors', 'Sum', everything),
        ...api('4xx', 'Sum'),
        ...api('5xx', 'Sum'),
      ],
      relay: [
        relay('sum by (cause) (increase(countersign_relay_retries_total[5m]))', 'retry {{cause}}'),
        relay('sum by (verb, code) (increase(countersign_relay_api_errors_total[5m]))', 'API server {{verb}} {{code}}'),
      ],
    },
    {
      title: 'Days that the CA has left that ends first',
      cloudWatch: [own(caDaysLeft, 'Minimum')],
      cloudWatchUnit: 'days',
      periodMinutes: 360,
    },
    ...(retires ? [{ title: 'Machines retired', cloudWatch: [own(retiredMachines, 'Sum')], periodMinutes: 60 }] : []),
    {
      title: 'Oldest request to answer',
      relay: [relay('max by (priority) (countersign_relay_oldest_request_seconds)', '{{priority}}')],
      relayUnit: 'seconds',
    },
    {
      title: 'Requests in the relay',
      relay: [
        relay('sum by (priority, state) (countersign_relay_queue_depth)', '{{priority}} {{state}}'),
        relay('sum(countersign_relay_in_flight)', 'in flight'),
        relay('sum(countersign_relay_leader)', 'leaders'),
      ],
    },
  ];
}

function relay(expression: string, label: string): RelaySeries {
  return { expression, label };
}

function quantile(part: number, histogram: string): RelaySeries {
  const rate = `rate(countersign_relay_${histogram}_bucket[5m])`;
  return relay(
    `histogram_quantile(${part}, sum by (le) (${rate}))`,
    `${histogram.replace('_seconds', '')} p${part * 100}`,
  );
}
