/** The store in DynamoDB, as it is or with a mistake in it, ready for its cases. */
import { randomBytes, randomUUID } from 'node:crypto';
import { DynamoDBClient, PutItemCommand, UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import type { DynamoDBClientConfig } from '@aws-sdk/client-dynamodb';
import type { dynamoDbAttestations } from '../../adapters/dynamodb/attestations.ts';
import { keys, patternPrefix } from '../../adapters/dynamodb/attestation-items.ts';
import { itemFrom } from '../../adapters/dynamodb/values.ts';
import type { dynamoDbAttestationAdmin } from '../../adapters/dynamodb/attestation-admin.ts';
import { createAttestationsTable } from '../harness/aws/tables.ts';
import type { StoreUnderTest } from './attestation-scene.ts';

export interface Adapter {
  readonly dynamoDbAttestations: typeof dynamoDbAttestations;
  readonly dynamoDbAttestationAdmin: typeof dynamoDbAttestationAdmin;
}

export async function dynamoDbUnderTest(
  { dynamoDbAttestations: storeOf, dynamoDbAttestationAdmin: registerOf }: Adapter,
  config: DynamoDBClientConfig,
): Promise<StoreUnderTest> {
  const clients: DynamoDBClient[] = [];
  const connect = (): DynamoDBClient => {
    const client = new DynamoDBClient(config);
    clients.push(client);
    return client;
  };
  const open = (tableName: string) => {
    const options = { client: connect(), tableName, randomBytes };
    return { store: storeOf(options), register: registerOf(options) };
  };
  const setup = connect();
  const table = await createAttestationsTable(setup, `a-${randomUUID()}`);
  const otherTable = await createAttestationsTable(setup, `b-${randomUUID()}`);
  return {
    ...open(table),
    other: open(otherTable).store,
    reopen: async () => open(table),
    async giveName(nodeName, identity) {
      await setup.send(
        new UpdateItemCommand({
          TableName: table,
          Key: keys.node(nodeName),
          UpdateExpression: 'SET #identity = :identity',
          ExpressionAttributeNames: { '#identity': 'identity' },
          ExpressionAttributeValues: { ':identity': { S: identity } },
        }),
      );
    },
    async putEntry({ name, ...about }) {
      if (!name.includes('*')) {
        const item = { ...itemFrom({ name, ...about }), ...keys.machine(name) };
        await setup.send(new PutItemCommand({ TableName: table, Item: item }));
        return;
      }
      await setup.send(
        new UpdateItemCommand({
          TableName: table,
          Key: keys.patterns,
          UpdateExpression: 'SET #pattern = :about',
          ExpressionAttributeNames: { '#pattern': patternPrefix + name },
          ExpressionAttributeValues: { ':about': { M: itemFrom(about) } },
        }),
      );
    },
    close: async () => clients.forEach((client) => client.destroy()),
  };
}
