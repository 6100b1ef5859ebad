import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

/**
 * Test files at once. Two even where there are two processors only: servers start, leases run out and certificates fall
 * due in half of their time. No more than four anywhere: a file may well have an API server and an emulator of its own.
 */
const maxWorkers = Math.min(4, Math.max(2, Math.floor(availableParallelism() / 2)));

/** unit: no network but loopback, seconds. suites: real components, which are begun first, since they take longer. */
export default defineConfig({
  test: {
    passWithNoTests: false,
    reporters: ['default'],
    projects: [
      {
        test: {
          name: 'unit',
          include: ['test/unit/**/*.test.ts'],
          maxWorkers,
          // However busy the machine: none of them waits for anything that takes longer.
          testTimeout: 60_000,
        },
      },
      {
        test: {
          name: 'suites',
          include: ['test/suites/**/*.test.ts'],
          maxWorkers,
          testTimeout: 120_000,
          hookTimeout: 180_000,
          // What servers tell of their work (metrics, logs, audit) comes a little after the work itself.
          expect: { poll: { timeout: 60_000 } },
        },
      },
    ],
  },
});
