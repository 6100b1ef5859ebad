/**
 * Where node client certificates take a proof of the machine, no other signer gives what they give: each enabled one,
 * configured as wide as it can be, is asked for a control-plane node and for the group above all authorization.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parseConfiguration } from '../../../../core/configuration/parse.ts';
import type { ClusterConfiguration } from '../../../../core/configuration/model/cluster.ts';
import { knownUsages } from '../../../../core/x509/key-usages.ts';
import { byTier } from '../../../harness/determinism/tier.ts';
import { csrFixture, startStack } from './stack.ts';
import type { Stack } from './stack.ts';

const every = `[${knownUsages.filter((usage) => usage !== 'cert sign').join(', ')}]`;
const anything = `{users: ['*'], groups: ['*']}`;
const wide = `ca: ca, requester: ${anything}, usages: {allowed: ${every}}, sans: {dns: ['*'], ip: ['0.0.0.0/0'], uri: ['spiffe://*']}`;
const text = `version: 1
clusters:
  demo:
    cas: {ca: {subject: {commonName: CA}}, other: {subject: {commonName: Other}}}
    profiles:
      cluster.x-k8s.io/kube-apiserver-client-kubelet-aws: {ca: ca, requester: ${anything}}
      cluster.x-k8s.io/kubelet-serving-aws: {ca: ca, requester: ${anything}}
      kubernetes.io/kubelet-serving: {ca: ca, requester: ${anything}}
      kubernetes.io/kube-apiserver-client: {ca: ca, requester: ${anything}, subject: {allowReserved: [system:kube-scheduler]}}
      kubernetes.io/legacy-unknown: {ca: ca, requester: ${anything}}
      k8s.example.com/anything: {${wide}, subject: {commonNames: ['*'], organizations: ['*']}}
      k8s.example.com/elsewhere:
        {${wide.replace('ca: ca', 'ca: other')}, subject: {commonNames: ['*'], organizations: ['*'], allowReserved: [system:kube-scheduler]}}
    attestation:
      audience: demo
      aws: {accounts: {'111122223333': {}}, regions: [eu-central-1], tags: {a: b}, nodeName: ['pattern:cp-*']}
`;

const parsed = parseConfiguration(text, 'countersign.yaml');
const cluster: ClusterConfiguration | undefined = parsed.ok
  ? parsed.value.configuration.clusters.get('demo')
  : undefined;
if (cluster === undefined) throw new Error(JSON.stringify(parsed));

let stack: Stack;
beforeAll(async () => {
  stack = await startStack({ cluster: () => cluster });
});
afterAll(() => stack.close());

const usageSets: readonly (readonly string[])[] = [
  ['digital signature', 'client auth'],
  ['digital signature', 'key encipherment', 'client auth'],
  ['digital signature', 'server auth'],
  ['digital signature', 'client auth', 'server auth'],
  [],
  ...knownUsages.map((usage) => [usage]),
];
const subjects = [
  { O: 'system:nodes', CN: 'system:node:cp-1' },
  { O: ['system:nodes', 'system:nodes'], CN: 'system:node:cp-1' },
  { O: ['system:nodes', 'dev'], CN: 'system:node:cp-1' },
  { CN: 'system:node:cp-1' },
  { O: 'system:nodes', CN: 'alice' },
  { O: 'system:masters', CN: 'alice' },
  { O: ['dev', 'system:masters'], CN: 'alice' },
  { O: ['system:nodes', 'system:masters'], CN: 'system:node:cp-1' },
  { CN: 'system:masters' },
];
const names = [{}, { dns: ['cp-1'] }];

/** A serving certificate of a node is no login; whose names it may hold is judged elsewhere. */
function isServing(signer: string, usages: readonly string[]): boolean {
  return signer.includes('kubelet-serving') && !usages.some((usage) => usage === 'client auth' || usage === 'any');
}

test.each([...cluster.profiles.keys()])('%s gives neither a node nor system:masters', async (signerName) => {
  const given: unknown[] = [];
  let [asked, number] = [0, 0];
  // In the default tier a fifth: all subjects, all sets of usages, not each with each.
  const stride = byTier({ default: 5, deep: 1 });
  for (const subject of subjects)
    for (const sans of names)
      for (const usages of usageSets) {
        number += 1;
        if (number % stride !== 0) continue;
        const masters = JSON.stringify(subject).includes('system:masters');
        if (!masters && (isServing(signerName, usages) || signerName.includes('client-kubelet'))) continue;
        asked += 1;
        const csr = csrFixture({ request: { subject, sans }, spec: { signerName, usages, username: 'system:admin' } });
        const answer = await stack.post(csr);
        if (answer.headers['x-countersign-outcome'] !== 'refused')
          given.push([subject, sans, usages, answer.statusCode]);
      }
  expect(given).toEqual([]);
  expect(asked).toBeGreaterThan(150 / stride);
  expect(stack.signatures()).toBe(0);
});

test('the same signers do give what they are for', async () => {
  for (const [signerName, usages] of [
    ['kubernetes.io/kube-apiserver-client', ['client auth']],
    ['kubernetes.io/legacy-unknown', ['client auth']],
    ['k8s.example.com/anything', ['client auth']],
    ['k8s.example.com/elsewhere', ['any']],
  ] as const)
    expect(
      (await stack.post(csrFixture({ request: { subject: { O: 'dev', CN: 'alice' } }, spec: { signerName, usages } })))
        .statusCode,
      signerName,
    ).toBe(200);
});
