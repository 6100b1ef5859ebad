/**
 * Files that this program believes, and folders in which it keeps keys. Whoever can replace one of them can have it chmod or
 * truncate another file by a symbolic link, or give the node another API server, token or key. So nothing is read or written
 * where a user besides root and the one this runs as could have put it:
 *
 *   every folder on the way   belongs to root or to us; others may not write to it (above the last one: or it is sticky, as /tmp)
 *   every symbolic link       belongs to root or to us
 *   the file                  is a regular one, belongs to root or to us, and others may not write to it
 *
 * On the way of every call of the kubelet: `node:fs` and nothing else.
 */
import { closeSync, constants, fstatSync, lstatSync, openSync, readlinkSync, readSync, statSync } from 'node:fs';
import type { Stats } from 'node:fs';
import { dirname, join, resolve } from 'node:path';

/** Nothing that this program reads is larger. */
export const maxFileBytes = 1_048_576;

/** The message says what is wrong with which path, and the command that mends it. */
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
const sticky = 0o1000;
const maxLinks = 40;

/** An existing folder in which secrets are kept. Throws UnsafeFileError, or what the file system says. */
export function checkOwnDirectory(directory: string): void {
  const real = walk(directory);
  const found = lstatSync(real);
  if (!found.isDirectory()) throw new UnsafeFileError(real, 'is no directory');
  checkOwner(real, found);
  // Not even a sticky one: others could put files there before we do.
  checkMode(real, found);
}

/**
 * The nearest folder above `path` that exists, before a folder is made there. A sticky one will do: what is made belongs to us, and
 * what another user made a moment earlier is seen by `checkOwnDirectory` afterwards.
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

/** The text of a file that an operator named. Throws UnsafeFileError, or what the file system says. */
export function readOwnFile(path: string): string {
  return readChecked(walk(path));
}

/** Of a file that only this program makes, in a directory that was checked: it never makes a link. */
export function readCacheFile(path: string): string {
  return readChecked(path);
}

/** The same as `readOwnFile`, or all that a pipe gives: `--token-file /dev/stdin`, `--token-file <(command)`. */
export function readGivenFile(path: string): string {
  const found = statSync(path);
  if (found.isFile() || found.isDirectory()) return readOwnFile(path);
  return readOpen(path, openSync(path, constants.O_RDONLY), () => {});
}

function readChecked(path: string): string {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  return readOpen(path, openNoLink(path, flags), (found) => checkOwnFile(path, found));
}

/** Of a file that exists: what `lstat` or `fstat` said of it. */
export function checkOwnFile(path: string, found: Stats): void {
  if (found.isSymbolicLink()) throw isLink(path);
  if (!found.isFile()) throw new UnsafeFileError(path, 'cannot be used: it is no regular file');
  checkOwner(path, found);
  checkMode(path, found);
}

function openNoLink(path: string, flags: number): number {
  try {
    return openSync(path, flags);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ELOOP') throw isLink(path);
    throw error;
  }
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

/** Follows `path` one step at a time, checks each folder and each link on the way, and gives the path without links. */
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
      if (links > maxLinks) throw new UnsafeFileError(path, 'leads over too many symbolic links');
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
  // In a sticky folder nobody can rename or remove what is another's.
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
      `can be written by other users (mode ${(mode & 0o7777).toString(8).padStart(4, '0')}): chmod go-w ${path}, or use another place`,
    );
}

function isLink(path: string): UnsafeFileError {
  return new UnsafeFileError(path, 'is a symbolic link, and this program makes none: remove it');
}
