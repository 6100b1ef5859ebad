/**
 * The issuing record in one SQLite file per cluster: for the demo, development and tests, behind the same port and the
 * same contract suite as DynamoDB's.
 *
 * Each write is in a transaction that takes the write lock before it looks (BEGIN IMMEDIATE), so what it answers is
 * what stood there when it decided, also when several processes share the file. WAL with synchronous=FULL: the commit
 * is on the disk before the method returns. Writes that come together share one commit, so one wait for the disk.
 */
import { DatabaseSync } from 'node:sqlite';
import type { SQLOutputValue, StatementSync } from 'node:sqlite';
import type { CertificateLedger, IssuingRecord, LedgerWrite } from '../core/ports.ts';
import { refuseInsideLambda } from '../core/stand-in.ts';

export interface EmbeddedLedger {
  readonly ledger: CertificateLedger;
  /** Afterwards every method throws. */
  readonly close: () => void;
}

/** Marks the file as ours: "CSgn". Any other SQLite file that lies at the path is refused, not filled. */
const applicationId = 0x43_53_67_6e;
const schemaVersion = 2;
/** Every transaction is a fraction of a millisecond; who waits this long for the lock waits for a hung process. */
const defaultLockTimeoutMilliseconds = 5_000;

const schema = `
  CREATE TABLE issuing (
    uid            TEXT PRIMARY KEY,
    request_digest TEXT NOT NULL,
    state          TEXT NOT NULL CHECK (state IN ('intent', 'issued', 'expired')),
    ca_key_id      TEXT NOT NULL,
    tbs            BLOB NOT NULL,
    serial         TEXT NOT NULL,
    not_after      INTEGER NOT NULL,
    opened_at      INTEGER NOT NULL,
    attempt        INTEGER NOT NULL CHECK (attempt >= 1),
    lease_until    INTEGER NOT NULL,
    identity       TEXT,
    certificate    BLOB,
    kms_request_id TEXT CHECK (kms_request_id IS NULL OR state = 'issued'),
    CHECK ((certificate IS NOT NULL) = (state = 'issued'))
  ) STRICT, WITHOUT ROWID;

  -- What was begun never changes, and an end is an end: held here too, against a mistake in the statements above it.
  CREATE TRIGGER issuing_keeps_its_beginning BEFORE UPDATE ON issuing
  WHEN OLD.state <> 'intent' OR OLD.uid <> NEW.uid OR OLD.request_digest <> NEW.request_digest
    OR OLD.ca_key_id <> NEW.ca_key_id OR OLD.tbs <> NEW.tbs OR OLD.serial <> NEW.serial
    OR OLD.not_after <> NEW.not_after OR OLD.opened_at <> NEW.opened_at OR OLD.identity IS NOT NEW.identity
  BEGIN SELECT RAISE(ABORT, 'an issuing record may only move forward'); END;

  CREATE TRIGGER issuing_is_for_good BEFORE DELETE ON issuing
  BEGIN SELECT RAISE(ABORT, 'an issuing record is never deleted'); END;

  PRAGMA application_id = ${applicationId};
  PRAGMA user_version = ${schemaVersion};
`;

/** Opens or creates a cluster's ledger; `:memory:` for one that ends with the process. */
export function openEmbeddedLedger(
  fileOrMemory: string,
  lockTimeoutMilliseconds = defaultLockTimeoutMilliseconds,
): EmbeddedLedger {
  refuseInsideLambda('the embedded ledger', process.env);
  const database = new DatabaseSync(fileOrMemory, { timeout: lockTimeoutMilliseconds });
  try {
    prepareDatabase(database, fileOrMemory);
    return { ledger: ledgerOver(database), close: () => database.close() };
  } catch (error) {
    database.close();
    throw error;
  }
}

function prepareDatabase(database: DatabaseSync, file: string): void {
  // Two processes may open a new file at once: the lock makes one of them create the schema and the other find it.
  transaction(database, () => {
    const found = pragma(database, 'application_id');
    const tables = Number(database.prepare('SELECT count(*) AS n FROM sqlite_schema').get()?.['n']);
    if (found === 0 && tables === 0) {
      database.exec(schema);
      return;
    }
    if (found !== applicationId)
      throw new Error(`${file} is a SQLite file of something else, not a Countersign ledger`);
    const version = pragma(database, 'user_version');
    if (version !== schemaVersion)
      throw new Error(`${file} has ledger schema ${version}; this program knows ${schemaVersion}`);
  });
  database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;');
}

function ledgerOver(database: DatabaseSync): CertificateLedger {
  const select = database.prepare('SELECT * FROM issuing WHERE uid = ?');
  const insert = database.prepare(
    `INSERT INTO issuing
       (uid, request_digest, state, ca_key_id, tbs, serial, not_after, opened_at, attempt, lease_until, identity)
     VALUES (?, ?, 'intent', ?, ?, ?, ?, ?, 1, ?, ?) ON CONFLICT (uid) DO NOTHING`,
  );
  const takeOver = database.prepare(
    `UPDATE issuing SET attempt = attempt + 1, lease_until = ? WHERE uid = ? AND state = 'intent' AND attempt = ?`,
  );
  const release = database.prepare(
    `UPDATE issuing SET lease_until = 0 WHERE uid = ? AND state = 'intent' AND attempt = ?`,
  );
  const complete = database.prepare(
    `UPDATE issuing SET state = 'issued', certificate = ?, kms_request_id = ? WHERE uid = ? AND state = 'intent'`,
  );
  const expire = database.prepare(
    `UPDATE issuing SET state = 'expired' WHERE uid = ? AND state = 'intent' AND attempt = ?`,
  );

  const inTurn = groupCommits(database);

  /** Runs one conditional statement; when its condition does not hold, reads what stands there under the same lock. */
  function write(uid: string, statement: StatementSync, ...values: SqlValue[]): Promise<LedgerWrite> {
    return inTurn(() => {
      if (statement.run(...values).changes === 1) return { written: true };
      const row = select.get(uid);
      if (row === undefined) throw new Error(`the ledger has no record of ${uid}`);
      return { written: false, found: recordFrom(row) };
    });
  }

  return {
    async find(uid) {
      const row = select.get(uid);
      return row === undefined ? undefined : recordFrom(row);
    },
    async open({ uid, requestDigest, caKeyId, tbs, serial, notAfter, openedAt, leaseUntil, identity }) {
      const begun = [uid, requestDigest, caKeyId, tbs, serial, notAfter, openedAt, leaseUntil, identity ?? null];
      return write(uid, insert, ...begun);
    },
    async takeOver(uid, attempt, leaseUntil) {
      return write(uid, takeOver, leaseUntil, uid, attempt);
    },
    async release(uid, attempt) {
      await inTurn(() => release.run(uid, attempt));
    },
    async complete(uid, certificate, kmsRequestId) {
      return write(uid, complete, certificate, kmsRequestId ?? null, uid);
    },
    async expire(uid, attempt) {
      return write(uid, expire, uid, attempt);
    },
  };
}

type SqlValue = string | number | Uint8Array | null;
type Row = Readonly<Record<string, SQLOutputValue>>;

function recordFrom(row: Row): IssuingRecord {
  const state = row['state'];
  if (state !== 'intent' && state !== 'issued' && state !== 'expired')
    throw new Error('the ledger holds an unknown state');
  return {
    uid: text(row, 'uid'),
    requestDigest: text(row, 'request_digest'),
    state,
    caKeyId: text(row, 'ca_key_id'),
    tbs: bytes(row, 'tbs'),
    serial: text(row, 'serial'),
    notAfter: integer(row, 'not_after'),
    openedAt: integer(row, 'opened_at'),
    attempt: integer(row, 'attempt'),
    leaseUntil: integer(row, 'lease_until'),
    ...(row['identity'] === null ? {} : { identity: text(row, 'identity') }),
    ...(row['certificate'] === null ? {} : { certificate: bytes(row, 'certificate') }),
    ...(row['kms_request_id'] === null ? {} : { kmsRequestId: text(row, 'kms_request_id') }),
  };
}

function text(row: Row, column: string): string {
  const value = row[column];
  if (typeof value !== 'string') throw new Error(`ledger column ${column} is not text`);
  return value;
}

function integer(row: Row, column: string): number {
  const value = row[column];
  if (typeof value !== 'number') throw new Error(`ledger column ${column} is not an integer`);
  return value;
}

function bytes(row: Row, column: string): Uint8Array {
  const value = row[column];
  if (!(value instanceof Uint8Array)) throw new Error(`ledger column ${column} is not bytes`);
  return value;
}

function pragma(database: DatabaseSync, name: 'application_id' | 'user_version'): number {
  return Number(database.prepare(`PRAGMA ${name}`).get()?.[name]);
}

/**
 * Runs what came in one turn of the event loop in one transaction: waiting for the disk is most of what a write costs.
 * Each answers for itself, and none before the commit. `work` runs a single writing statement: if it fails, SQLite
 * takes back that statement and no other.
 */
function groupCommits(database: DatabaseSync): <T>(work: () => T) => Promise<T> {
  interface Waiting {
    /** Gives what is to be told once the commit is done. */
    readonly run: () => () => void;
    readonly reject: (error: unknown) => void;
  }
  let waiting: Waiting[] = [];

  function commit(): void {
    const group = waiting;
    waiting = [];
    try {
      const answers = transaction(database, () => group.map(({ run }) => run()));
      for (const answer of answers) answer();
    } catch (error) {
      for (const { reject } of group) reject(error);
    }
  }

  return (work) =>
    new Promise((resolve, reject) => {
      if (waiting.length === 0) setImmediate(commit);
      const run = (): (() => void) => {
        try {
          const result = work();
          return () => resolve(result);
        } catch (error) {
          // Some errors (disk full) end the whole transaction: then nobody's write was done.
          if (!database.isTransaction) throw error;
          return () => reject(error instanceof Error ? error : new Error(String(error)));
        }
      };
      waiting.push({ run, reject });
    });
}

/** All or nothing, with the write lock from the first statement on, so that no reader's view can be out of date. */
function transaction<T>(database: DatabaseSync, work: () => T): T {
  database.exec('BEGIN IMMEDIATE');
  try {
    const result = work();
    database.exec('COMMIT');
    return result;
  } catch (error) {
    // SQLite ends the transaction itself on some errors (disk full); the first error is the one to tell.
    if (database.isTransaction) database.exec('ROLLBACK');
    throw error;
  }
}
