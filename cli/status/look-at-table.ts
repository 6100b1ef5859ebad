/** Whether a table exists and can be restored, with the operator's AWS login. */
import { DescribeContinuousBackupsCommand, DescribeTableCommand, DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { awsFailure } from '../aws/aws-failure.ts';
import { clientOptions } from '../aws/client-options.ts';
import type { CommandFailure } from '../runtime/exit.ts';
import type { SeenTable, TablePlace } from '../runtime/io.ts';

export async function lookAtTable({ table, region }: TablePlace): Promise<SeenTable> {
  const client = new DynamoDBClient({ ...clientOptions(), ...(region === undefined ? {} : { region }) });
  try {
    const described = await describe(client, table);
    if (described === undefined) return { exists: false };
    const { TableStatus: status = '', DeletionProtectionEnabled: deletionProtection = false } = described;
    return { exists: true, status, deletionProtection, pointInTimeRecovery: await recovery(client, table) };
  } finally {
    client.destroy();
  }
}

async function describe(client: DynamoDBClient, name: string) {
  try {
    return (await client.send(new DescribeTableCommand({ TableName: name }))).Table;
  } catch (error) {
    if (error instanceof Error && error.name === 'ResourceNotFoundException') return undefined;
    throw awsFailure('DynamoDB', error, `dynamodb:DescribeTable on ${name}`);
  }
}

async function recovery(client: DynamoDBClient, name: string): Promise<boolean | CommandFailure> {
  try {
    const { ContinuousBackupsDescription: described } = await client.send(
      new DescribeContinuousBackupsCommand({ TableName: name }),
    );
    return described?.PointInTimeRecoveryDescription?.PointInTimeRecoveryStatus === 'ENABLED';
  } catch (error) {
    return awsFailure('DynamoDB', error, `dynamodb:DescribeContinuousBackups on ${name}`);
  }
}
