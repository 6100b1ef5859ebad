/**
 * Makes images without a container daemon: Debian's libraries, the pinned Node, one file of JavaScript.
 * https://github.com/opencontainers/image-spec/blob/v1.1.1/image-layout.md
 */
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { version } from '../../core/version.ts';
import { root } from '../bundle.ts';
import { pinnedNode, type Architecture } from '../node.ts';
import { baseLayer } from './base.ts';
import { debianArchitecture, pinnedPackages, type DebianPackage } from './debian.ts';
import { nodePath, processOf, programFolder, type Image } from './images.ts';
import { digestOf, layerOf, writeIn, type Layer } from './layer.ts';

export interface MadeImage {
  /** Of its index. */
  readonly digest: string;
  /** `name@version` → folder, of the packages in its program. */
  readonly packages: ReadonlyMap<string, string>;
}

interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
  readonly platform?: object;
  readonly annotations?: object;
}

const mediaType = (what: string): string => `application/vnd.oci.image.${what}`;

/**
 * Writes an OCI image layout into `out`, which it replaces. Each image is an index of the architectures, with its name as reference.
 * Returns what each image is by its name. The same sources give the same digests.
 */
export async function buildImages(
  out: string,
  options: {
    readonly images: readonly Image[];
    readonly architectures: readonly Architecture[];
    /** Absent: those of packages.json. */
    readonly packages?: readonly DebianPackage[];
    readonly progress?: (line: string) => void;
  },
): Promise<ReadonlyMap<string, MadeImage>> {
  rmSync(out, { recursive: true, force: true });
  mkdirSync(join(out, 'blobs/sha256'), { recursive: true });
  const work = mkdtempSync(join(tmpdir(), 'countersign-image-'));
  const { packages = pinnedPackages(), progress: say = () => undefined } = options;
  try {
    const shared = new Map<Architecture, readonly Layer[]>();
    for (const architecture of options.architectures) {
      say(`Debian's libraries and Node for ${architecture}`);
      shared.set(architecture, [await baseLayer(packages, architecture), await nodeLayer(architecture)]);
    }
    const indexes: Descriptor[] = [];
    const made = new Map<string, MadeImage>();
    for (const image of options.images) {
      say(image.name);
      const script = await image.build(join(work, image.name));
      const own = await programLayer(script.path);
      const manifests = [...shared].map(([architecture, layers]) =>
        writeImage(out, { image, script: script.path, architecture, layers: [...layers, own] }),
      );
      const index = writeJson(out, mediaType('index.v1+json'), {
        schemaVersion: 2,
        mediaType: mediaType('index.v1+json'),
        manifests,
      });
      made.set(image.name, { digest: index.digest, packages: script.packages });
      indexes.push({ ...index, annotations: { 'org.opencontainers.image.ref.name': image.name } });
    }
    writeFileSync(join(out, 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}');
    const index = { schemaVersion: 2, mediaType: mediaType('index.v1+json'), manifests: indexes };
    writeFileSync(join(out, 'index.json'), JSON.stringify(index));
    return made;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function nodeLayer(architecture: Architecture): Promise<Layer> {
  const node = pinnedNode(architecture);
  return layerOf(node.package, (place) => {
    writeIn(place, nodePath, readFileSync(node.path), 0o555);
    writeIn(place, '/usr/local/share/doc/node/LICENSE', readFileSync(join(node.folder, 'LICENSE')));
  });
}

function programLayer(script: string): Promise<Layer> {
  return layerOf(`countersign ${version}`, (place) => {
    writeIn(place, `${programFolder}/${basename(script)}`, readFileSync(script));
    writeIn(place, `${programFolder}/licenses.txt`, readFileSync(join(script, '../licenses.txt')));
    copyFileSync(join(root, 'LICENSE'), join(place, programFolder, 'LICENSE'));
  });
}

interface Single {
  readonly image: Image;
  readonly script: string;
  readonly architecture: Architecture;
  readonly layers: readonly Layer[];
}

function writeImage(out: string, { image, script, architecture, layers }: Single): Descriptor {
  const platform = {
    architecture: debianArchitecture[architecture],
    os: 'linux',
    ...(architecture === 'arm64' ? { variant: 'v8' } : {}),
  };
  const config = writeJson(out, mediaType('config.v1+json'), {
    ...platform,
    config: processOf(image, script),
    rootfs: { type: 'layers', diff_ids: layers.map(({ diffId }) => diffId) },
    history: layers.map(({ createdBy }) => ({ created_by: createdBy })),
  });
  const manifest = writeJson(out, mediaType('manifest.v1+json'), {
    schemaVersion: 2,
    mediaType: mediaType('manifest.v1+json'),
    config,
    layers: layers.map(({ blob }) => writeBlob(out, mediaType('layer.v1.tar+gzip'), blob)),
  });
  return { ...manifest, platform };
}

function writeJson(out: string, type: string, value: object): Descriptor {
  return writeBlob(out, type, Buffer.from(JSON.stringify(value)));
}

function writeBlob(out: string, type: string, bytes: Buffer): Descriptor {
  const digest = digestOf(bytes);
  writeFileSync(join(out, 'blobs', digest.replace(':', '/')), bytes);
  return { mediaType: type, digest, size: bytes.length };
}
