/** A machine on which other work comes and goes, simulated: the same seed is the same day. */
export interface NoisyMachine {
  /** How many seconds so many seconds of work take. */
  run(seconds: number): number;
  /** Lets time pass. */
  pass(seconds: number): void;
}

/** What an hour of a shared virtual machine looked like: a third slower from hour to hour, a half beside other work. */
export function noisyMachine(seed: number): NoisyMachine {
  const random = generator(seed);
  const phase = random() * 2 * Math.PI;
  const period = 400 + random() * 800;
  let now = 0;
  let busyUntil = 0;
  let idleUntil = random() * 60;
  const step = 0.01;

  /** Of the machine at its best. */
  function speed(): number {
    if (now >= idleUntil && now >= busyUntil) {
      busyUntil = now + 5 + random() * 90;
      idleUntil = busyUntil + 5 + random() * 90;
    }
    const drift = 0.8 + 0.2 * Math.sin(phase + (2 * Math.PI * now) / period);
    return drift * (now < busyUntil ? 0.45 : 1);
  }

  return {
    run(seconds) {
      const begin = now;
      const jitter = 1 + 0.03 * (random() - 0.5);
      for (let left = seconds * jitter; left > 0; left -= speed() * step) now += step;
      return now - begin;
    },
    pass(seconds) {
      for (const end = now + seconds; now < end; now += step) speed();
    },
  };
}

/** mulberry32 */
function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
