/** The CloudWatch dashboard of a cluster: its alarms, and the panels that have data in CloudWatch. */
import { Duration } from 'aws-cdk-lib';
import {
  AlarmStatusWidget,
  Dashboard,
  GraphWidget,
  LogQueryVisualizationType,
  LogQueryWidget,
  Metric,
} from 'aws-cdk-lib/aws-cloudwatch';
import type { Alarm, IWidget } from 'aws-cdk-lib/aws-cloudwatch';
import type { Construct } from 'constructs';
import type { Watched } from './log-metrics.ts';
import { panels } from './panels.ts';
import type { Names, Panel } from './panels.ts';

export interface DashboardOptions extends Watched {
  readonly cluster: string;
  readonly alarms: readonly Alarm[];
  readonly tables: Names['tables'];
  readonly retires: boolean;
}

const [width, height] = [12, 6];

export function createDashboard(scope: Construct, options: DashboardOptions): Dashboard {
  const { cluster, alarms, tables, functions, apis, functionUrls, retires } = options;
  const list = panels({
    cluster,
    functions: new Map([...functions].map(([service, { function: of }]) => [service, of.functionName])),
    apis: new Map([...apis].map(([name, { api }]) => [name, api.apiId])),
    tables,
    functionUrls,
    retires,
  });
  const widgets = list.flatMap((panel) => widgetsOf(panel, options));
  // Rows of two: CDK puts the widgets of one list beside each other.
  const rows = widgets.flatMap((_, index) => (index % 2 === 0 ? [widgets.slice(index, index + 2)] : []));
  return new Dashboard(scope, 'Dashboard', {
    dashboardName: `countersign-${cluster}`,
    defaultInterval: Duration.days(1),
    widgets: [
      [new AlarmStatusWidget({ title: `Alarms of ${cluster}`, alarms: [...alarms], width: 2 * width })],
      ...rows,
    ],
  });
}

const visualizations = { bar: LogQueryVisualizationType.BAR, table: LogQueryVisualizationType.TABLE };

function widgetsOf(panel: Panel, { functions }: Pick<Watched, 'functions'>): readonly IWidget[] {
  const { title, cloudWatch, cloudWatchUnit, periodMinutes = 5, logs } = panel;
  const period = Duration.minutes(periodMinutes);
  const groups = (logs?.of ?? []).flatMap((service) => functions.get(service)?.logGroup.logGroupName ?? []);
  return [
    ...(cloudWatch === undefined
      ? []
      : [
          new GraphWidget({
            title,
            width,
            height,
            left: cloudWatch.map(
              ({ namespace, metric, dimensions, statistic, label }) =>
                new Metric({ namespace, metricName: metric, dimensionsMap: dimensions, statistic, label, period }),
            ),
            leftYAxis: { min: 0, ...(cloudWatchUnit === undefined ? {} : { label: cloudWatchUnit }), showUnits: false },
          }),
        ]),
    ...(logs === undefined
      ? []
      : [
          new LogQueryWidget({
            title,
            width,
            height,
            logGroupNames: groups,
            queryLines: [...logs.lines],
            view: visualizations[logs.view],
          }),
        ]),
  ];
}
