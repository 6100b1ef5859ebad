import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { parseDocument } from 'yaml';
import { parseConfiguration } from '../../../core/configuration/parse.ts';

const docs = resolve(import.meta.dirname, '../../../docs');
const pages = ['deploy.md', 'kubeadm.md', 'gcp-controller-manager.md', 'eks.md', 'cost.md', 'emulators.md'];
const read = (page: string): string => readFileSync(join(docs, page), 'utf8');
const blocks = (page: string, language: string): string[] =>
  [...read(page).matchAll(new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, 'g'))].map(([, block]) => block!);

test.each(['deploy.md', 'eks.md'])('the countersign.yaml of %s can be deployed', (page) => {
  const files = blocks(page, 'yaml').filter((block) => block.startsWith('version: 1'));
  expect(files).toHaveLength(1);
  const parsed = parseConfiguration(files[0]!, page, { toDeploy: true });
  expect(parsed.ok ? [] : parsed.problem).toEqual([]);
});

test('every YAML block is YAML', () => {
  const all = pages.flatMap((page) => blocks(page, 'yaml'));
  expect(all.length).toBeGreaterThan(5);
  for (const block of all) expect(parseDocument(block).errors, block).toEqual([]);
});

test('the token configuration of the gcp page is valid', () => {
  const [access = ''] = blocks('gcp-controller-manager.md', 'yaml');
  const cluster = `version: 1
clusters:
  prod:
    cas: { ca: { subject: { commonName: prod CA } } }
    profiles: { kubernetes.io/kubelet-serving: {} }
    aws: { account: '999900001111', region: eu-central-1 }
${access.replace(/jwks: .*/, '')}`;
  const parsed = parseConfiguration(cluster, 'page', { toDeploy: true });
  expect(parsed.ok ? [] : parsed.problem).toEqual([]);
});

test('the months in the cost table follow from its prices', () => {
  const text = read('cost.md');
  const rows = [...text.matchAll(/^\| ([\d ]+) \| (\d+) (d|h) \| ([\d ]+) \| (\d+) \| ([\d ]+) \| ([\d –]+) \|$/gm)];
  expect(rows).toHaveLength(5);
  const [, fixed] = /^\| Countersign, one CA \| about (\d+) \|/m.exec(text) ?? [];
  expect(text).toContain(`**about ${fixed}**`);
  const number = (cell: string): number => Number(cell.replaceAll(' ', ''));
  for (const [, nodes, life, unit, certificates, ours, general, short] of rows) {
    const days = unit === 'h' ? number(life!) / 24 : number(life!);
    const count = (number(nodes!) * 2 * 30) / (days * 0.8);
    expect(number(certificates!)).toBe(Math.round(count));
    expect(number(ours!)).toBe(Math.round(Number(fixed) + count * 0.00003));
    const tiers = Math.min(count, 1_000) * 0.75 + Math.max(0, Math.min(count, 10_000) - 1_000) * 0.35;
    expect(number(general!)).toBe(Math.round(400 + tiers + Math.max(0, count - 10_000) * 0.001));
    // ACM PCA's short-lived mode issues for at most seven days.
    expect(short!.trim()).toBe(
      days > 7 ? '–' : String(Math.round(50 + count * 0.058)).replace(/(\d)(\d{3})$/, '$1 $2'),
    );
  }
});
