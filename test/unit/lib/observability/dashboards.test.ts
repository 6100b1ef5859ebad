/** Both dashboards show metrics that exist: those that the functions, AWS and the relay publish under these names. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { logEntry } from '../../../../adapters/lambda/log.ts';
import { signAnswer } from '../../../../adapters/lambda/answers.ts';
import { refusalCodes } from '../../../../core/outcome/outcome.ts';
import { named, troubles } from '../../../../core/outcome/trouble.ts';
import { grafanaDashboard } from '../../../../lib/observability/grafana.ts';
import { createRelayMetrics } from '../../../../lambdas/watch-relay/observe/metrics.ts';
import { causes } from '../../../../lambdas/watch-relay/request/result.ts';
import { clusters } from '../clusters.ts';
import { ofType, plain, root, synthesise, template } from '../synthesis.ts';

const stacks = ['api', 'url', 'tokens', 'proof', 'first'];
const synthesis = synthesise(clusters.replaceAll(/^ {4}access:/gm, '    dashboard: true\n    access:'));

type Series = readonly [namespace: string, metric: string, dimensions: Readonly<Record<string, string>>];

/**
 * What AWS publishes, by namespace: each metric with its dimensions.
 * https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html
 * https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-metrics.html
 * https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/metrics-dimensions.html
 */
const publishedByAws: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  'AWS/Lambda': Object.fromEntries(
    ['Invocations', 'Errors', 'Throttles', 'Duration', 'UrlRequestLatency'].map((name) => [name, ['FunctionName']]),
  ),
  'AWS/ApiGateway': Object.fromEntries(['4xx', '5xx', 'Latency'].map((name) => [name, ['ApiId']])),
  'AWS/DynamoDB': {
    SuccessfulRequestLatency: ['TableName', 'Operation'],
    ReadThrottleEvents: ['TableName'],
    WriteThrottleEvents: ['TableName'],
  },
};

/** The names that the functions of the stack publish: by the filters of their logs. */
function ownMetrics(stack: string): Set<string> {
  const filters = ofType(template(synthesis, `countersign-${stack}`), 'AWS::Logs::MetricFilter');
  return new Set(
    filters.map(
      ([, { Properties }]) => (Properties['MetricTransformations'] as { MetricName: string }[])[0]!.MetricName,
    ),
  );
}

interface Widget {
  readonly type: string;
  readonly properties: {
    readonly title: string;
    readonly metrics?: readonly (readonly unknown[])[];
    readonly query?: string;
    readonly alarms?: readonly string[];
  };
}
function widgetsOf(stack: string): readonly Widget[] {
  const [[, dashboard] = [], ...others] = ofType(
    template(synthesis, `countersign-${stack}`),
    'AWS::CloudWatch::Dashboard',
  );
  expect(others).toEqual([]);
  const { DashboardBody: body, DashboardName: name } = plain(dashboard?.Properties, synthesis) as Record<
    string,
    unknown
  >;
  expect(name).toBe(`countersign-${stack}`);
  return (JSON.parse(String(body)) as { readonly widgets: readonly Widget[] }).widgets;
}

/** A metric of a widget: namespace, name, then names and values of dimensions, then options. */
function seriesOf({ properties: { metrics = [] } }: Widget): readonly Series[] {
  return metrics.map((metric) => {
    const texts = metric.filter((part) => typeof part === 'string');
    const dimensions = texts
      .slice(2)
      .flatMap((name, index, all) => (index % 2 === 0 ? [[name, all[index + 1]!] as const] : []));
    return [texts[0]!, texts[1]!, Object.fromEntries(dimensions)];
  });
}

describe.each(stacks)('the CloudWatch dashboard of %s', (stack) => {
  const widgets = widgetsOf(stack);

  test('shows metrics that exist, of the resources of this cluster', () => {
    const own = ownMetrics(stack);
    const all = widgets.flatMap(seriesOf);
    const texts = new Set<string>();
    for (const [namespace, metric, dimensions] of all) {
      texts.add(`${namespace} ${metric}`);
      if (namespace === `Countersign/${stack}`) {
        expect([metric, own.has(metric), dimensions]).toEqual([metric, true, {}]);
        continue;
      }
      expect([metric, Object.keys(dimensions).sort()]).toEqual([
        metric,
        [...(publishedByAws[namespace]?.[metric] ?? [])].sort(),
      ]);
      const { FunctionName, ApiId, TableName } = dimensions;
      const resource = FunctionName ?? ApiId ?? TableName ?? '';
      if (TableName !== undefined) expect(resource).toMatch(/(Certificates|Attestations)/);
      else
        expect(Object.keys(template(synthesis, `countersign-${stack}`).Resources).join(' ')).toContain(
          resource.replaceAll(/[<>]/g, ''),
        );
    }
    // Everything that the functions publish is shown.
    for (const metric of own) expect([...texts]).toContain(`Countersign/${stack} ${metric}`);
    // With more a dashboard costs more than three dollars: https://aws.amazon.com/cloudwatch/pricing/
    expect(all.length).toBeLessThanOrEqual(50);
  });

  test('shows each alarm', () => {
    const shown = widgets.find(({ type }) => type === 'alarm');
    expect(shown?.properties.alarms).toHaveLength(
      ofType(template(synthesis, `countersign-${stack}`), 'AWS::CloudWatch::Alarm').length,
    );
  });

  test('asks the logs for fields that the functions write', () => {
    const written = logEntry(signAnswer({ kind: 'issued', certificatePem: 'x', serial: '1', repeat: false }, {}), 5, {
      outcome: 'issued',
      signerName: 's',
    });
    const fields = { ...written, ...named('internal') };
    const queries = widgets.flatMap(({ properties: { query } }) => query ?? []);
    expect(queries).toHaveLength(3);
    for (const query of queries) {
      const names = query
        .replaceAll(/SOURCE '[^']*'/g, '')
        .replaceAll(/"[^"]*"|\/[^/]*\//g, '')
        .match(/[A-Za-z]+/g)!;
      const words = 'filter stats count as issued times last by bin h like max timestamp sort desc ispresent'.split(
        ' ',
      );
      for (const name of names) if (!words.includes(name)) expect(Object.keys(fields)).toContain(name);
      // The log groups are those of this stack's functions.
      const groups = [...query.matchAll(/SOURCE '<(\w+)>'/g)].map(([, group]) => group);
      expect(groups.length).toBeGreaterThan(0);
      for (const group of groups) expect(group).toMatch(/^(Sign|Attest|Authorizer|Ca)Log$/);
    }
    expect(queries.filter((query) => query.includes('/^refused-/'))).toHaveLength(1);
    expect(troubles.filter((trouble) => trouble.startsWith('refused-'))).toHaveLength(refusalCodes.length);
  });
});

describe('the Grafana dashboard', () => {
  interface Target {
    readonly expr?: string;
    readonly namespace?: string;
    readonly metricName?: string;
    readonly dimensions?: Readonly<Record<string, readonly string[]>>;
  }
  const text = grafanaDashboard();
  const dashboard = JSON.parse(text) as {
    readonly panels: readonly {
      readonly title: string;
      readonly gridPos: Record<string, number>;
      readonly targets: readonly Target[];
    }[];
    readonly templating: { readonly list: readonly { readonly name: string }[] };
  };
  const targets = dashboard.panels.flatMap((panel) => panel.targets);

  test('is the file in deploy/grafana; npm run grafana writes it', () => {
    expect(readFileSync(join(root, 'deploy/grafana/countersign.json'), 'utf8')).toBe(text);
  });

  test('asks Prometheus for metrics and labels that the relay has', async () => {
    const { registry } = createRelayMetrics();
    const metrics = new Map((await registry.getMetricsAsJSON()).map((metric) => [metric.name, String(metric.type)]));
    const labelsOf = (name: string): readonly string[] =>
      (registry.getSingleMetric(name) as unknown as { readonly labelNames: readonly string[] }).labelNames;
    const expressions = targets.flatMap(({ expr }) => expr ?? []);
    expect(expressions.length).toBeGreaterThan(10);
    for (const expression of expressions) {
      const [, name = '', bucket, , labels = ''] =
        /(countersign_relay_\w+?)(_bucket)?(\{(.*?)\})?(?=[[)])/.exec(expression) ?? [];
      expect([expression, metrics.get(name)]).toEqual([
        expression,
        bucket === undefined ? expect.stringMatching(/^(counter|gauge)$/) : 'histogram',
      ]);
      // A counter only rises: its increase is shown. A gauge is shown as it is.
      expect([expression, metrics.get(name) === 'gauge']).toEqual([expression, !/(increase|rate)\(/.test(expression)]);
      const grouped = /by \(([^)]*)\)/.exec(expression)?.[1]?.split(', ') ?? [];
      const matched = [...labels.matchAll(/(\w+)=~?"([^"]*)"/g)];
      for (const label of [...grouped, ...matched.map(([, label]) => label!)])
        expect([expression, label === 'le' ? bucket !== undefined : labelsOf(name).includes(label)]).toEqual([
          expression,
          true,
        ]);
      for (const [, label, values = ''] of matched)
        for (const value of values.split('|'))
          expect([value, label === 'cause' ? value in causes : documented(name, label!, value)]).toEqual([value, true]);
    }
    // One registry of each relay, and every alarm-worthy cause is in it.
    expect(expressions.join(' ')).toContain('countersign_relay_alarms_total');
  });

  /** The values of the labels are in the table of docs/watch-relay.md. */
  function documented(metric: string, label: string, value: string): boolean {
    const page = readFileSync(join(root, 'docs/watch-relay.md'), 'utf8');
    const row =
      page.split('\n').find((line) => line.startsWith(`| \`${metric.replace('countersign_relay_', '')}{`)) ?? '';
    return row.includes(label) && new RegExp(`\\b${value}\\b`).test(row);
  }

  test('asks CloudWatch for metrics that exist, by names that functions have', () => {
    const own = new Set(stacks.flatMap((stack) => [...ownMetrics(stack)]));
    const variables = dashboard.templating.list.map(({ name }) => `$${name}`);
    for (const { namespace, metricName = '', dimensions = {} } of targets) {
      if (namespace === undefined) continue;
      if (namespace === 'Countersign/$cluster') {
        expect([metricName, own.has(metricName)]).toEqual([metricName, true]);
        continue;
      }
      expect([metricName, Object.keys(dimensions).sort()]).toEqual([
        metricName,
        [...(publishedByAws[namespace]?.[metricName] ?? [])].sort(),
      ]);
      for (const [name, values] of Object.entries(dimensions))
        for (const value of values)
          if (name === 'FunctionName')
            expect(value).toMatch(/^countersign-\$cluster-(sign|attest|authorizer|ca|kubeadm)$/);
          else if (name !== 'Operation') expect(variables).toContain(value);
    }
    expect(text.match(/\$\{?\w+/g)!.every((used) => variables.includes(used.replace('{', '')))).toBe(true);
  });

  test('has no two panels in one place', () => {
    const places = dashboard.panels.map(({ gridPos: { x, y } }) => `${x} ${y}`);
    expect(new Set(places).size).toBe(places.length);
    expect(new Set(dashboard.panels.map(({ title }) => title)).size).toBe(places.length);
  });
});
