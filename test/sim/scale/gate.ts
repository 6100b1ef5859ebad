/** When the last of many requests can be through a quota on its way, with any client. */

/** A quota, and what needs it. */
export interface Gate {
  readonly name: string;
  readonly perSecond: number;
  readonly burst: number;
  /** How much each one takes of it. */
  readonly each: number;
  /** When each one may be there at the earliest, in seconds and rising. */
  readonly asks: readonly number[];
  /** Whole minutes after which it may have become twice as wide. */
  readonly doublesInMinutes?: readonly number[];
}

/** Seconds in which nothing passes but those, at most, who were half through when it began or are when it ends. */
export interface Closed {
  readonly from: number;
  readonly to: number;
  readonly underWay: number;
}

/** The earliest moment at which the last one can be through. */
export function throughAt(gate: Gate, closed?: Closed): number {
  const { asks, each, burst, perSecond } = gate;
  let last = 0;
  for (const [number, asked] of asks.entries()) {
    // From here on there are so many, and not one can have passed before.
    const amount = (asks.length - number) * each;
    let from = asked;
    let left = amount - burst * widthAt(gate, asked);
    if (closed !== undefined && asked < closed.to) {
      const before = asked < closed.from ? burst + (closed.from - asked) * perSecond : 0;
      if (amount > before) {
        from = closed.to;
        left = amount - before - closed.underWay * each - burst;
      }
    }
    last = Math.max(last, from + secondsFor(gate, Math.max(0, left), from));
  }
  return last;
}

/** What is added later is empty at first, so that only the time counts from there. */
function secondsFor(gate: Gate, amount: number, from: number): number {
  let left = amount;
  for (let at = from; ;) {
    const rate = gate.perSecond * widthAt(gate, at);
    const next = gate.doublesInMinutes === undefined ? Number.POSITIVE_INFINITY : 60 * (Math.floor(at / 60) + 1);
    if (left <= rate * (next - at)) return at - from + left / rate;
    left -= rate * (next - at);
    at = next;
  }
}

function widthAt({ doublesInMinutes = [] }: Gate, at: number): number {
  return 2 ** doublesInMinutes.reduce((sum, each) => sum + Math.floor(at / 60 / each), 0);
}
