import { describe, expect, test } from 'vitest';
import { createCapacity } from '../../sim/scale/aws/capacity.ts';
import { dynamodb } from '../../sim/scale/numbers.ts';

const { writeUnits, partitionWriteUnits, doublesInMilliseconds, splitsAfterMinutes } = dynamodb;
const minute = 60_000;

function tableOf(units: number) {
  let now = 0;
  const capacity = createCapacity({ now: () => now }, units);
  /** Asks every 100 ms for more than any table has, at these places in turn; answers what was let through in a second. */
  function drive(seconds: number, places: readonly number[]): number {
    let passed = 0;
    for (let tenth = 0; tenth < seconds * 10; tenth += 1) {
      now += 100;
      for (const place of places) while (capacity.take(place, 5)) passed += 5;
    }
    return passed / seconds;
  }
  return {
    drive,
    rest(milliseconds: number): void {
      now += milliseconds;
    },
    /** What is full at first is used up. */
    drain: (places: readonly number[]) => void drive(1, places),
  };
}

/** So many that each partition has some, however often it was split. */
const everywhere = Array.from({ length: 64 }, (_, number) => (number + 0.5) / 64);
const oneKey = [0.1];
const twoKeysOfOnePartition = [0.05, 0.2];

describe('a new on-demand table', () => {
  test('lets through 4 000 units a second, and of one partition 1 000', () => {
    const [all, one, two] = [tableOf(writeUnits), tableOf(writeUnits), tableOf(writeUnits)];
    all.drain(everywhere);
    expect(all.drive(10, everywhere)).toBeCloseTo(writeUnits, -2);
    one.drain(oneKey);
    expect(one.drive(10, oneKey)).toBeCloseTo(partitionWriteUnits, -2);
    two.drain(twoKeysOfOnePartition);
    expect(two.drive(10, twoKeysOfOnePartition)).toBeCloseTo(partitionWriteUnits, -2);
  });

  test('lets through twice its peak half an hour after it, and not before', () => {
    const table = tableOf(writeUnits);
    table.drive(120, everywhere);
    table.rest(doublesInMilliseconds - 3 * minute);
    table.drain(everywhere);
    expect(table.drive(10, everywhere)).toBeCloseTo(writeUnits, -2);
    table.rest(3 * minute);
    table.drain(everywhere);
    expect(table.drive(10, everywhere)).toBeCloseTo(2 * writeUnits, -2);
    // A key is still in one partition.
    expect(table.drive(10, oneKey)).toBeCloseTo(partitionWriteUnits, -2);
  });

  test('does not grow by what lasted less than a minute, nor by little', () => {
    const table = tableOf(writeUnits);
    table.drive(15, everywhere);
    table.rest(doublesInMilliseconds + 2 * minute);
    table.drain(everywhere);
    expect(table.drive(10, everywhere)).toBeCloseTo(writeUnits, -2);
  });

  test('splits a partition that has been hot for long between its keys, and never a key', () => {
    const [two, one] = [tableOf(writeUnits), tableOf(writeUnits)];
    two.drive((splitsAfterMinutes - 1) * 60, twoKeysOfOnePartition);
    expect(two.drive(10, twoKeysOfOnePartition)).toBeCloseTo(partitionWriteUnits, -2);
    two.drive(120, twoKeysOfOnePartition);
    expect(two.drive(10, twoKeysOfOnePartition)).toBeCloseTo(2 * partitionWriteUnits, -2);
    one.drive((splitsAfterMinutes + 2) * 60, oneKey);
    expect(one.drive(10, oneKey)).toBeCloseTo(partitionWriteUnits, -2);
  });

  test('is not split while it cools off between hot minutes', () => {
    const table = tableOf(writeUnits);
    for (let time = 0; time < 2 * splitsAfterMinutes; time += 1) {
      table.drive(30, twoKeysOfOnePartition);
      table.rest(90_000);
    }
    table.drain(twoKeysOfOnePartition);
    expect(table.drive(10, twoKeysOfOnePartition)).toBeCloseTo(partitionWriteUnits, -2);
  });
});

test('a table grows up to what an account may have of one', () => {
  const table = tableOf(30_000);
  table.drive(120, everywhere);
  table.rest(doublesInMilliseconds);
  table.drain(everywhere);
  expect(table.drive(10, everywhere)).toBeCloseTo(dynamodb.tableWriteUnits, -2);
});
