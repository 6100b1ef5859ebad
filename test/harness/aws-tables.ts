import { CreateTableCommand, type DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { certificatesTable } from '../../adapters/dynamodb-table.ts';

/** A certificates table as a deployed stack has it, for suites that deploy none. */
export async function createCertificatesTable(client: DynamoDBClient, tableName: string): Promise<string> {
  const { serial, expiry } = certificatesTable.indexes;
  await client.send(
    new CreateTableCommand({
      TableName: tableName,
      BillingMode: 'PAY_PER_REQUEST',
      KeySchema: [{ AttributeName: certificatesTable.partitionKey, KeyType: 'HASH' }],
      AttributeDefinitions: [
        { AttributeName: certificatesTable.partitionKey, AttributeType: 'S' },
        { AttributeName: serial.partitionKey, AttributeType: 'S' },
        { AttributeName: expiry.partitionKey, AttributeType: 'S' },
        { AttributeName: expiry.sortKey, AttributeType: 'N' },
      ],
      GlobalSecondaryIndexes: [
        {
          IndexName: serial.name,
          KeySchema: [{ AttributeName: serial.partitionKey, KeyType: 'HASH' }],
          Projection: { ProjectionType: 'KEYS_ONLY' },
        },
        {
          IndexName: expiry.name,
          KeySchema: [
            { AttributeName: expiry.partitionKey, KeyType: 'HASH' },
            { AttributeName: expiry.sortKey, KeyType: 'RANGE' },
          ],
          Projection: { ProjectionType: 'KEYS_ONLY' },
        },
      ],
    }),
  );
  return tableName;
}
