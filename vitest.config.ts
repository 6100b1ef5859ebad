import { defineConfig } from 'vitest/config';

/** unit: no network but loopback, seconds. suites: real components, one file after the other on a two-core machine. */
export default defineConfig({
  test: {
    passWithNoTests: false,
    reporters: ['default'],
    projects: [
      {
        test: {
          name: 'unit',
          include: ['test/unit/**/*.test.ts'],
          testTimeout: 20_000,
        },
      },
      {
        test: {
          name: 'suites',
          include: ['test/suites/**/*.test.ts'],
          fileParallelism: false,
          testTimeout: 120_000,
          hookTimeout: 180_000,
        },
      },
    ],
  },
});
