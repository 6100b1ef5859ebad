import { DescribeTableCommand, GetItemCommand, RestoreTableToPointInTimeCommand } from '@aws-sdk/client-dynamodb';
import { certificatesTable, itemKey } from '../../adapters/dynamodb/table.ts';
import { removeResource } from '../resources/retained.ts';
import { named } from '../world/names.ts';
import type { Step } from '../world/step.ts';
import { eventually } from '../world/wait.ts';

export const restore: Step = {
  id: 'restore',
  title: 'A table of an earlier time',
  minute: 39,
  shows: 'the ledger is restored into a table with another name, with the same CA and the same indexes',
  extra: 'restore',
  needs: ['deploy'],
  statements: (place) => [
    {
      sid: 'RestoreTable',
      // https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/backuprestore_IAM.html
      actions: ['dynamodb:RestoreTableToPointInTime'],
      resources: named('dynamodb', place, 'table/'),
    },
    {
      sid: 'FillRestoredTable',
      actions: [
        'dynamodb:Scan',
        'dynamodb:Query',
        'dynamodb:GetItem',
        'dynamodb:PutItem',
        'dynamodb:UpdateItem',
        'dynamodb:DeleteItem',
        'dynamodb:BatchWriteItem',
      ],
      resources: named('dynamodb', place, 'table/').slice(0, 1),
    },
  ],
  async run(site) {
    const { aws, name, plan, outputs, undo } = site;
    const SourceTableName = outputs.get(plan.api)?.['CertificatesTable'];
    const TargetTableName = `${name}-restored`;
    const Key = { [certificatesTable.partitionKey]: { S: itemKey('ca', 'ca') } };
    const caIn = async (TableName: string | undefined) => {
      const { Item: item } = await aws.dynamodb.send(new GetItemCommand({ TableName, Key, ConsistentRead: true }));
      if (item === undefined) throw new Error(`${TableName ?? 'the table'} has no CA`);
      return JSON.stringify(item);
    };
    undo.register({
      what: `table ${TargetTableName}`,
      command: `aws dynamodb delete-table --table-name ${TargetTableName}`,
      undo: () => removeResource(site, 'AWS::DynamoDB::Table', TargetTableName),
    });
    const what = 'the ledger is restored to the latest time';
    const work = async (): Promise<string> => {
      const begun = Date.now();
      await aws.dynamodb.send(
        new RestoreTableToPointInTimeCommand({ SourceTableName, TargetTableName, UseLatestRestorableTime: true }),
      );
      const made = await eventually(site, 45, async () => {
        const { Table: table } = await aws.dynamodb.send(new DescribeTableCommand({ TableName: TargetTableName }));
        return table?.TableStatus === 'ACTIVE' ? table : undefined;
      });
      if (made === undefined) throw new Error('not after 45 minutes');
      const indexes = (made.GlobalSecondaryIndexes ?? []).map(({ IndexName: index }) => index);
      return `${TargetTableName}, indexes ${indexes.join(', ')}, in ${Math.round((Date.now() - begun) / 1_000)} s`;
    };
    await site.check(what, work, 'restore');
    await site.check(
      'it has the CA of the ledger, under another table name',
      async () => {
        const [before, after] = [await caIn(SourceTableName), await caIn(TargetTableName)];
        if (before !== after) throw new Error('its CA is another one');
        if (SourceTableName === TargetTableName) throw new Error(TargetTableName);
        return `${SourceTableName ?? ''} → ${TargetTableName}`;
      },
      'restore',
    );
  },
};
