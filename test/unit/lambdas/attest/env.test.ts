import { describe, expect, test } from 'vitest';
import { defaultCluster } from '../../../../core/configuration/parse.ts';
import { MisconfigurationError } from '../../../../core/ports/errors.ts';
import { readSettings } from '../../../../lambdas/attest/env.ts';

const cluster = {
  ...defaultCluster('prod', { maxTtlSeconds: 3_600 }),
  attestation: { audience: 'a', retireTerminated: true, addressRanges: [] },
};
const good = { COUNTERSIGN_CLUSTER: 'prod', COUNTERSIGN_ATTESTATIONS_TABLE: 'countersign-prod-state-Attestations-ABC' };

test('what the infrastructure sets is read, and nothing else is', () => {
  expect(readSettings({ ...good, COUNTERSIGN_LOG_LEVEL: 'error', COUNTERSIGN_CA_KEYS: 'x' }, cluster)).toEqual({
    attestationsTable: 'countersign-prod-state-Attestations-ABC',
    logLevel: 'error',
  });
  expect(readSettings({ ...good, COUNTERSIGN_LOG_LEVEL: '' }, cluster)).toMatchObject({ logLevel: 'info' });
});

test.each([
  ['no cluster', { COUNTERSIGN_CLUSTER: '' }, 'COUNTERSIGN_CLUSTER is not set'],
  [
    'another cluster than the bundle’s',
    { COUNTERSIGN_CLUSTER: 'test' },
    'COUNTERSIGN_CLUSTER is test, and the bundle has the rules of prod',
  ],
  ['no table', { COUNTERSIGN_ATTESTATIONS_TABLE: undefined }, 'COUNTERSIGN_ATTESTATIONS_TABLE is not set'],
  ['an unknown log level', { COUNTERSIGN_LOG_LEVEL: 'debug' }, 'COUNTERSIGN_LOG_LEVEL is not one of info, warn, error'],
])('%s: the error names the variable', (_, change, problem) => {
  expect(() => readSettings({ ...good, ...change }, cluster)).toThrow(new MisconfigurationError(problem));
});

test('the error has every problem, also a variable that leads calls away from AWS', () => {
  expect(() => readSettings({ AWS_ENDPOINT_URL: 'https://aws.example' }, cluster)).toThrow(
    /^AWS_ENDPOINT_URL is set, .*; COUNTERSIGN_CLUSTER is not set; COUNTERSIGN_ATTESTATIONS_TABLE is not set$/,
  );
});

describe('the challenge key', () => {
  const attestation = {
    audience: 'demo',
    retireTerminated: true,
    addressRanges: [],
    tpm: { machines: 'listed' } as never,
  };
  const challenging = { ...cluster, attestation };
  const COUNTERSIGN_CHALLENGE_KEY = 'arn:aws:kms:eu-central-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab';

  test('is what a cluster with a TPM is told, and no other cluster', () => {
    const told = { ...good, COUNTERSIGN_CHALLENGE_KEY };
    expect(readSettings(told, challenging).challengeKey).toBe(COUNTERSIGN_CHALLENGE_KEY);
    expect(readSettings(told, cluster)).not.toHaveProperty('challengeKey');
  });

  test.each([undefined, '', 'alias/challenge', '1234abcd-12ab-34cd-56ef-1234567890ab'])('is not %j', (value) => {
    expect(() => readSettings({ ...good, COUNTERSIGN_CHALLENGE_KEY: value }, challenging)).toThrow(
      new MisconfigurationError('COUNTERSIGN_CHALLENGE_KEY is not the ARN of a KMS key'),
    );
  });
});
