import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  bundleAccess,
  bundleAttestation,
  bundleCluster,
  readBundledAccess,
  readBundledCluster,
} from '../../../../core/configuration/bundled-configuration.ts';
import { parseConfiguration } from '../../../../core/configuration/parse.ts';
import type { Configuration } from '../../../../core/configuration/model/cluster.ts';
import { ranges } from '../../../harness/attestation/address-ranges.ts';

function configuration(file: string): Configuration {
  const path = join(import.meta.dirname, '../../../../examples', file);
  const parsed = parseConfiguration(readFileSync(path, 'utf8'), path);
  if (!parsed.ok) throw new Error('the example is wrong');
  return parsed.value.configuration;
}

const { clusters, deployments } = configuration('countersign.yaml');
const { clusters: attested } = configuration('attestation.yaml');

test.each([...clusters.values()])('cluster $name comes out of the bundle as it went in', (cluster) => {
  expect(readBundledCluster(bundleCluster(cluster))).toStrictEqual(cluster);
});

describe('of a cluster whose nodes prove themselves', () => {
  test.each([...attested.values()])('$name: each function has what it obeys and nothing else', (cluster) => {
    const { attestation, ...rest } = cluster;
    if (attestation?.aws === undefined) throw new Error('the example attests nothing');
    expect(readBundledCluster(bundleCluster(cluster))).toStrictEqual(rest);
    expect(readBundledCluster(bundleAttestation(cluster))).toStrictEqual({
      ...cluster,
      cas: new Map(),
      approval: new Map(),
    });
    // Which machines may join is no business of the function that holds the key.
    for (const account of attestation.aws.accounts.keys()) expect(bundleCluster(cluster)).not.toContain(account);
  });

  test('maps come back as maps, all of them', () => {
    const [cluster] = attested.values();
    const aws = cluster?.attestation?.aws;
    if (cluster?.attestation === undefined || aws === undefined) throw new Error('the example attests nothing');
    const full = {
      ...cluster,
      attestation: { ...cluster.attestation, aws: { ...aws, certificates: new Map([['eu-central-1', ['pem']]]) } },
    };
    expect(readBundledCluster(bundleAttestation(full)).attestation).toStrictEqual(full.attestation);
    const attestation = { audience: 'demo', retireTerminated: false, addressRanges: ranges('10.9.0.0/24') };
    const insecure = { ...cluster, attestation };
    expect(readBundledCluster(bundleAttestation(insecure)).attestation).toStrictEqual(insecure.attestation);
  });
});

test('who may call is in no bundle but the authorizer’s', () => {
  const jwt = deployments.get('prod')?.access.jwt;
  if (jwt === undefined) throw new Error('the example shows no tokens');
  expect(readBundledAccess(bundleAccess({ cluster: 'prod', jwt }))).toStrictEqual({ cluster: 'prod', jwt });
  for (const cluster of clusters.values()) expect(bundleCluster(cluster)).not.toContain(jwt.audience);
});
