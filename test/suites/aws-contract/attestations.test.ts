import { dynamoDbAttestations } from '../../../adapters/dynamodb-attestations.ts';
import { ledgerClientConfig } from '../../../adapters/dynamodb-ledger.ts';
import { dynamoDbRegister } from '../../../adapters/dynamodb-register.ts';
import { attestationStoreContract } from '../../contract/attestation-store.ts';
import { dynamoDbUnderTest } from '../../contract/dynamodb-attestations.ts';
import { describeOnEmulators, patience } from './emulators.ts';

describeOnEmulators((name, emulator) => {
  attestationStoreContract(`DynamoDB of ${name}`, () =>
    dynamoDbUnderTest(
      { dynamoDbAttestations, dynamoDbRegister },
      { ...emulator().client, ...ledgerClientConfig, requestHandler: patience },
    ),
  );
});
