/** Connects the ca function to its bundled configuration and to its environment. */
import { randomBytes } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { KMSClient } from '@aws-sdk/client-kms';
import { sendResourceResponse } from '../../adapters/aws/cloudformation-response.ts';
import { dynamoDbCaStore } from '../../adapters/dynamodb/ca.ts';
import { ledgerClientConfig } from '../../adapters/dynamodb/ledger.ts';
import { dynamoDbCrls, dynamoDbRevocations } from '../../adapters/dynamodb/revocations.ts';
import { dynamoDbSignatureLog } from '../../adapters/dynamodb/signatures.ts';
import { kmsClientConfig } from '../../adapters/aws/kms-client.ts';
import { kmsKey } from '../../adapters/aws/kms-signer.ts';
import { writeOperatorLog } from '../../adapters/lambda/operator-call.ts';
import { madeForEmulatedAws } from '../../adapters/lambda/redirects.ts';
import { clusterConfiguration } from '../../adapters/lambda/bundle.ts';
import { readSettings } from './env.ts';
import { createCaHandler } from './handler.ts';
import type { CaHandler } from './handler.ts';
import type { CaPorts } from './actions/ports.ts';

function connect(): CaPorts {
  const cluster = clusterConfiguration();
  const { certificatesTable, caKeys } = readSettings(process.env, cluster);
  const kms = new KMSClient(kmsClientConfig);
  const client = new DynamoDBClient(ledgerClientConfig);
  const table = { client, tableName: certificatesTable, randomBytes };
  return {
    cluster: cluster.name,
    cas: cluster.cas,
    profiles: cluster.profiles,
    key: (ca) => kmsKey(kms, caKeys.get(ca) ?? ''),
    store: dynamoDbCaStore(client, certificatesTable),
    revocations: dynamoDbRevocations(table),
    crls: dynamoDbCrls(table),
    signatures: dynamoDbSignatureLog(table),
    origin: () => ({ now: Date.now(), randomBytes }),
  };
}

let connected: CaPorts | undefined;

export const handler: CaHandler = createCaHandler({
  connect: () => (connected ??= connect()),
  respond: sendResourceResponse,
  // The emulators' IAM is consistent at once, and tests take permissions away.
  wait: (milliseconds) => wait(madeForEmulatedAws() ? milliseconds / 10 : milliseconds),
  log: writeOperatorLog,
});
