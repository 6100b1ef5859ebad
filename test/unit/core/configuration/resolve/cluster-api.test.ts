/** `attestation.machines: clusterApi` and `attestation.clusterApi` of countersign.yaml. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { bundleAttestation, readBundledCluster } from '../../../../../core/configuration/bundled-configuration.ts';
import type { ClusterConfiguration } from '../../../../../core/configuration/model/cluster.ts';
import { parseConfiguration } from '../../../../../core/configuration/parse.ts';
import { rulesFingerprint } from '../../../../../core/configuration/rules-fingerprint.ts';

const example = readFileSync(join(import.meta.dirname, '../../../../../examples/attestation.yaml'), 'utf8');
/** The example with these keys under `attestation` of cluster prod. */
const file = (keys: string): string =>
  example.replace('    attestation:\n      # audience', `    attestation:${keys}\n      # audience`);

function problems(text: string): readonly string[] {
  const parsed = parseConfiguration(text, 'countersign.yaml');
  return (parsed.ok ? parsed.value.warnings : parsed.problem).map(({ path, message }) => `${path}: ${message}`);
}

function prodOf(keys: string): ClusterConfiguration {
  const parsed = parseConfiguration(file(keys), 'countersign.yaml');
  const prod = parsed.ok ? parsed.value.configuration.clusters.get('prod') : undefined;
  if (prod === undefined) throw new Error('the file is wrong');
  return prod;
}
const on = '\n      machines: clusterApi';

test('is off unless it is configured', () => {
  expect(prodOf('').attestation).not.toHaveProperty('clusterApi');
});

test.each([
  [on, { cluster: 'prod', namespace: 'default' }],
  [`${on}\n      clusterApi: {}`, { cluster: 'prod', namespace: 'default' }],
  [`${on}\n      clusterApi: { namespace: team-a }`, { cluster: 'prod', namespace: 'team-a' }],
  [`${on}\n      clusterApi: { cluster: prod-2.eu }`, { cluster: 'prod-2.eu', namespace: 'default' }],
])('%s', (keys, expected) => {
  const cluster = prodOf(keys);
  expect(cluster.attestation?.clusterApi).toStrictEqual(expected);
  expect(readBundledCluster(bundleAttestation(cluster)).attestation?.clusterApi).toStrictEqual(expected);
});

test('each key changes the fingerprint of the rules', () => {
  const files = [
    '',
    on,
    `${on}\n      clusterApi: { namespace: team-a }`,
    `${on}\n      clusterApi: { cluster: other }`,
  ];
  expect(new Set(files.map((keys) => rulesFingerprint(prodOf(keys)))).size).toBe(files.length);
});

test.each([
  [
    '\n      clusterApi: { cluster: prod }',
    /^clusters\.prod\.attestation\.clusterApi: has no effect without machines: clusterApi$/,
  ],
  ['\n      machines: metal3', /machines: /],
  [`${on}\n      clusterApi: { cluster: Prod }`, /clusterApi\.cluster: must be the name of a Cluster object/],
  [
    `${on}\n      clusterApi: { cluster: ${'x'.repeat(64)} }`,
    /clusterApi\.cluster: must be the name of a Cluster object/,
  ],
  [`${on}\n      clusterApi: { namespace: a.b }`, /clusterApi\.namespace: must be a DNS label/],
  [`${on}\n      clusterApi: { selector: x }`, /selector/],
])('%s is an error', (keys, message) => {
  const found = parseConfiguration(file(keys), 'countersign.yaml');
  expect(found.ok).toBe(false);
  expect(problems(file(keys)).join('\n')).toMatch(message);
});

test('gke-exec-auth-plugin names no provider ID, by which a Machine is found', () => {
  const text = example
    .replaceAll('providers: [aws]', 'providers: [aws, gce-vtpm]')
    .replaceAll(
      '    attestation:\n      aws:',
      `    attestation:${on}\n      gce-vtpm: { projects: { '1': p }, instances: [] }\n      aws:`,
    );
  expect(problems(text).join('\n')).toMatch(/clusters\.legacy\.attestation\.machines: cannot be had with gce-vtpm/);
});

test('two clusters with one Cluster object would admit the machines of each other', () => {
  const both = file(`${on}\n      clusterApi: { cluster: shared }`).replace(
    '    attestation:\n      aws:',
    `    attestation:${on}\n      clusterApi: { cluster: shared }\n      aws:`,
  );
  expect(problems(both)).toContain(
    'clusters.legacy.attestation.clusterApi: is the Cluster object default/shared, as for cluster prod: right only if they have different management clusters',
  );
  expect(problems(both.replace('{ cluster: shared }', '{ cluster: shared, namespace: team-a }')).join()).not.toMatch(
    /shared/,
  );
});
