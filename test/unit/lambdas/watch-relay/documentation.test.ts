import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { defaultSignerNames, parseSettings } from '../../../../lambdas/watch-relay/settings/settings.ts';
import { causes } from '../../../../lambdas/watch-relay/request/result.ts';
import { createRelayMetrics } from '../../../../lambdas/watch-relay/observe/metrics.ts';

const root = resolve(import.meta.dirname, '../../../..');
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const page = read('docs/watch-relay.md');

test('the page has every metric with its labels, and no other', async () => {
  const { registry } = createRelayMetrics();
  const metrics = await registry.getMetricsAsJSON();
  expect(metrics.length).toBeGreaterThan(12);
  const real = metrics.map(({ name }) => name.replace('countersign_relay_', ''));
  const section = page.slice(page.indexOf('## Metrics'), page.indexOf('## When it logs'));
  const named = [...section.matchAll(/`([a-z_]+)(?:\{[a-z,]+\})?`/g)].map(([, name]) => name);
  const others = ['process_', 'nodejs_', 'countersign_relay_', 'none'];
  expect(new Set(named)).toEqual(new Set([...real, ...others]));
  for (const { name, labelNames } of registry.getMetricsAsArray() as unknown as {
    name: string;
    labelNames: string[];
  }[])
    if (labelNames.length > 0)
      expect(section).toContain(`\`${name.replace('countersign_relay_', '')}{${labelNames.join(',')}}\``);
});

test('the page has every cause of a retry', () => {
  const named = [...page.matchAll(/^\| `(\w+)` \| (?:info|warn|error) \|/gm)].map(([, cause]) => cause);
  expect(named).toEqual(Object.keys(causes));
});

test('help, page and manifests name the same signers and the same lease', () => {
  const help = parseSettings(['--help'], {});
  const rbac = read('deploy/manifests/watch-relay-rbac.yaml');
  for (const signerName of defaultSignerNames) {
    expect(help).toMatchObject({ text: expect.stringContaining(signerName) as unknown });
    expect(rbac).toContain(`- ${signerName}\n`);
  }
  expect(rbac).toContain('resourceNames: [countersign-watch-relay]');
  expect(rbac).toContain('namespace: countersign-system');
});
