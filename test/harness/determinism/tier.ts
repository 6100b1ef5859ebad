/**
 * Which tier of the tests runs. `npm test` runs the default tier in ten minutes, `npm run test:deep` the deep tier. The test
 * command sets the environment variable. A suite that both tiers list (`deep` in test/suites.json) reads its sizes here.
 */
export type Tier = 'default' | 'deep';

/** A file that vitest runs without the test command is in the default tier. */
export const tier: Tier = process.env['COUNTERSIGN_TEST_TIER'] === 'deep' ? 'deep' : 'default';

export function byTier<T>(values: Readonly<Record<Tier, T>>): T {
  return values[tier];
}

/** For `test.each(onlyDeep)(…)`: a test that the default tier does not have. A skipped one would look like a missing tool. */
export const onlyDeep: readonly Tier[] = byTier({ default: [], deep: ['deep'] });
