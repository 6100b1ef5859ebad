/** The value below which that share of the sample lies (nearest rank): always a value that was measured. */
export function percentile(sample: readonly number[], share: number): number {
  const sorted = sample.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}

/** Between two values it interpolates: the median of an even sample is the mean of the two in the middle. */
export function quantile(sample: readonly number[], share: number): number {
  const sorted = sample.toSorted((a, b) => a - b);
  const position = share * (sorted.length - 1);
  const low = sorted[Math.floor(position)];
  const high = sorted[Math.ceil(position)];
  return low === undefined || high === undefined ? Number.NaN : low + (high - low) * (position - Math.floor(position));
}

export function median(sample: readonly number[]): number {
  return quantile(sample, 0.5);
}

/** How many times as large one measurement is as the other, over all pairs that were measured close together. */
export interface PairedRatio {
  readonly pairs: number;
  readonly median: number;
  /** Half of the pairs lie between these two. */
  readonly quartiles: readonly [number, number];
  /** Holds the true median with a probability of at least 95 %. Absent when there are fewer than six pairs. */
  readonly interval?: readonly [number, number];
}

/**
 * `dividends[i]` and `divisors[i]` are a pair. Ratios are averaged as logarithms, so that exchanging the two sides gives
 * exactly the reciprocal.
 */
export function pairedRatio(dividends: readonly number[], divisors: readonly number[]): PairedRatio {
  if (dividends.length !== divisors.length) throw new Error('a measurement without its pair');
  const logarithms = dividends.map((dividend, index) => Math.log(dividend / divisors[index]!));
  const at = (share: number): number => Math.exp(quantile(logarithms, share));
  const interval = medianInterval(logarithms);
  return {
    pairs: logarithms.length,
    median: at(0.5),
    quartiles: [at(0.25), at(0.75)],
    ...(interval === undefined ? {} : { interval: [Math.exp(interval[0]), Math.exp(interval[1])] }),
  };
}

/** Whether one side is larger: there is an interval, and it does not contain 1. */
export function isDifference({ interval }: PairedRatio): boolean {
  return interval !== undefined && (interval[0] > 1 || interval[1] < 1);
}

const confidence = 0.95;

/**
 * The interval of the sign test: the narrowest pair of values, equally many ranks from both ends, that holds the median
 * with the confidence wanted. It assumes no distribution, so a few pairs that a busy machine spoiled do not move it.
 */
export function medianInterval(sample: readonly number[]): readonly [number, number] | undefined {
  const sorted = sample.toSorted((a, b) => a - b);
  const count = sorted.length;
  // The number of values below the true median is distributed like heads in `count` tosses of a coin.
  let probability = 0.5 ** count;
  let below = 0;
  let rank = -1;
  while (rank + 1 < count / 2 && 2 * (below + probability) <= 1 - confidence) {
    rank += 1;
    below += probability;
    probability *= (count - rank) / (rank + 1);
  }
  const low = sorted[rank];
  const high = sorted[count - 1 - rank];
  return low === undefined || high === undefined ? undefined : [low, high];
}
