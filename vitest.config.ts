import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { SlowestFirst } from './test/slowest-first.ts';
import { inContinuousIntegration } from './test/tools/tools.ts';

/**
 * Test files at once. Two even on two processors: suites wait for servers to start, leases to run out and certificates to
 * fall due as long as they work. No more than four anywhere: each may have an API server and an emulator of its own.
 */
const maxWorkers = Math.min(4, Math.max(2, Math.floor(availableParallelism() / 2)));
/** In CI a red run that means nothing costs more than some minutes. */
const maxSuites = inContinuousIntegration() ? 1 : maxWorkers;

/** unit: no network but loopback, a minute or two. suites: real components. test/README.md has the tiers. */
export default defineConfig({
  test: {
    passWithNoTests: false,
    reporters: ['default'],
    sequence: { sequencer: SlowestFirst },
    projects: [
      {
        test: {
          name: 'unit',
          include: ['test/unit/**/*.test.ts'],
          maxWorkers,
          // However busy the machine: none of them waits for anything that takes longer.
          testTimeout: 60_000,
          hookTimeout: 60_000,
          // All files of a worker run in one process, so that each library is loaded once and not 200 times.
          isolate: false,
          setupFiles: ['test/fresh-environment.ts'],
        },
      },
      {
        test: {
          name: 'suites',
          include: ['test/suites/**/*.test.ts'],
          maxWorkers: maxSuites,
          // For what hangs; how long something may take is for its own test to say.
          testTimeout: 240_000,
          hookTimeout: 300_000,
          // What servers tell of their work (metrics, logs, audit) comes a little after the work itself.
          expect: { poll: { timeout: 60_000 } },
        },
      },
    ],
  },
});
