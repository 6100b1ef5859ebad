/** Removes what a stack retains: tables, keys and logs. Keys wait a week, which AWS does not shorten. */
import { DeleteLogGroupCommand } from '@aws-sdk/client-cloudwatch-logs';
import { DeleteTableCommand, DescribeTableCommand, UpdateTableCommand } from '@aws-sdk/client-dynamodb';
import { DescribeKeyCommand, ScheduleKeyDeletionCommand } from '@aws-sdk/client-kms';
import { setTimeout as sleep } from 'node:timers/promises';
import { errorMessage } from '../../core/outcome/error-message.ts';
import type { Site } from '../world/step.ts';
import type { LeftBehind } from '../world/undo.ts';

type Removal = (site: Site, id: string) => Promise<readonly LeftBehind[]>;

const removals: Readonly<Record<string, { readonly command: (id: string) => string; readonly remove: Removal }>> = {
  'AWS::DynamoDB::Table': {
    command: (id) =>
      `aws dynamodb update-table --table-name ${id} --no-deletion-protection-enabled && aws dynamodb delete-table --table-name ${id}`,
    async remove({ aws, pollMilliseconds }, TableName) {
      const untilActive = async (): Promise<void> => {
        for (;;) {
          const { Table: table } = await aws.dynamodb.send(new DescribeTableCommand({ TableName }));
          if (table?.TableStatus === 'ACTIVE') return;
          await sleep(pollMilliseconds);
        }
      };
      // A restored table can neither be changed nor deleted before it is whole.
      await untilActive();
      await aws.dynamodb.send(new UpdateTableCommand({ TableName, DeletionProtectionEnabled: false }));
      await untilActive();
      await aws.dynamodb.send(new DeleteTableCommand({ TableName }));
      return [];
    },
  },
  'AWS::KMS::Key': {
    command: (id) => `aws kms schedule-key-deletion --key-id ${id} --pending-window-in-days 7`,
    async remove({ aws }, KeyId) {
      const date = await aws.kms.send(new ScheduleKeyDeletionCommand({ KeyId, PendingWindowInDays: 7 })).then(
        ({ DeletionDate: planned }) => planned,
        async (error: unknown) => {
          // Another principal scheduled it, which the run reports where it tries that.
          const { KeyMetadata: key } = await aws.kms.send(new DescribeKeyCommand({ KeyId }));
          if (key?.KeyState !== 'PendingDeletion') throw error;
          return key.DeletionDate;
        },
      );
      const why = `KMS deletes it on ${date?.toISOString().slice(0, 10) ?? 'a later day'}; until then it costs nothing`;
      return [{ what: `key ${KeyId}`, why, command: `aws kms describe-key --key-id ${KeyId}`, expected: true }];
    },
  },
  'AWS::Logs::LogGroup': {
    command: (id) => `aws logs delete-log-group --log-group-name ${id}`,
    async remove({ aws }, logGroupName) {
      await aws.logs.send(new DeleteLogGroupCommand({ logGroupName }));
      return [];
    },
  },
  // Data of the custom resource: the CA in the table, which is removed.
  'Custom::CountersignCas': { command: () => '', remove: async () => [] },
};

const gone = /^(ResourceNotFoundException|NotFoundException)$/;

export async function removeResource(site: Site, type: string, id: string): Promise<readonly LeftBehind[]> {
  const removal = removals[type];
  const what = `${type} ${id}`;
  if (removal === undefined) return [{ what, why: 'the stack retains it, and this run does not know it', command: '' }];
  try {
    return await removal.remove(site, id);
  } catch (error) {
    if (error instanceof Error && gone.test(error.name)) return [];
    return [{ what, why: `could not be removed: ${errorMessage(error).slice(0, 300)}`, command: removal.command(id) }];
  }
}
