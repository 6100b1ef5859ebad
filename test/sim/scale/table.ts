/**
 * The certificates table of one cluster: on-demand capacity, partitions that can be hot, and the SDK that asks again.
 * Each write also goes to both indexes, and waits for the one that has least left.
 */
import type { Account, World } from './account.ts';
import { Throttled } from './account.ts';
import { dynamodb, prices } from './numbers.ts';
import { createQuota } from './quota.ts';
import type { Quota } from './quota.ts';

export interface Table {
  /** `spread`: which partition the record, its serial and its expiry fall into. */
  write(spread: Spread, units: number): Promise<void>;
  /** A write whose condition does not hold: paid by what is there, the indexes stay as they are. */
  check(spread: Spread, units: number): Promise<void>;
  read(units: number): Promise<void>;
}

/** Any numbers. */
export interface Spread {
  readonly record: number;
  readonly serial: number;
}

export function createTable({ timeline, random }: World, account: Account, writeUnits: number): Table {
  const chance = random.stream('table');
  const partitions = Math.max(1, Math.ceil(writeUnits / dynamodb.partitionWriteUnits));
  const share = writeUnits / partitions;
  const capacity = (): Quota[] =>
    Array.from({ length: partitions }, () => createQuota(timeline, Math.min(share, dynamodb.partitionWriteUnits)));
  const [records, serials, expiries] = [capacity(), capacity(), capacity()];
  const reads = createQuota(timeline, dynamodb.readUnits);
  /** Sixteen keys a day, wherever their hash puts them. */
  const places = Array.from({ length: dynamodb.expiryKeys }, () => chance.below(partitions));
  const at = (quotas: readonly Quota[], number: number): Quota => {
    const quota = quotas[number % quotas.length];
    if (quota === undefined) throw new Error('a table has a partition');
    return quota;
  };

  async function ask(take: () => boolean): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      const milliseconds = account.within(dynamodb.milliseconds);
      await account.wait(milliseconds / 2);
      const letThrough = take();
      await account.wait(milliseconds / 2);
      try {
        account.counted('dynamodb', letThrough);
        return;
      } catch (error) {
        if (!(error instanceof Throttled) || attempt === dynamodb.attempts) throw error;
        await account.wait(chance.next() * dynamodb.throttledDelayMilliseconds * 2 ** (attempt - 1));
      }
    }
  }

  return {
    write: ({ record, serial }, units) =>
      ask(() => {
        const place = places[serial % places.length] ?? 0;
        const takers = [at(records, record), at(serials, serial >>> 4), at(expiries, place)];
        // Asked one after the other: what an earlier one gave is lost when a later one says no, as it is there.
        if (!takers.every((quota) => quota.take(units))) return false;
        account.pay(units * takers.length * prices.writeUnit);
        return true;
      }),
    check: ({ record }, units) =>
      ask(() => {
        if (!at(records, record).take(units)) return false;
        account.pay(units * prices.writeUnit);
        return true;
      }),
    read: (units) =>
      ask(() => {
        if (!reads.take(units)) return false;
        account.pay(units * prices.readUnit);
        return true;
      }),
  };
}
