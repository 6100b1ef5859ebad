/**
 * One process at a time works on a certificate. The lock is the kernel's (fcntl), so it ends with its holder however that
 * dies: there is no stale lock to detect, no process ID to compare with one that was given out again, and no moment in
 * which two processes both remove the lock of a third.
 *
 * Node has no call for it, but SQLite, which is in Node, has: `BEGIN EXCLUSIVE` on a database that is never written to.
 * The file stays empty. An abstract socket would do as well, were its names not free for every pod in the host's network.
 */
import { chmodSync, closeSync, lstatSync, openSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { CacheWriteError, codeOf } from './cache.ts';
import type { Slot } from './cache.ts';
import { checkOwnFile } from './own-files.ts';
import { errorMessage } from '../../core/outcome/error-message.ts';

export interface Lock {
  release(): void;
}

/** How often whoever waits looks again: the holder waits for a network. */
const retryMilliseconds = 50;

/** Nothing when it is not free by then. `idle` is asked before each wait and may end it. Throws what the disk says. */
export async function takeLock(
  slot: Slot,
  { now, until, idle }: { readonly now: () => number; readonly until: number; readonly idle?: () => boolean },
): Promise<Lock | undefined> {
  for (;;) {
    const lock = tryLock(lockFile(slot));
    if (lock !== undefined) return lock;
    if (idle?.() === true || now() >= until) return undefined;
    await sleep(Math.min(retryMilliseconds, Math.max(1, until - now())));
  }
}

export function lockFile({ directory, name }: Slot): string {
  return join(directory, `${name}.lock`);
}

/**
 * SQLite follows links and makes the file with the mode it likes. So the file is made here, and one that is there must be ours.
 * Between this look and SQLite's open nobody else can replace it: the directory was checked. It is not opened for the look,
 * since closing any descriptor of a file gives up the locks that this process has on it (fcntl).
 */
function prepare(file: string): void {
  let found = lstatSync(file, { throwIfNoEntry: false });
  try {
    if (found === undefined) closeSync(openSync(file, 'wx', 0o600));
  } catch (error) {
    // Another process was faster.
    if (codeOf(error) !== 'EEXIST') throw new CacheWriteError(file, codeOf(error));
  }
  found ??= lstatSync(file);
  checkOwnFile(file, found);
  if ((found.mode & 0o777) !== 0o600) chmodSync(file, 0o600);
}

function tryLock(file: string): Lock | undefined {
  prepare(file);
  let database: DatabaseSync | undefined;
  for (let attempt = 1; ; attempt += 1) {
    try {
      database = new DatabaseSync(file, { timeout: 0 });
      // Without a journal on disk: the lock takes no space, so a full disk does not keep anybody out.
      database.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE');
      const held = database;
      return { release: () => held.close() };
    } catch (error) {
      database?.close();
      database = undefined;
      const { errcode = 0 } = error as { readonly errcode?: number };
      if ((errcode & 0xff) === sqliteBusy) return undefined;
      if (!garbage.has(errcode & 0xff) || attempt > 1) throw lockError(file, error);
      // Somebody wrote into it. Emptied in place: another file of that name would be another lock.
      truncateSync(file);
    }
  }
}

const sqliteBusy = 5;
/** SQLITE_CORRUPT, SQLITE_NOTADB. */
const garbage: ReadonlySet<number> = new Set([11, 26]);

/** What an operator can do something about; SQLite's own words speak of databases. */
const explained: ReadonlyMap<number, string> = new Map([
  [8, 'the file system is read-only'],
  [10, 'the disk reports an error'],
  [13, 'the disk is full'],
  [14, 'it cannot be opened'],
]);

function lockError(file: string, error: unknown): Error {
  const { errcode } = error as { readonly errcode?: number };
  if (errcode === undefined) return new CacheWriteError(file, codeOf(error));
  const why = explained.get(errcode & 0xff) ?? errorMessage(error);
  return new Error(`${file} cannot be locked (${why})`);
}
