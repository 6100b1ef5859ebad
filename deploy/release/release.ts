/** Makes every file of a release in one folder. */
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { version } from '../../core/version.ts';
import { buildAuthenticator } from '../authenticator/build.ts';
import { measured, writeSums, type Built } from '../built.ts';
import type { Script } from '../bundle.ts';
import { buildCli, buildCliScript, packCli } from '../cli/build.ts';
import { buildExecutable } from '../executable.ts';
import type { DebianPackage } from '../image/debian.ts';
import { images } from '../image/images.ts';
import { buildImages } from '../image/layout.ts';
import { architectures, pinnedNode, type Architecture } from '../node.ts';
import { chartName, packedChart, packedExecutable, packedLayout } from './archives.ts';
import { krewManifest } from './krew.ts';
import { partOf, softwareBillOfMaterials, type Part } from './sbom.ts';

export interface Release {
  /** Where the files of this version will be, and the project's page: for the manifest of krew. Without it there is none. */
  readonly published?: { readonly downloads: string; readonly homepage: string };
  /** Of the images. */
  readonly debian: readonly DebianPackage[];
  readonly progress: (line: string) => void;
}

export interface Released {
  readonly files: readonly Built[];
  /** Image → digest of its index. */
  readonly images: ReadonlyMap<string, string>;
}

/** Replaces `out`. The same commit gives the same bytes. */
export async function makeRelease(out: string, { published, debian, progress }: Release): Promise<Released> {
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  const work = mkdtempSync(join(tmpdir(), 'countersign-release-'));
  const files: Built[] = [];
  const parts: Part[] = [];
  const place = (name: string): string => join(out, name);
  const keep = (built: Built, contents: Omit<Part, 'name' | 'type' | 'sha256'> = {}): Built => {
    files.push(built);
    parts.push(partOf(built, built.path.slice(out.length + 1), contents));
    progress(`${built.path}  ${(built.bytes / 1_048_576).toFixed(1)} MB`);
    return built;
  };
  const text = (name: string, content: string): void => {
    writeFileSync(place(name), content);
    files.push(measured(place(name)));
    progress(place(name));
  };
  try {
    const npm = await buildCli(join(work, 'npm'));
    keep(measured(packCli(npm, out)), { packages: npm.packages });

    const executables = (
      script: Script,
      name: string,
    ): { readonly architecture: Architecture; readonly archive: Built }[] =>
      architectures.map((architecture) => {
        const executable = buildExecutable(script.path, architecture);
        const path = place(`${name}-${version}-linux-${architecture}.tar.gz`);
        const archive = packedExecutable(path, { name, executable, script, architecture });
        keep(archive, { packages: script.packages, nodes: [pinnedNode(architecture)] });
        return { architecture, archive };
      });
    const cli = executables(await buildCliScript(join(work, 'cli')), 'countersign');
    const authenticator = await buildAuthenticator(join(work, 'authenticator'));
    executables(authenticator, 'kubelet-authenticator');
    const script = place(`kubelet-authenticator-${version}.cjs`);
    copyFileSync(authenticator.path, script);
    keep(measured(script), { packages: authenticator.packages });

    const layout = join(work, 'images');
    const made = await buildImages(layout, {
      images: Object.values(images),
      architectures,
      packages: debian,
      progress,
    });
    const contained = [...made].map(([name, { digest, packages }]): Part => {
      return {
        name: `image ${name}`,
        type: 'container',
        sha256: digest.replace('sha256:', ''),
        packages,
        nodes: architectures.map(pinnedNode),
        debian,
      };
    });
    keep(packedLayout(place(`countersign-images-${version}.oci.tar`), layout), {
      parts: contained.map(({ name }) => name),
    });
    parts.push(...contained);
    keep(packedChart(place(`${chartName}-${version}.tgz`)));

    if (published !== undefined) {
      const archives = cli.map(({ architecture, archive: { path, sha256 } }) => ({
        architecture,
        url: `${published.downloads}/${path.slice(out.length + 1)}`,
        sha256,
      }));
      text('countersign.krew.yaml', krewManifest({ version, homepage: published.homepage, archives }));
    }
    text(`countersign-${version}.cdx.json`, softwareBillOfMaterials(version, parts));
    writeSums(place('SHA256SUMS'), files);
    return { files, images: new Map([...made].map(([name, { digest }]) => [name, digest])) };
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}
