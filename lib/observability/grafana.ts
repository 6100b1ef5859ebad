/**
 * The Grafana dashboard. One file serves all clusters: names are variables, which the viewer chooses. Each panel is there once
 * for CloudWatch and once for Prometheus, where it has data.
 * https://grafana.com/docs/grafana/latest/dashboards/build-dashboards/view-dashboard-json-model/
 */
import { functionName } from '../../core/configuration/resolve/deployment.ts';
import { panels } from './panels.ts';
import type { CloudWatchSeries, Panel, RelaySeries } from './panels.ts';

const services = ['sign', 'attest', 'authorizer', 'ca', 'kubeadm'] as const;
const cloudWatch = { type: 'cloudwatch', uid: '${cloudwatch}' };
const prometheus = { type: 'prometheus', uid: '${prometheus}' };
const units = { count: 'short', seconds: 's', milliseconds: 'ms', days: 'd' } as const;
const [width, height] = [12, 8];

/** The file, as text. */
export function grafanaDashboard(): string {
  const list = panels({
    cluster: '$cluster',
    functions: new Map(services.map((service) => [service, functionName('$cluster', service)])),
    apis: new Map([['API', '$api']]),
    tables: { certificates: '$certificates', attestations: '$attestations' },
    functionUrls: true,
    retires: true,
  });
  const shown = list.flatMap((panel) => [...functionsPanel(panel), ...relayPanel(panel)]);
  const dashboard = {
    title: 'Countersign',
    uid: 'countersign',
    tags: ['countersign'],
    schemaVersion: 39,
    editable: true,
    graphTooltip: 1,
    refresh: '1m',
    time: { from: 'now-24h', to: 'now' },
    timezone: 'browser',
    annotations: { list: [] },
    templating: { list: variables },
    panels: shown.map((panel, index) => ({
      id: index + 1,
      gridPos: { x: (index % 2) * width, y: Math.floor(index / 2) * height, w: width, h: height },
      ...panel,
    })),
  };
  return `${JSON.stringify(dashboard, undefined, 2)}\n`;
}

function functionsPanel({ title, cloudWatch: series, cloudWatchUnit = 'count', periodMinutes = 5 }: Panel): object[] {
  if (series === undefined) return [];
  const targets = series.map((each, index) => cloudWatchTarget(each, index, periodMinutes * 60));
  return [graph(`${title} (AWS)`, cloudWatch, cloudWatchUnit, targets)];
}

function relayPanel({ title, relay: series, relayUnit = 'count' }: Panel): object[] {
  return series === undefined ? [] : [graph(`${title} (relay)`, prometheus, relayUnit, series.map(prometheusTarget))];
}

function graph(title: string, datasource: object, unit: keyof typeof units, targets: readonly object[]): object {
  return {
    type: 'timeseries',
    title,
    datasource,
    fieldConfig: { defaults: { unit: units[unit], min: 0 }, overrides: [] },
    options: { legend: { displayMode: 'list', placement: 'bottom' }, tooltip: { mode: 'multi' } },
    targets,
  };
}

function refId(index: number): string {
  return String.fromCharCode('A'.charCodeAt(0) + index);
}

function cloudWatchTarget(series: CloudWatchSeries, index: number, seconds: number): object {
  const { namespace, metric, dimensions, statistic, label } = series;
  return {
    refId: refId(index),
    datasource: cloudWatch,
    queryMode: 'Metrics',
    metricQueryType: 0,
    metricEditorMode: 0,
    region: '$region',
    namespace,
    metricName: metric,
    dimensions: Object.fromEntries(Object.entries(dimensions).map(([name, value]) => [name, [value]])),
    matchExact: true,
    statistic,
    period: String(seconds),
    label,
  };
}

function prometheusTarget({ expression, label }: RelaySeries, index: number): object {
  return { refId: refId(index), datasource: prometheus, expr: expression, legendFormat: label, range: true };
}

const dataSource = (name: string, label: string) => ({ name, label, type: 'datasource', query: name, refresh: 1 });
const text = (name: string, label: string, value: string) => ({ name, label, type: 'textbox', query: value });
const dimension = (name: string, label: string, namespace: string, metricName: string, dimensionKey: string) => ({
  name,
  label,
  type: 'query',
  datasource: cloudWatch,
  query: {
    queryType: 'dimensionValues',
    region: '$region',
    namespace,
    metricName,
    dimensionKey,
    dimensionFilters: {},
    refId: name,
  },
  refresh: 1,
  sort: 1,
});

/** CloudFormation chooses the IDs of APIs and the names of tables. */
const variables = [
  dataSource('prometheus', 'Prometheus'),
  dataSource('cloudwatch', 'CloudWatch'),
  text('region', 'Region', 'default'),
  text('cluster', 'Cluster', 'prod'),
  dimension('api', 'HTTP API', 'AWS/ApiGateway', 'Latency', 'ApiId'),
  dimension('certificates', 'Certificates table', 'AWS/DynamoDB', 'SuccessfulRequestLatency', 'TableName'),
  dimension('attestations', 'Attestations table', 'AWS/DynamoDB', 'SuccessfulRequestLatency', 'TableName'),
];
