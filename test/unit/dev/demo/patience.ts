/** The patience of a demo, which ends at a moment of the test's and not of a clock. */
export interface Patience {
  readonly signal: AbortSignal;
  /** At the last of `calls` patience is over. */
  readonly spend: () => void;
}

export function patienceFor(calls: number): Patience {
  const over = new AbortController();
  let spent = 0;
  return {
    signal: over.signal,
    spend() {
      spent += 1;
      if (spent === calls) over.abort(new DOMException('patience is over', 'TimeoutError'));
    },
  };
}
