/** The SBOM, checked by the library of its format. */
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Script } from '../../../deploy/bundle.ts';
import { buildTokenReconcile } from '../../../deploy/image/build.ts';
import { pinnedPackages } from '../../../deploy/image/debian.ts';
import { pinnedNode } from '../../../deploy/node.ts';
import { softwareBillOfMaterials, type Part } from '../../../deploy/release/sbom.ts';
import { temporaryFolder } from '../../harness/processes/processes.ts';
import { requireTools } from '../../tools/tools.ts';
import { problemsOf } from './cyclonedx.ts';

const { skip } = await requireTools('cyclonedx');
const root = resolve(import.meta.dirname, '../../..');

interface Bom {
  readonly components: readonly { readonly purl?: string; readonly hashes?: readonly { readonly content: string }[] }[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
}

describe('the SBOM', () => {
  const folder = temporaryFolder('sbom');
  let script: Script;
  let text: string;
  let bom: Bom;
  beforeAll(async () => {
    script = await buildTokenReconcile(folder.path);
    const parts: readonly Part[] = [
      { name: 'program.cjs', type: 'application', sha256: script.sha256, packages: script.packages },
      {
        name: 'image',
        type: 'container',
        sha256: script.sha256,
        nodes: [pinnedNode('x64')],
        debian: pinnedPackages().filter(({ architecture }) => architecture === 'amd64'),
        parts: ['program.cjs'],
      },
    ];
    text = softwareBillOfMaterials('0.1.0', parts);
    bom = JSON.parse(text) as Bom;
  });
  afterAll(() => folder.remove());

  test.skipIf(skip)('is valid, and the validator sees what is not', async () => {
    expect(await problemsOf(text)).toBe('');
    expect(await problemsOf(text.replace('"Apache-2.0"', '"Apache 2"'))).toContain('Apache 2');
  });

  test('names what the bundler put into a program, and nothing else', () => {
    const names = [...script.packages.keys()].map((label) => `pkg:npm/${label.replace(/^@/, '%40')}`);
    expect(names).toContain(`pkg:npm/%40kubernetes/client-node@2.0.1`);
    expect(bom.dependencies.find(({ ref }) => ref === 'file:program.cjs')?.dependsOn).toEqual(names.toSorted());
    expect(text).not.toContain('client-kms');
  });

  test('gives each package the hash with which the build checked it', () => {
    const packages = bom.components.filter(({ purl }) => purl !== undefined);
    expect(packages.length).toBeGreaterThan(20);
    for (const { purl, hashes } of packages)
      expect([purl, hashes?.map(({ content }) => content.length)]).toEqual([
        purl,
        [purl?.startsWith('pkg:deb/') === true ? 64 : 128],
      ]);
    const inside = bom.dependencies.find(({ ref }) => ref === 'file:image')?.dependsOn;
    expect(inside).toContain('file:program.cjs');
    expect(inside?.filter((ref) => ref.startsWith('pkg:deb/debian/libc6@'))).toHaveLength(1);
    expect(text).not.toContain(root);
    expect(text).not.toContain(join(folder.path));
  });
});
