/** The alert rules about the relay, without Prometheus: metrics and labels that exist, and sections of the runbook. */
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { causes } from '../../../lambdas/watch-relay/request/result.ts';
import { createRelayMetrics } from '../../../lambdas/watch-relay/observe/metrics.ts';

const root = resolve(import.meta.dirname, '../../..');
const read = (path: string): string => readFileSync(join(root, path), 'utf8');

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly runbook: string };
}
const { groups } = parse(read('deploy/chart/alerts.yaml')) as { groups: { name: string; rules: Rule[] }[] };
const rules = groups.flatMap((group) => group.rules);
const runbook = read('docs/runbook.md');
const sections = new Map(
  runbook
    .split(/^### /m)
    .slice(1)
    .map((text) => [text.slice(0, text.indexOf('\n')), text] as const)
    .filter(([heading]) => heading.startsWith('Countersign')),
);

test('each alert has a section of the runbook and a row of the relay’s page, and there are no others', () => {
  const names = rules.map(({ alert }) => alert);
  expect(new Set(names).size).toBe(names.length);
  expect([...sections.keys()]).toEqual(names);
  const rows = [...read('docs/watch-relay.md').matchAll(/^\| `(Countersign\w+)` \| (\w+) \|/gm)];
  expect(rows.map(([, name, severity]) => [name, severity])).toEqual(
    rules.map((rule) => [rule.alert, rule.labels.severity]),
  );
});

test.each(rules)('$alert names its section, and the section describes, investigates and resolves', (rule) => {
  const { runbook: link, summary } = rule.annotations;
  expect(link).toBe(`docs/runbook.md#${rule.alert.toLowerCase()}`);
  expect(summary).toMatch(/\.$/);
  expect(['critical', 'warning']).toContain(rule.labels.severity);
  const parts = [...sections.get(rule.alert)!.matchAll(/\*\*(Description|Investigation|Resolution)\.\*\*/g)];
  expect(parts.map(([, part]) => part)).toEqual(['Description', 'Investigation', 'Resolution']);
});

/** Label names by metric, as a histogram's series have them too. */
function relaySeries(): ReadonlyMap<string, readonly string[]> {
  const { registry } = createRelayMetrics();
  const series = new Map<string, readonly string[]>();
  for (const metric of registry.getMetricsAsArray() as unknown as { name: string; labelNames: string[] }[]) {
    const { name, labelNames } = metric;
    series.set(name, labelNames);
    if ('buckets' in metric)
      for (const end of ['_bucket', '_count', '_sum']) series.set(`${name}${end}`, [...labelNames, 'le']);
  }
  return series;
}

test.each(rules)(
  '$alert asks for metrics and labels that the relay has, each for one release',
  ({ expr, annotations }) => {
    const series = relaySeries();
    const asked = [...expr.matchAll(/(countersign_relay_\w+)\{([^}]*)\}/g)];
    // A metric without braces would count the relays of other clusters, too.
    expect(asked.length).toBe(expr.split('countersign_relay_').length - 1);
    expect(asked.length).toBeGreaterThan(0);
    for (const [, name = '', inner = ''] of asked) {
      const [scope, ...matchers] = inner.split(', ');
      expect(scope).toBe('namespace=~".*"');
      const labels = matchers.map((matcher) => /^(\w+)(?:=|=~|!=|!~)"[^"]+"$/.exec(matcher)?.[1]);
      expect([...series.keys()]).toContain(name);
      for (const label of labels) expect(series.get(name)).toContain(label);
    }
    const grouped = [...expr.matchAll(/by \((\w+)\)/g)].map(([, label]) => label!);
    for (const [, label = ''] of annotations.summary.matchAll(/\$labels\.(\w+)/g)) expect(grouped).toContain(label);
  },
);

test('the causes that the rules name exist', () => {
  const named = rules.flatMap(({ expr }) =>
    [...expr.matchAll(/cause=~"([^"]+)"/g)].flatMap(([, list = '']) => list.split('|')),
  );
  expect(named.length).toBeGreaterThan(0);
  for (const cause of named) expect(Object.keys(causes)).toContain(cause);
});

test('a counter of alarms exists before its first alarm, so that the first one is an increase', async () => {
  const text = await createRelayMetrics().exposition();
  for (const [cause, { alarm }] of Object.entries(causes)) {
    const line = `countersign_relay_alarms_total{cause="${cause}"} 0`;
    if (alarm === 'never') expect(text).not.toContain(line);
    else expect(text).toContain(line);
  }
});
