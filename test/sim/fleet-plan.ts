/**
 * The plan of a small fleet that scales in and out: names that pass from one machine to the next, for hours in some seeds, and faults
 * that come back when the next machine of a name starts.
 */
import type { Random } from './random.ts';
import type { FaultTime } from './runtime.ts';

/** Virtual milliseconds. */
export interface PlannedMachine {
  /** Of the trace and of its identity. */
  readonly id: string;
  readonly node: string;
  readonly from: number;
  /** When its platform terminates it; absent: never. */
  readonly until?: number;
}

export interface FleetPlan {
  /** In each line of machines one follows the other. */
  readonly lines: readonly (readonly PlannedMachine[])[];
  /** When faults happen again. */
  readonly faults: readonly FaultTime[];
  /** Whether terminated machines are retired by schedule and hints. */
  readonly retires: boolean;
  /** Milliseconds between two scheduled runs while no faults happen. */
  readonly every: number;
  readonly endsAt: number;
}

export const fleetNodes = ['node-f', 'node-g'] as const;

const minute = 60_000;

/** `until`: when the first faults end. */
export function createFleetPlan(random: Random, until: number): FleetPlan | undefined {
  if (!random.chance(0.4)) return undefined;
  const isLong = random.chance(0.35);
  const secondLook = until + random.between(2.1 * minute, 2.4 * minute);
  const faults: FaultTime[] = [{ from: secondLook, to: secondLook + random.between(minute, 1.5 * minute) }];
  if (isLong) {
    // The grace of the machines that were retired in the meantime is over about then.
    const graceOver = until + random.between(61 * minute, 70 * minute);
    faults.push({ from: graceOver, to: graceOver + random.between(20_000, minute) });
  }
  const lines = fleetNodes.slice(0, 1 + random.below(2)).map((node, index) => line(`m${7 + index}`, node));

  function line(first: string, node: string): PlannedMachine[] {
    const machines: PlannedMachine[] = [];
    let from = random.between(0, until * 0.5);
    for (let id = first; machines.length < 4; id += 'x') {
      const end = machines.length === 0 || random.chance(0.6) ? endOf(from) : undefined;
      machines.push({ id, node, from, ...(end === undefined ? {} : { until: end }) });
      if (end === undefined) break;
      from = Math.max(from + 1_000, end + pause());
    }
    return machines;
  }

  /** Most machines end while faults happen, or just before. */
  function endOf(from: number): number {
    const next = faults.find(({ to }) => to > from + 15_000);
    if (from < until * 0.7 || next === undefined) return from + random.between(8_000, minute);
    return random.between(Math.max(next.from - 30_000, from + 5_000), next.to);
  }

  /** Between the end of a machine and the start of the next one. Negative: the next one waits for its name. */
  function pause(): number {
    const pauses = [
      () => -random.between(1_000, 20_000),
      () => random.between(500, 20_000),
      () => 2.5 * minute,
    ] as const;
    if (isLong && random.chance(0.6)) return random.between(40 * minute, 80 * minute);
    return random.pick(pauses)();
  }

  const times = lines.flat().flatMap(({ from, until: end = from }) => [from, end]);
  return {
    lines,
    faults,
    retires: random.chance(0.85),
    every: isLong ? 10 * minute : 2 * minute,
    endsAt: Math.max(until, ...faults.map(({ to }) => to), ...times),
  };
}
