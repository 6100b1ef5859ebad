/**
 * Only one process at a time obtains a certificate. The kernel holds the lock (fcntl) and releases it when the process dies,
 * so there are no stale locks and no process IDs to compare.
 *
 * Node has no API for fcntl locks, but SQLite, which is part of Node, uses them: `BEGIN EXCLUSIVE` on a database that is never
 * written to. The file stays empty. An abstract socket is no alternative: every pod with host network could take its name.
 */
import { chmodSync, closeSync, lstatSync, openSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { CacheWriteError, codeOf } from './cache.ts';
import type { Slot } from './cache.ts';
import { checkOwnFile } from './own-files.ts';
import { errorMessage } from '../../core/outcome/error-message.ts';

interface Lock {
  release(): void;
}

/** Interval of polling. A shorter one would not help, since the holder of the lock waits for the network. */
const retryMilliseconds = 50;

/** undefined if the lock is not free by `until`. Throws disk errors. */
export async function takeLock(slot: Slot, now: () => number, until: number): Promise<Lock | undefined> {
  for (;;) {
    const lock = tryLock(lockFile(slot));
    if (lock !== undefined) return lock;
    if (now() >= until) return undefined;
    await sleep(Math.min(retryMilliseconds, Math.max(1, until - now())));
  }
}

export function lockFile({ directory, name }: Slot): string {
  return join(directory, `${name}.lock`);
}

/**
 * SQLite follows symbolic links and chooses the file mode itself. So the file is created here, and an existing one must belong
 * to us. No other user can replace it before SQLite opens it, since the directory was checked. The check does not open the
 * file: closing any descriptor of a file releases the process's fcntl locks on it.
 */
function prepare(file: string): void {
  let found = lstatSync(file, { throwIfNoEntry: false });
  try {
    if (found === undefined) closeSync(openSync(file, 'wx', 0o600));
  } catch (error) {
    // Another process created it first.
    if (codeOf(error) !== 'EEXIST') throw new CacheWriteError(file, codeOf(error));
  }
  found ??= lstatSync(file);
  checkOwnFile(file, found);
  if ((found.mode & 0o777) !== 0o600) chmodSync(file, 0o600);
}

function tryLock(file: string, mayTruncate = true): Lock | undefined {
  prepare(file);
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(file, { timeout: 0 });
    // The journal is in memory, so that the lock works on a full disk.
    database.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE');
    const held = database;
    return { release: () => held.close() };
  } catch (error) {
    database?.close();
    const { errcode = 0 } = error as { readonly errcode?: number };
    if ((errcode & 0xff) === sqliteBusy) return undefined;
    if (!garbage.has(errcode & 0xff) || !mayTruncate) throw lockError(file, error);
    // The file has other content. It is truncated in place, since a new file would be another lock.
    truncateSync(file);
    return tryLock(file, false);
  }
}

const sqliteBusy = 5;
/** SQLITE_CORRUPT, SQLITE_NOTADB. */
const garbage: ReadonlySet<number> = new Set([11, 26]);

/** SQLite's own messages speak of databases; these name the cause. */
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
