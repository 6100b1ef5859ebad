/** The machine of the control plane: its files, and its kubeadm. A test replaces each operation to make it fail. */
import { execFile } from 'node:child_process';
import { chmod, chown, mkdir, open, readdir, readFile, realpath, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';

export interface Attributes {
  /** Permission bits. */
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
}

export interface Host {
  /** Undefined if there is no such file. Rejects with Node's error otherwise. */
  read(path: string): Promise<Buffer | undefined>;
  attributes(path: string): Promise<Attributes | undefined>;
  /** With every symbolic link followed; the path itself if there is nothing. */
  realPath(path: string): Promise<string>;
  /** Names; empty if there is no such folder. */
  list(folder: string): Promise<readonly string[]>;
  /** With those above it. */
  makeFolder(path: string, mode: number): Promise<void>;
  /** Returns when the file is on the disk; fails if it exists. */
  writeNew(path: string, content: Uint8Array, attributes: Attributes): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  /** Makes the content of a file, or the names in a folder, survive a power cut. */
  sync(path: string): Promise<void>;
  /** A folder with everything in it. No error if there is nothing. */
  remove(path: string): Promise<void>;
  /** Undefined: there is no such program. `output`: both streams. */
  run(
    program: string,
    args: readonly string[],
  ): Promise<{ readonly code: number; readonly output: string } | undefined>;
}

/**
 * Puts the content at this path, completely or not at all. A file that exists keeps its mode and owner, and a symbolic link stays.
 * False: it has this content already.
 */
export async function replaceFile(
  path: string,
  content: string | Uint8Array,
  host: Host,
  unlessThere: Attributes,
): Promise<boolean> {
  const target = await host.realPath(path);
  const bytes = Buffer.from(content);
  if ((await host.read(target))?.equals(bytes) === true) return false;
  const attributes = (await host.attributes(target)) ?? unlessThere;
  const draft = join(dirname(target), `.${target.slice(dirname(target).length + 1)}.countersign`);
  // What a killed command left.
  await host.remove(draft);
  await host.writeNew(draft, bytes, attributes);
  // Until here a crash leaves the old file and a draft that the next run removes.
  await host.rename(draft, target);
  await host.sync(dirname(target));
  return true;
}

export const thisHost: Host = {
  read: (path) => unlessMissing(() => readFile(path)),
  attributes: (path) =>
    unlessMissing(async () => {
      const { mode, uid, gid } = await stat(path);
      return { mode: mode & 0o7777, uid, gid };
    }),
  realPath: async (path) => (await unlessMissing(() => realpath(path))) ?? path,
  list: async (folder) => (await unlessMissing(() => readdir(folder))) ?? [],
  async makeFolder(path, mode) {
    await mkdir(path, { recursive: true, mode });
  },
  async writeNew(path, content, { mode, uid, gid }) {
    // No other user may read it before it has its owner.
    const file = await open(path, 'wx', 0o600);
    try {
      await file.writeFile(content);
      const made = await file.stat();
      if (made.uid !== uid || made.gid !== gid) await chown(path, uid, gid);
      await chmod(path, mode);
      await file.sync();
    } finally {
      await file.close();
    }
  },
  rename,
  async sync(path) {
    const opened = await open(path, 'r');
    try {
      await opened.sync();
    } finally {
      await opened.close();
    }
  },
  remove: (path) => rm(path, { recursive: true, force: true }),
  run: (program, args) =>
    new Promise((resolve) => {
      execFile(program, [...args], { maxBuffer: 1_048_576 }, (error, stdout, stderr) => {
        const output = `${stdout}${stderr}`;
        if (error === null) resolve({ code: 0, output });
        else if (error.code === 'ENOENT') resolve(undefined);
        // Without a number it was not started, or was killed.
        else if (typeof error.code === 'number') resolve({ code: error.code, output });
        else resolve({ code: -1, output: `${output}${error.message}` });
      });
    }),
};

async function unlessMissing<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    if ((error as { code?: unknown }).code === 'ENOENT') return undefined;
    throw error;
  }
}
