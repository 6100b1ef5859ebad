import { dynamoDbAttestations } from '../../../../../adapters/dynamodb/attestations.ts';
import { dynamoDbAttestationAdmin } from '../../../../../adapters/dynamodb/attestation-admin.ts';
import { dynamoDbUnderTest } from '../../../../contract/dynamodb-attestations.ts';
import type { Case } from '../../../../harness/mutants/case-runner.ts';
import { contractCases } from './store-cases.ts';

const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };

export function cases(endpoint: string): readonly Case[] {
  return contractCases(() =>
    dynamoDbUnderTest(
      { dynamoDbAttestations, dynamoDbAttestationAdmin },
      { endpoint, region: 'eu-central-1', credentials, maxAttempts: 3 },
    ),
  );
}
