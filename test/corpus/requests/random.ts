import { mulberry32 } from '../../harness/determinism/mulberry32.ts';

/** Chance that repeats: the same seed gives the same corpus on every machine. Not for keys. */
export interface Random {
  /** From 0 up to, not including, `end`. */
  int(end: number): number;
  chance(probability: number): boolean;
  pick<T>(list: readonly T[]): T;
  /** Between `least` and `most` of the list, each at most once, in random order. */
  some<T>(list: readonly T[], least: number, most: number): T[];
  shuffled<T>(list: readonly T[]): T[];
}

export function seededRandom(seed: number): Random {
  const next = mulberry32(seed);
  const random: Random = {
    int: (end) => Math.floor(next() * end),
    chance: (probability) => next() < probability,
    pick(list) {
      if (list.length === 0) throw new Error('nothing to pick from');

      return list[random.int(list.length)]!;
    },
    some: (list, least, most) =>
      random.shuffled(list).slice(0, least + random.int(Math.min(most, list.length) - least + 1)),
    shuffled(list) {
      const rest = [...list];
      return list.map(() => rest.splice(random.int(rest.length), 1)[0]!);
    },
  };
  return random;
}
