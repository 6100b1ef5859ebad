/** The attestations table of one cluster: no indexes, and what is written together lies in as many places as items. */
import type { Account, World } from './account.ts';
import { createAsking } from './asking.ts';
import { createCapacity } from './capacity.ts';
import { attestation, dynamodb, prices } from '../numbers.ts';
import { createQuota } from './quota.ts';

export interface AttestationTable {
  read(units: number): Promise<void>;
  /** `places`: of each item, from 0 to 1. */
  transact(places: readonly number[]): Promise<void>;
  /** One more of the one requester that all nodes of a cluster join as. */
  count(): Promise<void>;
}

export function createAttestationTable(
  { timeline, random }: World,
  account: Account,
  writeUnits: number,
): AttestationTable {
  const chance = random.stream('attestations');
  const writes = createCapacity(timeline, writeUnits);
  const reads = createQuota(timeline, dynamodb.readUnits);

  const ask = createAsking(account, chance);

  return {
    read: (units) =>
      ask(() => {
        if (!reads.take(units)) return false;
        account.pay(units * prices.readUnit);
        return true;
      }),
    count: () =>
      ask(() => {
        if (!writes.take(0, 1)) return false;
        account.pay(prices.writeUnit);
        return true;
      }),
    transact: (places) =>
      ask(() => {
        const taken = places.map((place) => writes.take(place, attestation.itemUnits));
        if (!taken.every(Boolean)) return false;
        account.pay(places.length * attestation.itemUnits * prices.writeUnit);
        return true;
      }),
  };
}
