/**
 * The certificates table of one cluster: on-demand capacity, partitions that can be hot, and the SDK that asks again.
 * Each write also goes to both indexes, and waits for the one that has least left.
 */
import type { Account, World } from './account.ts';
import { createAsking } from './asking.ts';
import { createCapacity } from './capacity.ts';
import { dynamodb, prices } from '../numbers.ts';
import { createQuota } from './quota.ts';

export interface Table {
  /** `spread`: which partition the record, its serial and its expiry fall into. */
  write(spread: Spread, units: number): Promise<void>;
  /** A write whose condition does not hold: paid by what is there, the indexes stay as they are. */
  check(spread: Spread, units: number): Promise<void>;
  read(units: number): Promise<void>;
  /** Of the table and both indexes, one after the other: those that a write to it needs, by number. */
  partitionsOf(spread: Spread): readonly number[];
}

/** Whole numbers from 0 to 2³²; any. */
export interface Spread {
  readonly record: number;
  readonly serial: number;
}

/** By number, so that two runs of one seed fall into the same partitions. */
export function spreadOf(uid: string): Spread {
  return { record: hash(uid), serial: hash(`${uid} serial`) };
}

export function createTable({ timeline, random }: World, account: Account, writeUnits: number): Table {
  const chance = random.stream('table');
  const [records, serials, expiries] = [0, 1, 2].map(() => createCapacity(timeline, writeUnits));
  if (records === undefined || serials === undefined || expiries === undefined) throw new Error('there are three');
  /** As if both items of the CA were in one partition. */
  const reads = createQuota(timeline, dynamodb.partitionReadUnits);
  /** Sixteen keys a day, wherever their hash puts them. */
  const keys = Array.from({ length: dynamodb.expiryKeys }, () => chance.next());
  const placesOf = ({ record, serial }: Spread) =>
    [
      [records, record / 2 ** 32],
      [serials, serial / 2 ** 32],
      [expiries, keys[serial % keys.length] ?? 0],
    ] as const;

  const ask = createAsking(account, chance);

  return {
    write: (spread, units) =>
      ask(() => {
        const places = placesOf(spread);
        // Asked one after the other: what an earlier one gave is lost when a later one says no, as it may be there.
        if (!places.every(([capacity, place]) => capacity.take(place, units))) return false;
        account.pay(units * places.length * prices.writeUnit);
        return true;
      }),
    check: ({ record }, units) =>
      ask(() => {
        if (!records.take(record / 2 ** 32, units)) return false;
        account.pay(units * prices.writeUnit);
        return true;
      }),
    read: (units) =>
      ask(() => {
        if (!reads.take(units)) return false;
        account.pay(units * prices.readUnit);
        return true;
      }),
    partitionsOf(spread) {
      let before = 0;
      return placesOf(spread).map(([capacity, place]) => {
        const number = before + capacity.partitionOf(place);
        before += capacity.partitions;
        return number;
      });
    },
  };
}

/** FNV-1a, and mixed once more: its highest bits hardly know the last letters. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193);
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
  return (value ^ (value >>> 16)) >>> 0;
}
