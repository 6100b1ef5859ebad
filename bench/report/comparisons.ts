/** How many times as fast one contender is as another, from the turns of the same rounds. */
import type { PhaseResult, PhaseRow } from '../results.ts';
import { pairedRatio } from '../measure/statistics.ts';
import type { PairedRatio } from '../measure/statistics.ts';

export interface Comparison {
  readonly phase: string;
  readonly label: string;
  readonly than: string;
  /** The ratio of speeds: above 1, `label` is faster. */
  readonly speed: PairedRatio;
}

/** Compares each contender with each later one. A round in which only one of the two had a turn does not count. */
export function comparisonsOf({ name, compared, rows }: PhaseResult): readonly Comparison[] {
  return rows.flatMap((row, index) =>
    rows.slice(index + 1).map((other) => {
      const pairs = pairsOf(row, other, compared);
      const speed = pairedRatio(
        pairs.map(({ theirs }) => theirs),
        pairs.map(({ ours }) => ours),
      );
      return { phase: name, label: row.label, than: other.label, speed };
    }),
  );
}

function pairsOf(
  row: PhaseRow,
  other: PhaseRow,
  compared: PhaseResult['compared'],
): readonly { readonly ours: number; readonly theirs: number }[] {
  const theirs = new Map(other.turns.map((turn) => [turn.round, turn[compared]]));
  return row.turns.flatMap((turn) => {
    const their = theirs.get(turn.round);
    return their === undefined ? [] : [{ ours: turn[compared], theirs: their }];
  });
}
