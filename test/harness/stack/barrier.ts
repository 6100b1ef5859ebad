/** Holds every caller until `count` have arrived, then lets all go at once; later callers pass. */
export interface Barrier {
  pass(): Promise<void>;
  /** How many have been held. */
  readonly held: number;
  /** When so many have come. */
  arrived(count: number): Promise<void>;
}

export function createBarrier(count: number): Barrier {
  let held = 0;
  let wake = (): void => {};
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => (open = resolve));
  return {
    get held() {
      return held;
    },
    async pass() {
      if (held === count) return;
      held += 1;
      wake();
      if (held === count) open();
      await opened;
    },
    async arrived(wanted) {
      while (held < wanted) await new Promise<void>((resolve) => (wake = resolve));
    },
  };
}
