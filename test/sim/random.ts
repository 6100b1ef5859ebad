import { mulberry32 } from '../harness/determinism/mulberry32.ts';

/** All chance in a simulation: streams made from one seed, each by its own name, so that one more draw in one of them moves nothing in the others. */
export interface Random {
  /** In [0, 1). */
  readonly next: () => number;
  /** A whole number in [0, count). */
  below(count: number): number;
  between(least: number, most: number): number;
  chance(share: number): boolean;
  pick<T>(list: readonly [T, ...T[]]): T;
  readonly bytes: (count: number) => Uint8Array;
  /** A stream of its own. */
  stream(name: string): Random;
}

export function createRandom(seed: string): Random {
  const next = mulberry32(hash(seed));
  const below = (count: number): number => Math.floor(next() * count);
  return {
    next,
    below,
    between: (least, most) => least + (most - least) * next(),
    chance: (share) => next() < share,
    pick: (list) => list[below(list.length)] ?? list[0],
    bytes: (count) => Uint8Array.from({ length: count }, () => below(256)),
    stream: (name) => createRandom(`${seed}/${name}`),
  };
}

/** FNV-1a, 32 bits. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193);
  return value >>> 0;
}
