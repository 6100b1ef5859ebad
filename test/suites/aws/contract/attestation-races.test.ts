import { afterAll, beforeAll, expect, test } from 'vitest';
import { dynamoDbAttestations } from '../../../../adapters/dynamodb/attestations.ts';
import { ledgerClientConfig } from '../../../../adapters/dynamodb/ledger.ts';
import { dynamoDbAttestationAdmin } from '../../../../adapters/dynamodb/attestation-admin.ts';
import { raceKinds, raceMany } from '../../../contract/attestation-races.ts';
import type { StoreUnderTest } from '../../../contract/attestation-scene.ts';
import { dynamoDbUnderTest } from '../../../contract/dynamodb-attestations.ts';
import { bothEmulators, describeOnEmulators, patience } from './emulators.ts';

/** Of each kind. What first use rests on is raced the most. */
const roundsOf = { 'node name': 1_000, machine: 1_000, proof: 250, address: 250 } as const;

describeOnEmulators(bothEmulators, (_, emulator) => {
  let made: StoreUnderTest | undefined;
  beforeAll(async () => {
    const config = { ...emulator().client, ...ledgerClientConfig, requestHandler: patience };
    made = await dynamoDbUnderTest({ dynamoDbAttestations, dynamoDbAttestationAdmin }, config);
  });
  afterAll(() => made?.close());

  test.each(raceKinds.map((kind) => [kind, roundsOf[kind]] as const))(
    'two first uses of one %s, both having looked before, %i times: exactly one wins',
    async (kind, rounds) => {
      const [first, second] = await raceMany(kind, made!, { rounds, atOnce: 8 });
      expect(first + second).toBe(rounds);
      // Neither side always wins, or the two would not have met.
      expect(Math.min(first, second)).toBeGreaterThan(0);
    },
    600_000,
  );
});
