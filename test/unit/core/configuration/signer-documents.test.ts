import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { defaultCluster, parseConfiguration } from '../../../../core/configuration/parse.ts';
import type { ClusterConfiguration } from '../../../../core/configuration/model/cluster.ts';
import { signerDocuments } from '../../../../core/configuration/signer-documents.ts';

const page = join(import.meta.dirname, '../../../../docs/signers.md');

const headings = [
  'Trust distribution',
  'Permitted subjects',
  'Permitted x509 extensions',
  'Permitted key usages and extended key usages',
  'Expiration and certificate lifetime',
  'CA bit',
  'Further CERTIFICATE blocks',
];

function custom(profile: string): ClusterConfiguration {
  const parsed = parseConfiguration(
    `version: 1
clusters:
  prod:
    cas: {web: {subject: {commonName: Web}}}
    profiles: {k8s.example.com/web: ${profile}}`,
    'countersign.yaml',
  );
  const cluster = parsed.ok ? parsed.value.configuration.clusters.get('prod') : undefined;
  if (cluster === undefined) throw new Error(JSON.stringify(parsed));
  return cluster;
}

test('docs/signers.md shows what the default cluster does', () => {
  const text = readFileSync(page, 'utf8');
  const documents = signerDocuments(defaultCluster('demo'));
  // To mend: put the output of `countersign config docs` below the comment.
  expect(text.slice(text.indexOf('-->') + 5)).toBe(documents);
});

test('docs/signers.md has a place for every deviation the rules name', () => {
  const text = readFileSync(page, 'utf8');
  const numbered = [...text.matchAll(/^(\d+)\. \*\*/gm)].map(([, number]) => Number(number));
  expect(numbered).toEqual(Array.from({ length: numbered.length }, (_, index) => index + 1));
  const folder = join(import.meta.dirname, '../../../../core/policy');
  const rules = ['check-profile', 'general-rules', 'subject-rules', 'serving-rules'].map((file) =>
    readFileSync(join(folder, `${file}.ts`), 'utf8'),
  );
  const named = [...rules.join('').matchAll(/[Dd]eviations? ((?:\d+(?:, | and )?)+)/g)].flatMap(([, list = '']) =>
    (list.match(/\d+/g) ?? []).map(Number),
  );
  expect(named.length).toBeGreaterThan(8);
  for (const number of named) expect(numbered).toContain(number);
});

test('every signer has the seven headings, in order', () => {
  const chapters = signerDocuments(defaultCluster('demo', { maxTtlSeconds: 3600 }))
    .split(/^## /m)
    .slice(1);
  expect(chapters.map((chapter) => chapter.split('\n')[0])).toEqual([
    'kubernetes.io/kube-apiserver-client',
    'kubernetes.io/kube-apiserver-client-kubelet',
    'kubernetes.io/kubelet-serving',
    'kubernetes.io/legacy-unknown',
  ]);
  for (const chapter of chapters)
    expect([...chapter.matchAll(/^### (.*)$/gm)].map(([, heading]) => heading)).toEqual(headings);
});

describe('the document follows the profile', () => {
  const usages = 'usages: {allowed: [digital signature, server auth], required: [server auth]}';
  test.each([
    ['the lifetime', `{${usages}, sans: {dns: [a]}, maxTtl: 90m}`, 'At most 90 minutes,'],
    ['a lifetime of days', `{${usages}, sans: {dns: [a]}, maxTtl: 720h}`, 'At most 30 days,'],
    ['one hour', `{${usages}, sans: {dns: [a]}, maxTtl: 60m}`, 'At most 1 hour,'],
    [
      'a lifetime below the usual minimum',
      `{${usages}, sans: {dns: [a]}, maxTtl: 61s}`,
      'no lifetime is shorter than 61 seconds',
    ],
    ['keys', `{${usages}, sans: {dns: [a]}, keys: [P-256]}`, 'Keys: P-256; anything else is refused'],
    [
      'requesters',
      `{${usages}, sans: {dns: [a]}, requester: {users: [alice], groups: ['team-*']}}`,
      'Only the users `alice` and members of the groups `team-*` may use it',
    ],
    [
      'common names',
      `{${usages}, subject: {commonNames: ['web-*'], commonNameRequired: true}}`,
      '- common name: `web-*`; required',
    ],
    [
      'system names',
      `{${usages}, subject: {allowReserved: ['system:web']}}`,
      'this signer issues only `system:web` of those, and refuses the others, `NameReserved`',
    ],
    [
      'no system names',
      `{${usages}, sans: {dns: [a]}}`,
      'this signer issues none of those, and refuses the others, `NameReserved`',
    ],
    ['blocks', `{${usages}, sans: {ip: [10.0.0.0/8]}}`, '- IP addresses: `10.0.0.0/8`'],
    [
      'names required',
      `{${usages}, sans: {uri: ['spiffe://a/*'], required: true}}`,
      'At least one subjectAltName of these:',
    ],
    [
      'usages',
      `{${usages}, sans: {dns: [a]}}`,
      'Any of `digital signature`, `server auth`, at least one extended usage among them. Required: `server auth`.',
    ],
    [
      'the CA',
      `{${usages}, sans: {dns: [a]}}`,
      'trusts CA `web` (`GET /v1/clusters/prod/trust-bundles`; during a rotation old and new)',
    ],
  ])('%s', (_, profile, expected) => {
    expect(signerDocuments(custom(profile))).toContain(expected);
  });
});

describe('of signers with attestation', () => {
  const file = join(import.meta.dirname, '../../../../examples/attestation.yaml');
  const parsed = parseConfiguration(readFileSync(file, 'utf8'), file);
  const clusters = parsed.ok ? parsed.value.configuration.clusters : new Map<string, ClusterConfiguration>();
  const chapter = (cluster: string, signer: string): string =>
    signerDocuments(clusters.get(cluster) ?? defaultCluster('none', { maxTtlSeconds: 60 }))
      .split(/^## /m)
      .find((text) => text.startsWith(`${signer}\n`)) ?? '';
  const attested = chapter('prod', 'cluster.x-k8s.io/kube-apiserver-client-kubelet-aws');
  const serving = chapter('prod', 'kubernetes.io/kubelet-serving');
  const audited = chapter('legacy', 'kubernetes.io/kube-apiserver-client-kubelet');

  test.each([
    ['who approves', attested, 'A request is approved by the watch-relay with evidence of the machine, and denied'],
    [
      'who may ask',
      attested,
      'members of the groups `system:bootstrappers`, `system:bootstrappers:*` and the node itself',
    ],
    ['what proof', attested, 'Demands attestation: the request holds evidence of `aws`.'],
    ['fresh keys', attested, 'A key that was certified before is refused, `KeyReused`.'],
    ['codes that are not in-tree ones', attested, 'Otherwise refused: `SubjectNotPermitted`, and `NameReserved`'],
    ['a stock kubelet without evidence', serving, '`aws`, or comes from a node whose machine is on record.'],
    ['whose names they are', serving, 'Otherwise refused, `NameNotOwned`.'],
    ['in-tree codes of in-tree signers', serving, 'is refused: `SignerValidationFailure`.'],
    ['audit', audited, 'Failures are only counted (audit mode) and refuse nothing.'],
    [
      'who approves meanwhile',
      audited,
      'Countersign never approves its requests. Any requester may use it; the request must be approved.',
    ],
  ])('%s', (_, text, expected) => {
    expect(text).toContain(expected);
  });

  test('the Machine that must stand behind the machine, if one must', () => {
    expect(attested).not.toContain('Machine');
    const prod = clusters.get('prod');
    if (prod?.attestation === undefined) throw new Error('the example attests nothing');
    const clusterApi = { cluster: 'prod-1', namespace: 'fleet' };
    const text = signerDocuments({ ...prod, attestation: { ...prod.attestation, clusterApi } });
    expect(text).toContain('A Machine or MachinePool of Cluster `fleet/prod-1` must stand behind the machine.');
    expect(text).toContain('`Revoked`, `Machine…`, `AttestorNotAuthorized`.');
  });

  test('no in-tree code where no in-tree signer would answer', () => {
    expect(attested).not.toContain('SignerValidationFailure');
  });
});
