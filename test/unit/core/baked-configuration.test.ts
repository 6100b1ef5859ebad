import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { bakeAccess, bakeCluster, readBakedAccess, readBakedCluster } from '../../../core/baked-configuration.ts';
import { parseConfiguration } from '../../../core/configuration.ts';

const example = join(import.meta.dirname, '../../../examples/countersign.yaml');
const parsed = parseConfiguration(readFileSync(example, 'utf8'), example);
if (!parsed.ok) throw new Error('the example is wrong');
const { clusters, deployments } = parsed.configuration;

test.each([...clusters.values()])('cluster $name comes out of the bundle as it went in', (cluster) => {
  expect(readBakedCluster(bakeCluster(cluster))).toStrictEqual(cluster);
});

test('who may call is in no bundle but the authorizer’s', () => {
  const jwt = deployments.get('prod')?.access.jwt;
  if (jwt === undefined) throw new Error('the example shows no tokens');
  expect(readBakedAccess(bakeAccess({ cluster: 'prod', jwt }))).toStrictEqual({ cluster: 'prod', jwt });
  for (const cluster of clusters.values()) expect(bakeCluster(cluster)).not.toContain(jwt.audience);
});
