/**
 * Contenders take turns, so that each is measured seconds before or after each other one. A machine whose speed drifts,
 * or that other work slows down for a while, then changes both sides of a pair alike; measurements minutes apart would
 * attribute the change to one contender.
 */

export interface RoundsPlan {
  readonly rounds: number;
  /** No new round begins after this time, even if rounds are left. */
  readonly milliseconds: number;
}

/** What each contender measured, by round. A contender that failed has no further turns. */
export type Turns<T> = readonly (readonly T[])[];

/**
 * Every second round goes in the opposite order (A B, B A, …), so that a steady drift favours no contender.
 * `turn` resolves to undefined for a contender that failed.
 */
export async function alternate<E, T>(
  contenders: readonly E[],
  { rounds, milliseconds }: RoundsPlan,
  turn: (contender: E, round: number) => Promise<T | undefined>,
  now: () => number = () => performance.now(),
): Promise<Turns<T>> {
  const turns = contenders.map((): T[] => []);
  const failed = new Set<number>();
  const limit = now() + milliseconds;
  for (let round = 0; round < rounds && failed.size < contenders.length; round++) {
    if (round > 0 && now() >= limit) break;
    const order = contenders.map((_, index) => index);
    for (const index of round % 2 === 0 ? order : order.toReversed()) {
      if (failed.has(index)) continue;
      const measured = await turn(contenders[index]!, round);
      if (measured === undefined) failed.add(index);
      else turns[index]!.push(measured);
    }
  }
  return turns;
}
