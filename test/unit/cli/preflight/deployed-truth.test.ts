/** What preflight says about the stacks is what the stacks are. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { neededBootstrapVersion } from '../../../../cli/preflight/account-checks.ts';
import { permissions } from '../../../../cli/preflight/check.ts';
import { reservations } from '../../../../cli/preflight/quota-checks.ts';
import { stackNames } from '../../../../core/configuration/resolve/deployment.ts';
import { clusters } from '../../lib/clusters.ts';
import { configuration, ofType, synthesise } from '../../lib/synthesis.ts';

const synthesis = synthesise(clusters);
const { clusters: planned, deployments } = configuration(clusters);

test.each([...planned.keys()])('what the functions of cluster %s reserve', (name) => {
  const functions = ofType(synthesis.templates.get(stackNames(name).service)!, 'AWS::Lambda::Function');
  const reserved = functions.flatMap(([, { Properties: of }]) => {
    const reservation = of['ReservedConcurrentExecutions'];
    return reservation === undefined ? [] : [[of['FunctionName'], reservation]];
  });
  const said = reservations({ cluster: planned.get(name)!, deployment: deployments.get(name)! });
  expect(new Map(reserved as [string, number][])).toEqual(new Map(said));
});

test('the bootstrap version is the one that the stacks demand', () => {
  const versions = Object.values(synthesis.manifest.artifacts).flatMap(({ properties = {} }) => {
    const version = properties['requiresBootstrapStackVersion'];
    return typeof version === 'number' ? [version] : [];
  });
  expect(versions.length).toBeGreaterThan(2);
  expect(Math.max(...versions)).toBe(neededBootstrapVersion);
});

test('docs/cli.md has the policy', () => {
  const page = readFileSync(join(import.meta.dirname, '../../../../docs/cli.md'), 'utf8');
  const section = page.split('\n## aws preflight\n')[1]?.split('\n## ')[0] ?? '';
  const policy = JSON.parse(/```json\n([^]*?)```/.exec(section)?.[1] ?? '{}') as { Action?: string[] };
  expect(policy.Action).toEqual(Object.keys(permissions));
});
