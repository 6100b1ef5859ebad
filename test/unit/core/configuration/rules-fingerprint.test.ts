import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { bundleCluster, readBundledFingerprint } from '../../../../core/configuration/bundled-configuration.ts';
import { parseConfiguration } from '../../../../core/configuration/parse.ts';
import { rulesFingerprint } from '../../../../core/configuration/rules-fingerprint.ts';

const example = readFileSync(join(import.meta.dirname, '../../../../examples/attestation.yaml'), 'utf8');

function fingerprints(text: string): Readonly<Record<string, string>> {
  const parsed = parseConfiguration(text, 'countersign.yaml');
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problem));
  const { clusters } = parsed.value.configuration;
  return Object.fromEntries([...clusters].map(([name, cluster]) => [name, rulesFingerprint(cluster)]));
}

const file = (cluster: string, others = ''): string => `version: 1
clusters:
  prod:
${cluster.replaceAll(/^/gm, '    ')}
${others}`;
const cas = 'cas: { ca: { subject: { commonName: prod CA } } }';
const [serving, client] = ['kubernetes.io/kubelet-serving', 'kubernetes.io/kube-apiserver-client'];
const base = file(`${cas}
profiles:
  ${serving}: { maxTtl: 30d }
  ${client}: { maxTtl: 12h, subject: { organizations: [developers, support] } }
reservedAddresses: [10.96.0.0/12]`);
const { prod: expected } = fingerprints(base);

test('is SHA-256 in hex', () => {
  expect(expected).toMatch(/^[0-9a-f]{64}$/);
});

test.each([
  [
    'the order of keys',
    file(`reservedAddresses: [10.96.0.0/12]
profiles:
  ${client}: { subject: { organizations: [developers, support] }, maxTtl: 12h }
  ${serving}: { maxTtl: 30d }
${cas}`),
  ],
  ['a comment, and a default that is written out', base.replace('{ maxTtl: 30d }', '{ maxTtl: 720h } # thirty days')],
  ['another cluster', `${base}  other:\n    ${cas.replace('prod', 'other')}\n    profiles: { ${serving}: {} }\n`],
  ['how it is deployed', `${base}    aws: { account: '999900001111', region: eu-central-1 }\n`],
])('%s does not change it', (_, text) => {
  expect(fingerprints(text)['prod']).toBe(expected);
});

test.each([
  ['a lifetime', base.replace('30d', '31d')],
  ['a subject', base.replace('support', 'supporters')],
  ['a reserved range', base.replace('10.96.0.0/12', '10.96.0.0/13')],
  ['the name of a CA', base.replace('prod CA', 'prod CA 2')],
  [
    'an approval',
    `${base}    approval: { ${client}-kubelet: approve }\n`.replace(
      `${serving}:`,
      `${client}-kubelet: {}\n      ${serving}:`,
    ),
  ],
  ['the name of the cluster', base.replace('  prod:', '  live:')],
])('%s changes it', (_, text) => {
  const [changed] = Object.values(fingerprints(text));
  expect(changed).toMatch(/^[0-9a-f]{64}$/);
  expect(changed).not.toBe(expected);
});

test('a rule that only attest or the ca function enforces changes it too', () => {
  const before = fingerprints(example);
  const after = fingerprints(example.replace(/regions: \[([^\]]+)\]/, 'regions: [$1, us-west-2]'));
  expect(Object.values(after)).not.toEqual(Object.values(before));
  const kubeadm = (name: string): string => `${base}    kubeadm:
      cas: { kubernetes: ca }
      apiServerNames: [${name}]
      nodes: { cp-1: [10.0.0.1] }
`;
  expect(fingerprints(kubeadm('api.example.com'))).not.toEqual(fingerprints(kubeadm('api.example.net')));
});

test('the sign function, which has only a part of the rules, has the value of all', () => {
  const parsed = parseConfiguration(example, 'countersign.yaml');
  if (!parsed.ok) throw new Error('the example is wrong');
  for (const cluster of parsed.value.configuration.clusters.values())
    expect(readBundledFingerprint(bundleCluster(cluster))).toBe(rulesFingerprint(cluster));
});
