/** The archives of a release: the same files give the same bytes. */
import {
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { measured, type Built } from '../built.ts';
import { licenses, root, type Script } from '../bundle.ts';
import { archive, settleModes } from '../image/layer.ts';
import { pinnedNode, type Architecture } from '../node.ts';

/** Name in the archive → file here, or text. */
type Files = Readonly<Record<string, { readonly file: string } | { readonly text: string }>>;

/** A .tar.gz whose files are root's, with a fixed time. */
export function packed(path: string, files: Files): Built {
  return inFolder((folder) => {
    for (const [name, content] of Object.entries(files)) {
      const target = join(folder, name);
      mkdirSync(dirname(target), { recursive: true });
      if ('file' in content) copyFileSync(content.file, target);
      else writeFileSync(target, content.text);
    }
    settleModes(folder);
    writeFileSync(path, gzipSync(archive(folder)));
    return measured(path);
  });
}

/** A program with its licence, and those of everything in it. */
export function packedExecutable(
  path: string,
  program: {
    readonly name: string;
    readonly executable: Built;
    readonly script: Script;
    readonly architecture: Architecture;
  },
): Built {
  const node = pinnedNode(program.architecture);
  return packed(path, {
    [program.name]: { file: program.executable.path },
    LICENSE: { file: join(root, 'LICENSE') },
    'licenses.txt': { text: licenses(new Map([...program.script.packages, [node.package, node.folder]])) },
  });
}

/** As `helm package` would, which writes the time of the day into the archive. */
export function packedChart(path: string): Built {
  const chart = join(root, 'deploy/chart');
  const left = new Set(readFileSync(join(chart, '.helmignore'), 'utf8').split('\n'));
  return inFolder((folder) => {
    const target = join(folder, chartName);
    cpSync(chart, target, { recursive: true });
    for (const name of readdirSync(target))
      if (left.has(name) || left.has(`${name}/`)) rmSync(join(target, name), { recursive: true });
    settleModes(folder);
    writeFileSync(path, gzipSync(archive(folder)));
    return measured(path);
  });
}

export const chartName = 'countersign-watch-relay';

/** An OCI layout in one file, as `skopeo copy oci-archive:…` and `ctr images import` read it. Its blobs are compressed already. */
export function packedLayout(path: string, layout: string): Built {
  settleModes(layout);
  writeFileSync(path, archive(layout));
  return measured(path);
}

function inFolder<T>(use: (folder: string) => T): T {
  const folder = mkdtempSync(join(tmpdir(), 'countersign-archive-'));
  try {
    return use(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
