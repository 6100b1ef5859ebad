import { CreateTableCommand, type DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { attestationsTable, certificatesTable } from '../../../adapters/dynamodb/table.ts';

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
          Projection: { ProjectionType: 'ALL' },
        },
        {
          IndexName: expiry.name,
          KeySchema: [
            { AttributeName: expiry.partitionKey, KeyType: 'HASH' },
            { AttributeName: expiry.sortKey, KeyType: 'RANGE' },
          ],
          Projection: { ProjectionType: 'ALL' },
        },
      ],
    }),
  );
  return tableName;
}

/** An attestations table likewise, but for its time to live: nothing is ever cleaned up under a suite. */
export async function createAttestationsTable(client: DynamoDBClient, tableName: string): Promise<string> {
  await client.send(
    new CreateTableCommand({
      TableName: tableName,
      BillingMode: 'PAY_PER_REQUEST',
      KeySchema: [{ AttributeName: attestationsTable.partitionKey, KeyType: 'HASH' }],
      AttributeDefinitions: [{ AttributeName: attestationsTable.partitionKey, AttributeType: 'S' }],
    }),
  );
  return tableName;
}
