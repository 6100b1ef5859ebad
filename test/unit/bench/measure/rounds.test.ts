import { describe, expect, test } from 'vitest';
import { alternate } from '../../../../bench/measure/rounds.ts';
import { isDifference, median, pairedRatio } from '../../../../bench/measure/statistics.ts';
import { noisyMachine } from './noisy-machine.ts';

const unlimited = Number.POSITIVE_INFINITY;

test('contenders alternate, each second round in the opposite order', async () => {
  const order: string[] = [];
  const turns = await alternate(['A', 'B', 'C'], { rounds: 3, milliseconds: unlimited }, async (name, round) => {
    order.push(name);
    return `${name}${round}`;
  });
  expect(order.join('')).toBe('ABCCBAABC');
  expect(turns).toEqual([
    ['A0', 'A1', 'A2'],
    ['B0', 'B1', 'B2'],
    ['C0', 'C1', 'C2'],
  ]);
});

test('no round begins after the time is over, and one round is always made', async () => {
  let clock = 0;
  const roundsWithin = async (milliseconds: number): Promise<number> => {
    const take = async (): Promise<number> => (clock += 10);
    const turns = await alternate(['A', 'B'], { rounds: 100, milliseconds }, take, () => clock);
    expect(turns[0]).toHaveLength(turns[1]!.length);
    return turns[0]!.length;
  };
  expect(await roundsWithin(50)).toBe(3);
  expect(await roundsWithin(0)).toBe(1);
});

test('a contender that failed has no further turns, and the others go on', async () => {
  const turns = await alternate(['A', 'B'], { rounds: 4, milliseconds: unlimited }, async (name, round) =>
    name === 'B' && round === 1 ? undefined : round,
  );
  expect(turns).toEqual([[0, 1, 2, 3], [0]]);
});

describe('on a machine that drifts, and that other work slows down for a while', () => {
  const seeds = Array.from({ length: 40 }, (_, index) => index + 1);
  const rounds = 20;
  const [ours, reference] = [1.25, 1]; // seconds on an idle machine: a speed of 0.8
  const worstError = (ratios: readonly number[], truth: number): number =>
    Math.max(...ratios.map((ratio) => Math.abs(ratio / truth - 1)));

  /** Each contender all at once, the second a few minutes after the first. */
  const minutesApart = (seed: number): number => {
    const machine = noisyMachine(seed);
    const first = Array.from({ length: rounds }, () => machine.run(ours));
    machine.pass(180);
    const second = Array.from({ length: rounds }, () => machine.run(reference));
    return median(second) / median(first);
  };
  const alternating = async (seed: number, work: readonly [number, number]) => {
    const machine = noisyMachine(seed);
    const plan = { rounds, milliseconds: unlimited };
    const [first, second] = await alternate(work, plan, async (seconds) => machine.run(seconds));
    return pairedRatio(second!, first!);
  };

  test('the median of pairs is within 5 % of the truth, where measurements minutes apart are wrong by half', async () => {
    const paired = await Promise.all(seeds.map((seed) => alternating(seed, [ours, reference])));
    const apart = seeds.map(minutesApart);
    expect(
      worstError(
        paired.map((ratio) => ratio.median),
        reference / ours,
      ),
    ).toBeLessThan(0.05);
    expect(worstError(apart, reference / ours)).toBeGreaterThan(0.5);
    // Not one unlucky run: most of them are wrong by more than the worst of the pairs.
    expect(apart.filter((ratio) => Math.abs(ratio * ours - 1) > 0.05).length).toBeGreaterThan(seeds.length / 2);
  });

  test('the interval holds the truth, and a difference of a fifth is found each time', async () => {
    const paired = await Promise.all(seeds.map((seed) => alternating(seed, [ours, reference])));
    const holds = paired.filter(({ interval }) => interval![0] <= 0.8 && interval![1] >= 0.8);
    expect(holds.length).toBeGreaterThanOrEqual(seeds.length * 0.9);
    expect(paired.every(isDifference)).toBe(true);
  });

  test('of two that are alike hardly any run reports a difference', async () => {
    const paired = await Promise.all(seeds.map((seed) => alternating(seed, [1, 1])));
    expect(paired.filter(isDifference).length).toBeLessThanOrEqual(seeds.length * 0.1);
  });
});
