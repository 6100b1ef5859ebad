import { expect, test } from 'vitest';
import { defaultCluster } from '../../../../core/configuration/parse.ts';
import { environmentNames, parseSettings } from '../../../../lambdas/attest/env.ts';

const cluster = {
  ...defaultCluster('prod', { maxTtlSeconds: 3_600 }),
  attestation: { audience: 'a', addressRanges: [] },
};
const good = { COUNTERSIGN_CLUSTER: 'prod', COUNTERSIGN_ATTESTATIONS_TABLE: 'prod-state-Attestations-ABC' };

test('what the infrastructure sets is read, and nothing else is', () => {
  expect(parseSettings({ ...good, COUNTERSIGN_LOG_LEVEL: 'error', COUNTERSIGN_CA_KEYS: 'x' }, cluster)).toEqual({
    ok: true,
    settings: { attestationsTable: 'prod-state-Attestations-ABC', logLevel: 'error' },
  });
  expect(parseSettings({ ...good, COUNTERSIGN_LOG_LEVEL: '' }, cluster)).toMatchObject({
    settings: { logLevel: 'info' },
  });
  expect(Object.values(environmentNames)).toEqual(expect.arrayContaining(Object.keys(good)));
});

test.each([
  ['no cluster', { COUNTERSIGN_CLUSTER: '' }, 'COUNTERSIGN_CLUSTER is not set'],
  [
    'another cluster than the bundle’s',
    { COUNTERSIGN_CLUSTER: 'test' },
    'COUNTERSIGN_CLUSTER is test, and the bundle has the rules of prod',
  ],
  ['no table', { COUNTERSIGN_ATTESTATIONS_TABLE: undefined }, 'COUNTERSIGN_ATTESTATIONS_TABLE is not set'],
  [
    'a log level nobody knows',
    { COUNTERSIGN_LOG_LEVEL: 'debug' },
    'COUNTERSIGN_LOG_LEVEL is none of info, warn, error',
  ],
])('%s: said by name', (_, change, problem) => {
  expect(parseSettings({ ...good, ...change }, cluster)).toEqual({ ok: false, problems: [problem] });
});

test('a bundle without rules about attestation must not serve; everything that is wrong is said at once', () => {
  const bare = defaultCluster('prod', { maxTtlSeconds: 3_600 });
  expect(parseSettings({}, bare)).toEqual({
    ok: false,
    problems: [
      'COUNTERSIGN_CLUSTER is not set',
      'the bundle has no rules about attestation',
      'COUNTERSIGN_ATTESTATIONS_TABLE is not set',
    ],
  });
});
