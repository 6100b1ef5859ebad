/**
 * The plain manifests, for clusters without Helm: rendered from the chart and committed; a test compares them.
 *
 *   node test/suites/control-plane/chart/manifests.ts      writes deploy/manifests/ again
 */
import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { example, template } from './helm.ts';

export const folder = resolve(import.meta.dirname, '../../../../deploy/manifests');

interface Manifest {
  readonly values: 'plain-manifests.yaml' | 'approver.yaml';
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

if (import.meta.main) for (const [file, text] of await manifests()) writeFileSync(join(folder, file), text);
