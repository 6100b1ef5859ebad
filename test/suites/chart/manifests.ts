/**
 * The plain manifests, for those who have no Helm: rendered from the chart, committed, and kept equal by a test.
 *
 *   node test/suites/chart/manifests.ts      writes deploy/manifests/ anew
 */
import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { example, template } from './helm.ts';

export const folder = resolve(import.meta.dirname, '../../../deploy/manifests');

const files = {
  'watch-relay-rbac.yaml': ['rbac.yaml'],
  'watch-relay-deployment.yaml': ['deployment.yaml'],
  'watch-relay-policies.yaml': ['poddisruptionbudget.yaml', 'networkpolicy.yaml'],
} as const;

const header = `# Rendered from deploy/chart with examples/plain-manifests.yaml; changes belong there.
`;
const notes: Readonly<Record<keyof typeof files, string>> = {
  'watch-relay-rbac.yaml': '',
  'watch-relay-deployment.yaml': `# Put in your image, URL, cluster and audience. Apply watch-relay-rbac.yaml first.
`,
  'watch-relay-policies.yaml': '',
};

/** File name → what it must hold. */
export async function manifests(): Promise<Map<string, string>> {
  const all = new Map<string, string>();
  for (const [file, show] of Object.entries(files)) {
    const text = await template(example('plain-manifests.yaml'), { show });
    all.set(file, `${header}${notes[file as keyof typeof files]}${plain(text)}`);
  }
  return all;
}

/** Without Helm's own remarks, and one separator between two objects. */
function plain(text: string): string {
  return text
    .split('\n')
    .filter((line) => !line.startsWith('# Source: '))
    .join('\n')
    .replaceAll(/\n+---\n/g, '\n---\n')
    .replace(/^---\n/, '')
    .replace(/\n*$/, '\n');
}

if (import.meta.main) for (const [file, text] of await manifests()) writeFileSync(join(folder, file), text);
