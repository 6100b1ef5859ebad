/** What docs/cost.md says a cluster pays for whether it issues or not, counted in the templates. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ofType, root, synthesise } from './synthesis.ts';

const page = readFileSync(join(root, 'docs/cost.md'), 'utf8');

const iam = "iam: {principals: ['arn:aws:iam::444455556666:role/relay']}";
const jwt = "jwt: {issuer: https://issuer.example.com, audience: a, subjects: ['system:serviceaccount:a:b']}";
const cluster = (name: string, access: readonly string[], more = '', cas = ['ca']): string => `
  ${name}:
    cas: {${cas.map((ca) => `${ca}: {subject: {commonName: ${ca}}}`).join(', ')}}
    profiles: {kubernetes.io/kubelet-serving: {ca: ${cas[0]}}}
    access: {${access.join(', ')}}
    ${more}`;
const serving = 'kubernetes.io/kubelet-serving: {ca: ca';
const attestation =
  "attestation: {audience: a, aws: {accounts: {'111122223333': {}}, regions: [eu-central-1], tags: {a: b}, nodeName: [instanceId]}}";
const { templates } = synthesise(
  `version: 1\nclusters:${[
    cluster('iam', [iam]),
    cluster('url', [iam], 'frontDoor: functionUrl'),
    cluster('jwt', [jwt]),
    cluster('both', [iam, jwt]),
    cluster('two', [iam], '', ['ca', 'other']),
    cluster('proof', [iam], attestation).replace(serving, `${serving}, attestation: {providers: [aws]}`),
    cluster('fresh', [iam]).replace(serving, `${serving}, freshKeys: true`),
  ].join('')}\n`,
);
const count = (name: string, type: string): number =>
  [name, `${name}-state`].reduce((sum, stack) => sum + ofType(templates.get(stack)!, type).length, 0);
const alarms = (name: string): number => count(name, 'AWS::CloudWatch::Alarm');

test('as many alarms as the stacks have, at ten cents', () => {
  const row =
    /^\| CloudWatch alarms: (\d+) with IAM, (\d+) with JWT, (\d+) with both; (\d+) for each further CA \| 0\.10 each \| \| ([\d.]+) to ([\d.]+) \|$/m;
  const [, ...numbers] = row.exec(page) ?? [];
  const [ofIam, ofJwt, ofBoth, ofCa, least, most] = numbers.map(Number);
  expect([alarms('iam'), alarms('jwt'), alarms('both')]).toEqual([ofIam, ofJwt, ofBoth]);
  expect(alarms('url')).toBe(ofIam);
  expect(alarms('two') - alarms('iam')).toBe(ofCa);
  expect([least, most].map((dollars) => dollars!.toFixed(2))).toEqual(
    [alarms('iam'), alarms('both')].map((each) => (each * 0.1).toFixed(2)),
  );
});

test('and as many more where more can be refused', () => {
  const row =
    /^\| (\d+) more where machines prove themselves, (\d+) where keys must be fresh \| 0\.10 each \| \| ([\d.]+) or ([\d.]+) \|$/m;
  const [ofProof, ofFresh, one, both] = (row.exec(page) ?? []).slice(1).map(Number);
  expect([alarms('proof') - alarms('iam'), alarms('fresh') - alarms('iam')]).toEqual([ofProof, ofFresh]);
  expect([one, both].map((dollars) => Math.round(dollars! * 10))).toEqual([ofProof, ofProof! + ofFresh!]);
});

test('a month without certificates: the key, the alarms, the one metric that is always published', () => {
  expect(count('iam', 'AWS::KMS::Key')).toBe(1);
  const [, together] = /^\| \*\*together, one CA, P-256\*\* .*\*\*about (\d+)\*\* \|$/m.exec(page) ?? [];
  expect(Number(together)).toBe(Math.round(1 + alarms('both') * 0.1 + 0.3));
});

test('tables are paid by use, and no function waits for money', () => {
  expect(
    ofType(templates.get('iam-state')!, 'AWS::DynamoDB::Table').map(([, of]) => of.Properties['BillingMode']),
  ).toEqual(['PAY_PER_REQUEST', 'PAY_PER_REQUEST']);
  expect(JSON.stringify(templates.get('both'))).not.toContain('ProvisionedConcurren');
});
