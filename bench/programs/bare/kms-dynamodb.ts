/**
 * Only the AWS libraries that the sign and ca functions need: the same clients with the same settings, and a handler that
 * makes the calls of a first answer.
 */
import { DynamoDBClient, GetItemCommand, PutItemCommand, UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { GetPublicKeyCommand, KMSClient, SignCommand } from '@aws-sdk/client-kms';
import { ledgerClientConfig } from '../../../adapters/dynamodb/ledger.ts';
import { kmsClientConfig } from '../../../adapters/aws/kms-client.ts';
import { environmentNames } from '../../../adapters/lambda/environment.ts';

const dynamodb = new DynamoDBClient(ledgerClientConfig);
const kms = new KMSClient(kmsClientConfig);

const tableName = process.env[environmentNames.certificatesTable] ?? '';
const keys = JSON.parse(process.env[environmentNames.caKeys] ?? '{}') as Readonly<Record<string, string>>;
const keyId = Object.values(keys)[0] ?? '';

/** Makes the calls in the order and with the concurrency of the function. */
export async function handler({ as }: { readonly as: 'sign' | 'ca' }): Promise<{ readonly as: string }> {
  await Promise.all([kms.send(new GetPublicKeyCommand({ KeyId: keyId })), read('ca#ca')]);
  await read('ca#ca#0');
  if (as === 'sign') {
    const key = { pk: { S: `uid#${process.pid}` } };
    await dynamodb.send(
      new PutItemCommand({
        TableName: tableName,
        Item: { ...key, state: { S: 'intent' } },
        ConditionExpression: 'attribute_not_exists(pk)',
      }),
    );
    await kms.send(
      new SignCommand({
        KeyId: keyId,
        Message: new Uint8Array(32),
        MessageType: 'DIGEST',
        SigningAlgorithm: 'ECDSA_SHA_256',
      }),
    );
    await dynamodb.send(
      new UpdateItemCommand({
        TableName: tableName,
        Key: key,
        UpdateExpression: 'SET certificate = :certificate',
        ExpressionAttributeValues: { ':certificate': { B: new Uint8Array(600) } },
      }),
    );
  }
  return { as };
}

function read(pk: string): Promise<unknown> {
  return dynamodb.send(new GetItemCommand({ TableName: tableName, Key: { pk: { S: pk } }, ConsistentRead: true }));
}
