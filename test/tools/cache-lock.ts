import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Runs `work` while no other process works in this cache folder.
 *
 * The lock is SQLite's file lock. The kernel releases it when its holder dies, so a killed build leaves no stale lock.
 * One lock for all tools, because two Go builds of Kubernetes at once need more memory than many laptops have.
 */
export async function withCacheLock<T>(cacheFolder: string, onWait: () => void, work: () => Promise<T>): Promise<T> {
  mkdirSync(cacheFolder, { recursive: true });
  const database = new DatabaseSync(join(cacheFolder, 'lock.sqlite'), { timeout: 0 });
  try {
    for (let attempt = 0; !tryLock(database); attempt++) {
      if (attempt === 0) onWait();
      await sleep(250);
    }
    return await work();
  } finally {
    database.close(); // rolls the empty transaction back, which releases the lock
  }
}

function tryLock(database: DatabaseSync): boolean {
  try {
    database.exec('BEGIN EXCLUSIVE');
    return true;
  } catch (error) {
    if (error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY) return false;
    throw error;
  }
}

const SQLITE_BUSY = 5;
