/**
 * The SQLite file of an embedded store.
 *
 * Each write is in a transaction that takes the write lock before it reads (BEGIN IMMEDIATE), so its decision is about the
 * current state, even if several processes share the file. With WAL and synchronous=FULL the commit is on the disk before
 * the method returns. Concurrent writes share one commit, and so one wait for the disk.
 */
import type { StoredFields } from '../../core/encoding/stored-fields.ts';
import { closeSync, openSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import type { SQLOutputValue } from 'node:sqlite';
import { asError } from '../../core/outcome/error-message.ts';

export type SqlValue = string | number | Uint8Array | null;
export type Row = Readonly<Record<string, SQLOutputValue>>;

export interface DatabaseKind {
  /** For messages: `ledger`. */
  readonly name: string;
  /** Marks the file as Countersign's. Another SQLite file at the path is refused. */
  readonly applicationId: number;
  readonly schemaVersion: number;
  readonly schema: string;
}

/** A transaction takes a fraction of a millisecond, so a process that holds the lock this long hangs. */
const defaultLockTimeoutMilliseconds = 5_000;

/** Opens or creates the file with mode 0600; `:memory:` is a database that ends with the process. */
export function openDatabase(
  fileOrMemory: string,
  kind: DatabaseKind,
  lockTimeoutMilliseconds = defaultLockTimeoutMilliseconds,
): DatabaseSync {
  // SQLite would create the file with the umask's mode; its other files (WAL, shared memory) get the mode of this one.
  if (fileOrMemory !== ':memory:') closeSync(openSync(fileOrMemory, 'a', 0o600));
  const database = new DatabaseSync(fileOrMemory, { timeout: lockTimeoutMilliseconds });
  try {
    prepare(database, fileOrMemory, kind);
    useWriteAheadLog(database, lockTimeoutMilliseconds);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

function prepare(database: DatabaseSync, file: string, { name, applicationId, schemaVersion, schema }: DatabaseKind) {
  // If two processes open a new file at once, the lock makes one of them create the schema and the other find it.
  preparedTransaction(database)(() => {
    const found = pragma(database, 'application_id');
    const tables = Number(database.prepare('SELECT count(*) AS n FROM sqlite_schema').get()?.['n']);
    if (found === 0 && tables === 0) {
      database.exec(schema);
      database.exec(`PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${schemaVersion};`);
      return;
    }
    if (found !== applicationId) throw new Error(`${file} is a SQLite file, but not a Countersign ${name}`);
    const version = pragma(database, 'user_version');
    if (version !== schemaVersion)
      throw new Error(`${file} has ${name} schema ${version}; this program knows ${schemaVersion}`);
  });
}

/**
 * SQLite refuses to change the journal mode, without waiting for the lock, while another process writes: for example, when
 * two processes open a new file at once. So this function waits. Exported for its test.
 */
export function useWriteAheadLog(database: DatabaseSync, lockTimeoutMilliseconds: number): void {
  const pauseMilliseconds = 10;
  for (let triesLeft = lockTimeoutMilliseconds / pauseMilliseconds; ; triesLeft -= 1) {
    try {
      database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;');
      return;
    } catch (error) {
      if (triesLeft < 1 || !isLocked(error)) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, pauseMilliseconds);
    }
  }
}

/** SQLITE_BUSY; its extended codes have the same low byte. https://www.sqlite.org/rescode.html#busy */
function isLocked(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && (Number(error.errcode) & 0xff) === 5;
}

function pragma(database: DatabaseSync, name: 'application_id' | 'user_version'): number {
  return Number(database.prepare(`PRAGMA ${name}`).get()?.[name]);
}

/**
 * Runs the writes of one turn of the event loop in one transaction, since waiting for the disk is most of the cost of a
 * write. Each has its own result, after the commit. If one fails, only its own changes are undone.
 */
export function groupCommits(database: DatabaseSync): <T>(work: () => T) => Promise<T> {
  interface Waiting {
    /** Returns what to call after the commit. */
    readonly run: (alone: boolean) => () => void;
    readonly reject: (error: unknown) => void;
  }
  let waiting: Waiting[] = [];
  const transaction = preparedTransaction(database);
  const inSavepoint = preparedSavepoint(database);

  function commit(): void {
    const group = waiting;
    waiting = [];
    try {
      const settlements = transaction(() => group.map(({ run }) => run(group.length === 1)));
      for (const settle of settlements) settle();
    } catch (error) {
      for (const { reject } of group) reject(error);
    }
  }

  return (work) =>
    new Promise((resolve, reject) => {
      if (waiting.length === 0) setImmediate(commit);
      const run = (alone: boolean): (() => void) => {
        try {
          // The changes of a single write are undone with its transaction.
          const result = alone ? work() : inSavepoint(work);
          return () => resolve(result);
        } catch (error) {
          if (alone) throw error;
          // Some errors (disk full) end the whole transaction: then no write of the group was done.
          if (!database.isTransaction) throw error;
          return () => reject(asError(error));
        }
      };
      waiting.push({ run, reject });
    });
}

/** If the work fails, its changes are undone, and the transaction around it continues. */
function preparedSavepoint(database: DatabaseSync): <T>(work: () => T) => T {
  return preparedAround(database, 'SAVEPOINT one', 'RELEASE one', 'ROLLBACK TO one; RELEASE one');
}

/**
 * If the work fails, nothing is written. `BEGIN IMMEDIATE` takes the write lock at once, so that nothing read here can be
 * out of date when the write happens; `BEGIN` is for transactions that only read.
 */
function preparedTransaction(database: DatabaseSync, how = 'BEGIN IMMEDIATE'): <T>(work: () => T) => T {
  return preparedAround(database, how, 'COMMIT', 'ROLLBACK');
}

/** Prepares the statements before and after the work once. */
function preparedAround(database: DatabaseSync, before: string, after: string, undo: string): <T>(work: () => T) => T {
  const begin = database.prepare(before);
  const end = database.prepare(after);
  return (work) => {
    begin.run();
    try {
      const result = work();
      end.run();
      return result;
    } catch (error) {
      // SQLite ends the transaction itself on some errors (disk full). The first error is reported.
      if (database.isTransaction) database.exec(undo);
      throw error;
    }
  };
}

/** Runs several reads on one state, even if other processes write meanwhile. */
export function snapshots(database: DatabaseSync): <T>(work: () => T) => T {
  return preparedTransaction(database, 'BEGIN');
}

export type Transact = ReturnType<typeof groupCommits>;

export function textIn(row: Row | undefined, column: string): string | undefined {
  if (row === undefined) return undefined;
  const value = row[column];
  if (typeof value !== 'string') throw new TypeError(`attestation store column ${column} is not text`);
  return value;
}

export function jsonIn(row: Row, column: string): StoredFields {
  return JSON.parse(textIn(row, column) ?? '') as StoredFields;
}
