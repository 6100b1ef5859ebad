import { expect, test } from 'vitest';
import { defaultCluster } from '../../../../core/configuration/parse.ts';
import { MisconfigurationError } from '../../../../core/ports/errors.ts';
import { readSettings } from '../../../../lambdas/sign/env.ts';

const cluster = defaultCluster('prod', { maxTtlSeconds: 3_600 });
const arn = 'arn:aws:kms:eu-central-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab';
const good = {
  COUNTERSIGN_CLUSTER: 'prod',
  COUNTERSIGN_CERTIFICATES_TABLE: 'countersign-prod-state-Certificates-ABC',
  COUNTERSIGN_ATTESTATIONS_TABLE: 'countersign-prod-state-Attestations-ABC',
  COUNTERSIGN_CA_KEYS: JSON.stringify({ ca: arn }),
};

test('what the infrastructure sets is read', () => {
  expect(readSettings({ ...good, COUNTERSIGN_LOG_LEVEL: 'warn' }, cluster)).toEqual({
    certificatesTable: 'countersign-prod-state-Certificates-ABC',
    attestationsTable: 'countersign-prod-state-Attestations-ABC',
    caKeys: new Map([['ca', arn]]),
    logLevel: 'warn',
  });
  expect(readSettings(good, cluster)).toMatchObject({ logLevel: 'info' });
  const china = { ...good, COUNTERSIGN_CA_KEYS: JSON.stringify({ ca: arn.replace('arn:aws:', 'arn:aws-cn:') }) };
  expect(readSettings(china, cluster).caKeys.size).toBe(1);
});

test.each([
  ['no cluster', { COUNTERSIGN_CLUSTER: '' }, 'COUNTERSIGN_CLUSTER is not set'],
  [
    'another cluster than the bundle’s',
    { COUNTERSIGN_CLUSTER: 'test' },
    /is test, and the bundle has the rules of prod/,
  ],
  ['no table', { COUNTERSIGN_CERTIFICATES_TABLE: undefined }, 'COUNTERSIGN_CERTIFICATES_TABLE is not set'],
  ['no table for locks', { COUNTERSIGN_ATTESTATIONS_TABLE: '' }, 'COUNTERSIGN_ATTESTATIONS_TABLE is not set'],
  ['keys that are no JSON', { COUNTERSIGN_CA_KEYS: '{' }, /no KMS key ARN for the CA ca/],
  ['keys that are no map', { COUNTERSIGN_CA_KEYS: '[]' }, /no KMS key ARN for the CA ca/],
  ['null for keys', { COUNTERSIGN_CA_KEYS: 'null' }, /no KMS key ARN for the CA ca/],
  ['a key for another CA only', { COUNTERSIGN_CA_KEYS: JSON.stringify({ web: arn }) }, /for the CA ca/],
  ['a key that is no text', { COUNTERSIGN_CA_KEYS: '{"ca": 1}' }, /for the CA ca/],
  ['an alias', { COUNTERSIGN_CA_KEYS: JSON.stringify({ ca: arn.replace('key/', 'alias/') }) }, /for the CA ca/],
  ['a bare key id', { COUNTERSIGN_CA_KEYS: JSON.stringify({ ca: arn.split('/')[1] }) }, /for the CA ca/],
  ['an unknown log level', { COUNTERSIGN_LOG_LEVEL: 'loud' }, /COUNTERSIGN_LOG_LEVEL is not one of/],
])('%s: the error names the variable, and nothing else', (_, change, problem) => {
  const wrong = typeof problem === 'string' ? new MisconfigurationError(problem) : problem;
  expect(() => readSettings({ ...good, ...change }, cluster)).toThrow(wrong);
  expect(() => readSettings({ ...good, ...change }, cluster)).not.toThrow(/;/);
});
