/**
 * The plain manifests, for clusters without Helm: rendered from the chart and committed; a test compares them.
 *
 *   npm run chart      writes deploy/manifests/ again, and what the values of deploy/chart/ci render
 */
import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { chart, example, template } from './helm.ts';

export const folder = resolve(import.meta.dirname, '../../../../deploy/manifests');

interface Manifest {
  readonly values: 'plain-manifests.yaml' | 'approver.yaml' | 'cluster-api.yaml';
  readonly show: readonly string[];
  readonly note?: string;
}

const rights = ['namespace.yaml', 'serviceaccount.yaml', 'rbac.yaml'];
const files: Readonly<Record<string, Manifest>> = {
  'watch-relay-rbac.yaml': { values: 'plain-manifests.yaml', show: rights },
  'watch-relay-approver-rbac.yaml': {
    values: 'approver.yaml',
    show: rights,
    note: `# Instead of watch-relay-rbac.yaml, for a relay that approves. Under \`approve\`, keep only the signers for which it approves.
`,
  },
  'watch-relay-cluster-api-rbac.yaml': {
    values: 'cluster-api.yaml',
    show: ['namespace.yaml', 'serviceaccount.yaml', 'cluster-api-rbac.yaml'],
    note: `# For a management cluster of its own: put in the namespace and the name of your Cluster object. The relay logs in with a token of this
# service account.
`,
  },
  'watch-relay-deployment.yaml': {
    values: 'plain-manifests.yaml',
    show: ['deployment.yaml'],
    note: `# Put in your image, URL, cluster and audience. Apply watch-relay-rbac.yaml first.
`,
  },
  'watch-relay-policies.yaml': {
    values: 'plain-manifests.yaml',
    show: ['poddisruptionbudget.yaml', 'networkpolicy.yaml'],
  },
};

/** File name → its content. */
export async function manifests(): Promise<Map<string, string>> {
  const all = new Map<string, string>();
  for (const [file, { values, show, note = '' }] of Object.entries(files)) {
    const header = `# Rendered from deploy/chart with examples/${values}; changes belong there.\n`;
    all.set(file, `${header}${note}${plain(await template(example(values), { show }))}`);
  }
  return all;
}

/** Without Helm's own remarks and labels, and one separator between two objects. */
function plain(text: string): string {
  return text
    .split('\n')
    .filter((line) => !/^# Source: |^ +(helm\.sh\/chart|app\.kubernetes\.io\/managed-by): /.test(line))
    .join('\n')
    .replaceAll(/\n+---\n/g, '\n---\n')
    .replace(/^---\n/, '')
    .replace(/\n*$/, '\n');
}

export const ciFolder = join(chart, 'ci');
export const ciFiles: readonly string[] = readdirSync(ciFolder).toSorted();
export const goldenFolder = join(import.meta.dirname, 'golden');

/** All that a file of deploy/chart/ci renders, the objects of `helm test` too. */
export async function golden(file: string): Promise<string> {
  return `# Rendered from deploy/chart/ci/${file} by npm run chart.\n${plain(await template(join(ciFolder, file), { tests: true }))}`;
}

if (import.meta.main) {
  for (const [file, text] of await manifests()) writeFileSync(join(folder, file), text);
  for (const file of readdirSync(goldenFolder)) rmSync(join(goldenFolder, file));
  for (const file of ciFiles) writeFileSync(join(goldenFolder, file), await golden(file));
}
