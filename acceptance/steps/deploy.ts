import { DescribeAlarmsCommand } from '@aws-sdk/client-cloudwatch';
import { InvokeCommand } from '@aws-sdk/client-lambda';
import { functionName } from '../../core/configuration/resolve/deployment.ts';
import { createStack } from '../resources/stacks.ts';
import { alarmsIn, publishAssets, synthesise } from '../resources/synthesis.ts';
import { named } from '../world/names.ts';
import type { Place } from '../world/names.ts';
import type { Step } from '../world/step.ts';

const formationRole = ({ partition, account }: Place): string =>
  `arn:${partition}:iam::${account}:role/cdk-hnb659fds-cfn-exec-role-*`;

export const deploy: Step = {
  id: 'deploy',
  title: 'Two clusters',
  minute: 1,
  shows: 'a first deployment: order of the stacks, custom resource, propagation of new roles; no alarm is raised by it',
  needs: ['preflight'],
  statements: (place) => [
    {
      sid: 'PublishAssets',
      actions: ['s3:PutObject', 's3:GetObject', 's3:DeleteObject'],
      resources: [`arn:${place.partition}:s3:::cdk-hnb659fds-assets-${place.account}-*/accept-*`],
    },
    {
      sid: 'MakeStacks',
      actions: [
        'cloudformation:CreateStack',
        'cloudformation:DescribeStackEvents',
        'cloudformation:DescribeStackResources',
        'cloudformation:UpdateTerminationProtection',
        'cloudformation:DeleteStack',
      ],
      resources: named('cloudformation', place, 'stack/').map((arn) => `${arn}/*`),
    },
    { sid: 'ByTheRoleOfCdk', actions: ['iam:PassRole'], resources: [formationRole(place)] },
    {
      sid: 'RemoveTables',
      actions: ['dynamodb:UpdateTable', 'dynamodb:DescribeTable', 'dynamodb:DeleteTable'],
      resources: named('dynamodb', place, 'table/'),
    },
    {
      sid: 'RemoveLogs',
      actions: ['logs:DeleteLogGroup'],
      resources: [
        ...named('logs', place, 'log-group:'),
        ...named('logs', place, 'log-group:/aws/vendedlogs/countersign/').slice(0, 1),
        ...named('logs', place, 'log-group:/aws/lambda/').slice(0, 1),
      ],
    },
    {
      sid: 'AskForCas',
      actions: ['lambda:InvokeFunction'],
      resources: named('lambda', place, 'function:').slice(1),
    },
    {
      sid: 'LookAtAlarms',
      actions: ['cloudwatch:DescribeAlarms', 'cloudwatch:GetMetricStatistics'],
      resources: ['*'],
    },
  ],
  async run(site) {
    const assembly = synthesise(site, site.plan.configuration);
    await site.check('the code of the functions is published', async () => {
      await publishAssets(site, assembly);
      return `${assembly.assets.size} files`;
    });
    for (const stack of assembly.stacks)
      await site.check(`stack ${stack.name} is made`, async () => {
        const begin = Date.now();
        const outputs = await createStack(site, stack);
        if (!stack.name.endsWith('-state')) site.outputs.set(stack.cluster, outputs);
        return `in ${Math.round((Date.now() - begin) / 1_000)} s`;
      });
    for (const cluster of site.plan.configuration.clusters.keys())
      await site.check(`cluster ${cluster} has its CA, made by the custom resource`, async () => {
        const { Payload: payload, FunctionError: error } = await site.aws.lambda.send(
          new InvokeCommand({
            FunctionName: functionName(cluster, 'ca'),
            Payload: Buffer.from(JSON.stringify({ action: 'show', ca: 'ca' })),
          }),
        );
        const text = Buffer.from(payload ?? []).toString('utf8');
        const { cas } = JSON.parse(text) as { cas?: readonly { ok?: boolean }[] };
        if (error !== undefined || cas?.[0]?.ok !== true) throw new Error(text.slice(0, 300));
        return 'ca show answers with its certificate';
      });
    const expected = assembly.stacks.flatMap(alarmsIn);
    const states = new Map<string, string>();
    await site.check('every alarm of the stacks exists', async () => {
      const { MetricAlarms: alarms = [] } = await site.aws.cloudwatch.send(
        new DescribeAlarmsCommand({ AlarmNamePrefix: `countersign-${site.name}-`, MaxRecords: 100 }),
      );
      for (const { AlarmName: name = '', StateValue: state = '' } of alarms) states.set(name, state);
      const missing = expected.filter((name) => !states.has(name));
      if (missing.length > 0 || expected.length === 0) throw new Error(`missing: ${missing.join(', ')}`);
      return `${expected.length} alarms`;
    });
    await site.check(
      'no alarm is in state ALARM',
      async () => {
        const raised = [...states].flatMap(([name, state]) => (state === 'ALARM' ? [name] : []));
        if (raised.length > 0 || states.size === 0) throw new Error(raised.join(', '));
        const counts = Map.groupBy(states.values(), (state) => state);
        return [...counts].map(([state, { length }]) => `${length} ${state}`).join(', ');
      },
      'alarm-states',
    );
  },
};
