/**
 * Checks the files that this program trusts and the folders in which it keeps keys. A user who can replace one of them could
 * make it chmod or truncate another file through a symbolic link, or give the node another API server, token or key. So
 * every path must be out of reach of users other than root and the user of this process:
 *
 *   every folder on the path   owned by root or this user, not writable by others (or sticky, like /tmp, except the last one)
 *   every symbolic link        owned by root or this user
 *   the file                   a regular file, owned by root or this user, not writable by others
 *
 * Loaded by every call of the kubelet, so it imports little.
 */
import { closeSync, constants, fstatSync, lstatSync, openSync, readlinkSync, readSync, statSync } from 'node:fs';
import type { Stats } from 'node:fs';
import { dirname, join, resolve } from 'node:path';

/** No file that this program reads is larger. */
const maxFileBytes = 1_048_576;

/** The message names the path, the problem, and the command that corrects it. */
export class UnsafeFileError extends Error {
  override readonly name = 'UnsafeFileError';
  readonly path: string;
  readonly problem: string;

  constructor(path: string, problem: string) {
    super(`${path} ${problem}`);
    this.path = path;
    this.problem = problem;
  }
}

const writableByOthers = 0o022;
const readableByOthers = 0o004;
const sticky = 0o1000;
const maxLinks = 40;

/** Checks an existing folder of secrets. Throws UnsafeFileError or the file system's error. */
export function checkOwnDirectory(directory: string): void {
  const real = walk(directory);
  const found = lstatSync(real);
  if (!found.isDirectory()) throw new UnsafeFileError(real, 'is not a directory');
  checkOwner(real, found);
  // A sticky folder is not allowed either: other users could create the files first.
  checkMode(real, found);
}

/**
 * Checks the nearest existing folder above `path`, before a folder is created there. It may be sticky: the new folder belongs
 * to us, and `checkOwnDirectory` afterwards detects one that another user created first.
 */
export function checkOwnPlace(path: string): void {
  for (let directory = dirname(resolve(path)); ; directory = dirname(directory)) {
    try {
      return checkFolderAbove(walk(directory));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
  }
}

/** The text of a file that the operator named. Throws UnsafeFileError or the file system's error. */
export function readOwnFile(path: string): string {
  return readCacheFile(walk(path));
}

/** Like `readOwnFile`, for a private key of the operator: users other than the owner and the group must not be able to read it. */
export function readOwnSecret(path: string): string {
  const real = walk(path);
  const { mode } = lstatSync(real);
  if ((mode & readableByOthers) !== 0)
    throw new UnsafeFileError(real, `can be read by other users (mode ${modeText(mode)}): chmod o-rwx ${real}`);
  return readCacheFile(real);
}

/** Like `readOwnFile`, but also reads a pipe: `--token-file /dev/stdin`, `--token-file <(command)`. */
export function readGivenFile(path: string): string {
  const found = statSync(path);
  if (found.isFile() || found.isDirectory()) return readOwnFile(path);
  return readOpen(path, openSync(path, constants.O_RDONLY), () => {});
}

/** Reads a file that only this program creates, in a checked directory. It must not be a symbolic link. */
export function readCacheFile(path: string): string {
  let descriptor: number;
  try {
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ELOOP') throw isLink(path);
    throw error;
  }
  return readOpen(path, descriptor, (found) => checkOwnFile(path, found));
}

/** `found`: the result of `lstat` or `fstat`. */
export function checkOwnFile(path: string, found: Stats): void {
  if (found.isSymbolicLink()) throw isLink(path);
  if (!found.isFile()) throw new UnsafeFileError(path, 'cannot be used: it is not a regular file');
  checkOwner(path, found);
  checkMode(path, found);
}

function readOpen(path: string, descriptor: number, check: (found: Stats) => void): string {
  try {
    check(fstatSync(descriptor));
    const chunks: Buffer[] = [];
    let length = 0;
    for (;;) {
      const chunk = Buffer.alloc(65_536);
      const read = readSync(descriptor, chunk);
      if (read === 0) return Buffer.concat(chunks).toString('utf8');
      length += read;
      if (length > maxFileBytes) throw new UnsafeFileError(path, `is larger than ${maxFileBytes} bytes`);
      chunks.push(chunk.subarray(0, read));
    }
  } finally {
    closeSync(descriptor);
  }
}

/** Resolves `path` step by step, checks each folder and link on the way, and returns the path without links. */
function walk(path: string): string {
  let place = '/';
  let links = 0;
  const steps = resolve(path).split('/').filter(Boolean);
  checkFolderAbove('/');
  for (let step = steps.shift(); step !== undefined; step = steps.shift()) {
    if (step === '..' || step === '.') {
      place = step === '..' ? dirname(place) : place;
      continue;
    }
    const next = join(place, step);
    const found = lstatSync(next);
    if (found.isSymbolicLink()) {
      checkOwner(next, found);
      links += 1;
      if (links > maxLinks) throw new UnsafeFileError(path, 'has too many symbolic links');
      const target = readlinkSync(next);
      if (target.startsWith('/')) place = '/';
      steps.unshift(...target.split('/').filter(Boolean));
      continue;
    }
    place = next;
    if (steps.length > 0) checkFolderAbove(place, found);
  }
  return place;
}

function checkFolderAbove(directory: string, found = lstatSync(directory)): void {
  checkOwner(directory, found);
  // In a sticky folder users cannot rename or remove files of others.
  if ((found.mode & sticky) === 0) checkMode(directory, found);
}

function checkOwner(path: string, { uid }: Stats): void {
  const own = process.geteuid?.() ?? 0;
  if (uid !== 0 && uid !== own)
    throw new UnsafeFileError(
      path,
      `belongs to user ${uid}, who could replace what is read there: chown ${own === 0 ? 'root' : own} ${path}, or use another place`,
    );
}

function checkMode(path: string, { mode }: Stats): void {
  if ((mode & writableByOthers) !== 0)
    throw new UnsafeFileError(
      path,
      `can be written by other users (mode ${modeText(mode)}): chmod go-w ${path}, or use another place`,
    );
}

function modeText(mode: number): string {
  return (mode & 0o7777).toString(8).padStart(4, '0');
}

function isLink(path: string): UnsafeFileError {
  return new UnsafeFileError(path, 'is a symbolic link, which this program never creates: remove it');
}
