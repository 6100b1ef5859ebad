import { DescribeAlarmsCommand, GetMetricStatisticsCommand } from '@aws-sdk/client-cloudwatch';
import type { Datapoint } from '@aws-sdk/client-cloudwatch';
import { caDaysLeft, metricNames, namespaceOf } from '../../lib/observability/metric-names.ts';
import { callerOf, endpointOf, post, serving, signed, withDoor } from '../world/call.ts';
import type { Site, Step } from '../world/step.ts';
import { eventually } from '../world/wait.ts';

const alarm = 'unexpected-refusals';
const hour = 3_600_000;

/** Its rights are those of the step `deploy`. */
export const alarms: Step = {
  id: 'alarms',
  title: 'A refusal raises its alarm',
  minute: 18,
  shows: 'a line of the log becomes a metric, and the metric an alarm; the days that the CAs have left are a metric',
  needs: ['deploy'],
  statements: () => [],
  async run(site) {
    const { plan, aws } = site;
    await site.check(
      'a request is refused that no correct client sends: another content under the UID of an issued one',
      async () => {
        const one = serving(site);
        await signed(site, plan.api, one);
        const another = serving(site).object;
        const body = { ...another, metadata: { ...another.metadata, uid: one.object.metadata.uid } };
        const url = `${endpointOf(site, plan.api, 'SignUrl')}/sign`;
        const answer = await withDoor(site, await callerOf(site, plan.api), (fetch) => post(fetch, url, body));
        if (answer.outcome !== 'refused' || !answer.text.includes('UidReused'))
          throw new Error(`${answer.outcome ?? answer.status} ${answer.text.slice(0, 300)}`);
        return 'UidReused';
      },
      'http-api',
    );
    await site.check(
      `its metric ${metricNames[alarm]} counts it`,
      async () => {
        const points = await metric(site, metricNames[alarm], 'Sum');
        return `${points.reduce((sum, { Sum: count = 0 }) => sum + count, 0)} in the last hour`;
      },
      'log-metrics',
    );
    await site.check(
      `its alarm ${alarm} is raised`,
      async () => {
        const name = `countersign-${plan.api}-${alarm}`;
        const raised = await eventually(site, 10, async () => {
          const { MetricAlarms: [found] = [] } = await aws.cloudwatch.send(
            new DescribeAlarmsCommand({ AlarmNames: [name] }),
          );
          return found?.StateValue === 'ALARM' ? found : undefined;
        });
        if (raised === undefined) throw new Error(`${name} is not in state ALARM after ten minutes`);
        return raised.StateReason ?? 'in state ALARM';
      },
      'alarms',
    );
    for (const cluster of [plan.api, plan.url])
      await site.check(
        `the metric ${caDaysLeft} of ${cluster} is there`,
        async () => {
          const points = await metric(site, caDaysLeft, 'Minimum', cluster);
          return `${Math.min(...points.map(({ Minimum: days = Infinity }) => days))} days`;
        },
        'log-metrics',
      );
  },
};

async function metric(
  { aws, plan, ...site }: Site,
  MetricName: string,
  statistic: 'Sum' | 'Minimum',
  cluster = plan.api,
): Promise<readonly Datapoint[]> {
  const found = await eventually(site, 10, async () => {
    const { Datapoints: points = [] } = await aws.cloudwatch.send(
      new GetMetricStatisticsCommand({
        Namespace: namespaceOf(cluster),
        MetricName,
        Statistics: [statistic],
        Period: 60,
        StartTime: new Date(Date.now() - hour),
        EndTime: new Date(),
      }),
    );
    return points.length === 0 ? undefined : points;
  });
  if (found === undefined) throw new Error('it has no data after ten minutes');
  return found;
}
