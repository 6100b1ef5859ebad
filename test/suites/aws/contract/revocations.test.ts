import { randomBytes, randomUUID } from 'node:crypto';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { afterAll, beforeAll, describe } from 'vitest';
import { ledgerClientConfig } from '../../../../adapters/dynamodb/ledger.ts';
import { dynamoDbCrls, dynamoDbRevocations } from '../../../../adapters/dynamodb/revocations.ts';
import { dynamoDbSignatureLog, dynamoDbSignatureReads } from '../../../../adapters/dynamodb/signatures.ts';
import { revocationsContract } from '../../../contract/revocation/revocations.ts';
import { signaturesContract } from '../../../contract/revocation/signatures.ts';
import { createCertificatesTable } from '../../../harness/aws/tables.ts';
import { byTier } from '../../../harness/determinism/tier.ts';
import { bothEmulators, describeOnEmulators, patience } from './emulators.ts';

describeOnEmulators(byTier({ default: ['DynamoDB Local'], deep: bothEmulators }), (name, emulator) => {
  revocationsContract(`DynamoDB (${name})`, async () => {
    const client = new DynamoDBClient({ ...emulator().client, ...ledgerClientConfig, requestHandler: patience });
    const tableName = await createCertificatesTable(client, `revocations-${randomUUID()}`);
    const options = { client, tableName, randomBytes };
    return {
      revocations: dynamoDbRevocations(options),
      crls: dynamoDbCrls(options),
      close: async () => client.destroy(),
    };
  });

  describe(`signatures: DynamoDB (${name})`, () => {
    let client: DynamoDBClient;
    let options: { readonly client: DynamoDBClient; readonly tableName: string };
    beforeAll(async () => {
      client = new DynamoDBClient({ ...emulator().client, ...ledgerClientConfig, requestHandler: patience });
      options = { client, tableName: await createCertificatesTable(client, `signatures-${randomUUID()}`) };
    });
    afterAll(() => client.destroy());
    signaturesContract(() => ({ ...dynamoDbSignatureLog(options), ...dynamoDbSignatureReads(options) }));
  });
});
