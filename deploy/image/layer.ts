/** A layer of an image: a folder as a tar archive whose bytes depend on the names, contents and modes of its files alone. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';

export interface Layer {
  /** What the history of the image says. */
  readonly createdBy: string;
  readonly blob: Buffer;
  /** SHA-256 of the uncompressed archive, which the configuration names. */
  readonly diffId: string;
}

export const digestOf = (bytes: Buffer): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

/** `fill` writes the files. Folders are 0755, files 0444, or 0555 if they can be executed, /tmp is 1777; everything is root's. */
export async function layerOf(createdBy: string, fill: (folder: string) => void): Promise<Layer> {
  const folder = mkdtempSync(join(tmpdir(), 'countersign-layer-'));
  try {
    fill(folder);
    settleModes(folder);
    const tar = archive(folder);
    // The header that zlib writes holds no time and no name.
    return { createdBy, blob: await promisify(gzip)(tar), diffId: digestOf(tar) };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Uncompressed. GNU tar has everything that makes an archive reproducible. */
export function archive(folder: string): Buffer {
  const same = ['--sort=name', '--mtime=@0', '--owner=0', '--group=0', '--numeric-owner', '--format=gnu'];
  return execFileSync('tar', [...same, '-C', folder, '-cf', '-', ...readdirSync(folder).toSorted()], {
    maxBuffer: 2 ** 30,
    env: { ...process.env, LC_ALL: 'C' },
  });
}

export function settleModes(folder: string): void {
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    const path = join(folder, name);
    const state = lstatSync(path);
    if (state.isDirectory()) chmodSync(path, name === 'tmp' ? 0o1777 : 0o755);
    else if (state.isFile()) chmodSync(path, (state.mode & 0o111) === 0 ? 0o444 : 0o555);
  }
}

/** `path` is that in the image. */
export function writeIn(folder: string, path: string, contents: string | Uint8Array, mode = 0o444): void {
  const target = join(folder, path);
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(target, contents, { mode });
}
