import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { parseDocument } from 'yaml';
import { parseConfiguration } from '../../../core/configuration/parse.ts';

const docs = resolve(import.meta.dirname, '../../../docs');
const pages = ['deploy.md', 'kubeadm.md', 'gcp-controller-manager.md', 'eks.md', 'cost.md', 'internals/emulators.md'];
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
