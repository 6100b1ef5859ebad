import { setTimeout as sleep } from 'node:timers/promises';
import type { Site } from './step.ts';

/** Emulators do at once what they do at all. */
const emulatedMilliseconds = 3_000;

/**
 * Looks until something is there; undefined if it is not there after `minutes`. Stops at an error: what is not there yet is
 * no error.
 */
export async function eventually<T>(
  { emulator, pollMilliseconds }: Pick<Site, 'emulator' | 'pollMilliseconds'>,
  minutes: number,
  look: () => Promise<T | undefined>,
): Promise<T | undefined> {
  const until = Date.now() + (emulator === undefined ? minutes * 60_000 : emulatedMilliseconds);
  for (;;) {
    const found = await look();
    if (found !== undefined || Date.now() >= until) return found;
    await sleep(pollMilliseconds);
  }
}
