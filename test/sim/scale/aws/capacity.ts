/**
 * What an on-demand table, or one of its indexes, lets through: partitions of 1 000 write units a second each, and all of
 * them together no more than twice what there was half an hour ago. Both grow as slowly as AWS's words allow:
 * docs/internals/scale.md.
 */
import type { Timeline } from '../../../harness/determinism/virtual-time.ts';
import { dynamodb } from '../numbers.ts';
import { createQuota } from './quota.ts';
import type { Quota } from './quota.ts';

export interface Capacity {
  /** `place`: of a key, from 0 to 1, as its hash puts it. */
  take(place: number, units: number): boolean;
  /** Which one of `partitions`. */
  partitionOf(place: number): number;
  readonly partitions: number;
}

interface Partition {
  readonly from: number;
  readonly to: number;
  readonly quota: Quota;
  /** Has it refused within this minute, and in how many before this one without a pause. */
  refused: boolean;
  hotMinutes: number;
}

const minute = 60_000;

export function createCapacity(timeline: Pick<Timeline, 'now'>, writeUnits: number): Capacity {
  let units = writeUnits;
  const count = Math.max(1, Math.ceil(units / dynamodb.partitionWriteUnits));
  // One partition may use what the others leave, up to what a partition can do (AWS: adaptive capacity).
  const each = Math.min(units, dynamodb.partitionWriteUnits);
  let partitions = Array.from({ length: count }, (_, number) =>
    partition(number / count, (number + 1) / count, createQuota(timeline, each)),
  );
  let together = createQuota(timeline, units);
  let current = Math.floor(timeline.now() / minute);
  let used = 0;
  const peaks: { readonly at: number; readonly perSecond: number }[] = [];

  /** Full from the beginning is only what was there at the beginning. */
  function added(perSecond: number): Quota {
    const quota = createQuota(timeline, perSecond);
    quota.take(perSecond);
    return quota;
  }

  function halves({ from, to }: Partition): Partition[] {
    const middle = (from + to) / 2;
    return [partition(from, middle, added(each)), partition(middle, to, added(each))];
  }

  function grow(wanted: number): void {
    const most = Math.min(wanted, dynamodb.tableWriteUnits);
    if (most <= units) return;
    units = most;
    together = added(units);
    while (partitions.length * each < units) partitions = partitions.flatMap(halves);
  }

  /** At the first call of another minute. */
  function turn(now: number): void {
    const passed = Math.floor(now / minute) - current;
    if (passed > 0) {
      // What a bucket gave at first is no traffic that lasts.
      peaks.push({ at: now, perSecond: Math.min(units, (used / minute) * 1_000) });
      partitions = partitions.flatMap((one) => {
        one.hotMinutes = one.refused && passed === 1 ? one.hotMinutes + 1 : 0;
        one.refused = false;
        return one.hotMinutes < dynamodb.splitsAfterMinutes ? [one] : halves(one);
      });
      current += passed;
      used = 0;
    }
    for (let [peak] = peaks; peak !== undefined; [peak] = peaks) {
      if (peak.at + dynamodb.doublesInMilliseconds > now) break;
      grow(2 * peak.perSecond);
      peaks.shift();
    }
  }

  return {
    partitions: count,
    partitionOf: (place) => Math.floor(place * count),
    take(place, amount) {
      turn(timeline.now());
      const one = partitions.find(({ to }) => place < to);
      if (one === undefined) throw new Error('a key has a place below 1');
      if (!one.quota.take(amount)) {
        one.refused = true;
        return false;
      }
      if (!together.take(amount)) return false;
      used += amount;
      return true;
    },
  };
}

function partition(from: number, to: number, quota: Quota): Partition {
  return { from, to, quota, refused: false, hotMinutes: 0 };
}
