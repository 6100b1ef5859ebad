/** The alert rules before Prometheus itself: promtool reads them, and runs alerts.yaml over series of metrics. */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { requireTools, toolPath } from '../../../tools/tools.ts';
import { chart, example, namespace, objects, release, template } from './helm.ts';

const { skip } = await requireTools('helm', 'promtool');

interface Rule {
  readonly alert: string;
  readonly expr: string;
}
interface Groups {
  readonly groups: readonly { readonly name: string; readonly rules: readonly Rule[] }[];
}

const monitored = {
  metrics: {
    from: [{ namespace: 'monitoring' }],
    podMonitor: { enabled: true, labels: { release: 'prometheus' } },
    prometheusRule: { enabled: true, labels: { release: 'prometheus' } },
  },
};

describe.skipIf(skip)('the alert rules', () => {
  let folder: string;
  let rendered: Groups;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'countersign-alerts-'));
    const all = objects(await template(example('plain-manifests.yaml'), { values: monitored }));
    rendered = all.find(({ kind }) => kind === 'PrometheusRule')!.spec as unknown as Groups;
    writeFileSync(join(folder, 'rules.yaml'), stringify(rendered));
    writeFileSync(join(folder, 'tests.yaml'), readFileSync(join(import.meta.dirname, 'alerts.yaml')));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const promtool = async (...args: readonly string[]): Promise<string> => {
    try {
      const { stdout } = await promisify(execFile)(await toolPath('promtool'), args, { cwd: folder, timeout: 60_000 });
      return stdout;
    } catch (error) {
      const { stdout, stderr } = error as { readonly stdout: string; readonly stderr: string };
      return `FAILED ${stdout}${stderr}`;
    }
  };

  test.each(['as the chart renders them', 'as the file has them'])(
    '%s are rules that Prometheus takes',
    async (which) => {
      const file = which === 'as the file has them' ? join(chart, 'alerts.yaml') : 'rules.yaml';
      expect(await promtool('check', 'rules', '--lint=all', '--lint-fatal', file)).toMatch(/SUCCESS: 6 rules found/);
    },
  );

  test('a wrong rule is seen', async () => {
    const [first] = rendered.groups;
    const wrong = { groups: [{ ...first, rules: [{ ...first!.rules[0], expr: 'sum by (' }] }] };
    writeFileSync(join(folder, 'wrong.yaml'), stringify(wrong));
    expect(await promtool('check', 'rules', 'wrong.yaml')).toMatch(/^FAILED/);
  });

  test('fire when they should, and not otherwise', async () => {
    expect(await promtool('test', 'rules', 'tests.yaml')).toMatch(/SUCCESS/);
  });

  test('have each a test in which it fires and one in which it does not', () => {
    const { tests } = parse(readFileSync(join(import.meta.dirname, 'alerts.yaml'), 'utf8')) as {
      tests: { alert_rule_test: { alertname: string; exp_alerts?: unknown[] }[] }[];
    };
    const cases = tests.flatMap((each) => each.alert_rule_test);
    for (const { alert } of rendered.groups.flatMap(({ rules }) => rules)) {
      const own = cases.filter(({ alertname }) => alertname === alert);
      expect(
        own.some(({ exp_alerts }) => exp_alerts !== undefined),
        alert,
      ).toBe(true);
      expect(
        own.some(({ exp_alerts }) => exp_alerts === undefined),
        alert,
      ).toBe(true);
    }
  });

  // What is changed in a rule must fail a test, or the tests say nothing about it.
  test.each([
    ['another release counts', `pod=~"${release}-.*"`, 'pod=~".*"'],
    ['every namespace counts', `namespace="${namespace}"`, 'namespace=~".*"'],
    ['requests of others count', 'priority="renewal"', 'priority=~".*"'],
    ['an answered call does not count', 'outcome=~"issued|refused|ignored"', 'outcome="x"'],
    ['an expired watch counts', 'reason=~"refused|listFailed"', 'reason=~".*"'],
    ['a longer wait', '> 3600', '> 36000'],
    ['a shorter wait', '> 3600', '> 360'],
    ['the median', '0.95', '0.5'],
    ['nothing is summed by cause', 'sum by (cause)', 'sum'],
  ])('changed: %s', async (_, from, to) => {
    const text = readFileSync(join(folder, 'rules.yaml'), 'utf8');
    const { groups } = rendered;
    const rules = groups.map((group) => ({
      ...group,
      rules: group.rules.map((rule) => ({ ...rule, expr: rule.expr.replaceAll(from, to) })),
    }));
    expect(JSON.stringify(rules)).not.toBe(JSON.stringify(groups));
    writeFileSync(join(folder, 'rules.yaml'), stringify({ groups: rules }));
    try {
      expect(await promtool('test', 'rules', 'tests.yaml')).toMatch(/^FAILED/);
    } finally {
      writeFileSync(join(folder, 'rules.yaml'), text);
    }
  });
});
