/**
 * Only the AWS libraries that the attest function needs: the same clients with the same settings, and a handler that makes
 * the calls of a first answer. STS refuses its call, because only a machine can sign one that STS accepts.
 */
import { request } from 'node:http';
import {
  DynamoDBClient,
  GetItemCommand,
  TransactGetItemsCommand,
  TransactWriteItemsCommand,
} from '@aws-sdk/client-dynamodb';
import { DescribeInstancesCommand, EC2Client } from '@aws-sdk/client-ec2';
import { ledgerClientConfig } from '../../../adapters/dynamodb/ledger.ts';
import { ec2ClientConfig } from '../../../adapters/aws/ec2.ts';
import { environmentNames } from '../../../adapters/lambda/environment.ts';

const dynamodb = new DynamoDBClient(ledgerClientConfig);
const ec2 = new EC2Client({ ...ec2ClientConfig, region: process.env['AWS_REGION'] ?? '' });
const tableName = process.env[environmentNames.attestationsTable] ?? '';

/** Makes the calls in the order in which the function makes them. */
export async function handler({ once }: { readonly once: string }): Promise<{ readonly once: string }> {
  await dynamodb.send(new GetItemCommand({ TableName: tableName, Key: key(`verdict#${once}`), ConsistentRead: true }));
  const reads = ['id', 'once', 'node'].map((kind) => ({ Get: { TableName: tableName, Key: key(`${kind}#${once}`) } }));
  await dynamodb.send(new TransactGetItemsCommand({ TransactItems: reads }));
  await callSts();
  await ec2.send(new DescribeInstancesCommand({ Filters: [{ Name: 'instance-state-name', Values: ['stopped'] }] }));
  const written = ['verdict', 'once', 'id', 'node'].map((kind) => ({
    Put: {
      TableName: tableName,
      Item: { ...key(`${kind}#${once}`), content: { B: new Uint8Array(300) } },
      ConditionExpression: 'attribute_not_exists(pk)',
    },
  }));
  await dynamodb.send(new TransactWriteItemsCommand({ TransactItems: written, ClientRequestToken: once }));
  return { once };
}

function key(pk: string) {
  return { pk: { S: pk } };
}

function callSts(): Promise<void> {
  return new Promise((resolve, reject) => {
    const url = `${process.env['AWS_ENDPOINT_URL_STS']}/?Action=GetCallerIdentity&Version=2011-06-15`;
    const outgoing = request(url, { agent: false }, (answer) => {
      answer.on('end', () => resolve()).resume();
    });
    outgoing.on('error', reject).end();
  });
}
