/**
 * The ledger in one SQLite file per cluster: for the demo, development and tests, with the same port and the same contract
 * suite as the DynamoDB ledger.
 */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type {
  CertificateLedger,
  FreshKey,
  Intent,
  IssuingRecord,
  LedgerResult,
  OpenResult,
} from '../../core/ports/certificate-ledger.ts';
import type { CertificateReads } from '../../core/ports/certificate-reads.ts';
import { issuingRecordFrom } from '../../core/issuing-record.ts';
import type { Instant } from '../../core/ports/instant.ts';
import { refuseInsideLambda } from './refuse-in-lambda.ts';
import { groupCommits, openDatabase } from './database.ts';
import type { DatabaseKind, Row, SqlValue } from './database.ts';

export interface EmbeddedLedger {
  readonly ledger: CertificateLedger;
  readonly reads: CertificateReads;
  /** Afterwards every method throws. */
  readonly close: () => void;
}

/**
 * The table has row IDs: if rows were stored by UID, each row of a kilobyte would be written to a different page. Every
 * statement also works on files of this schema whose table has no row IDs.
 */
const schema = `
  CREATE TABLE issuing (
    uid            TEXT NOT NULL PRIMARY KEY,
    request_digest TEXT NOT NULL,
    state          TEXT NOT NULL CHECK (state IN ('intent', 'issued', 'expired')),
    ca_key_id      TEXT NOT NULL,
    tbs            BLOB NOT NULL,
    serial         TEXT NOT NULL,
    not_after      INTEGER NOT NULL,
    opened_at      INTEGER NOT NULL,
    attempt        INTEGER NOT NULL CHECK (attempt >= 1),
    lease_until    INTEGER NOT NULL,
    lambda_request_id TEXT,
    identity       TEXT,
    request        TEXT,
    certificate    BLOB,
    kms_request_id TEXT CHECK (kms_request_id IS NULL OR state = 'issued'),
    CHECK ((certificate IS NOT NULL) = (state = 'issued'))
  ) STRICT;

  CREATE INDEX issuing_serial ON issuing (serial);
  CREATE INDEX issuing_expiry ON issuing (not_after, uid);

  -- An intent never changes, and issued and expired are final. Enforced here too, against a mistake in the statements.
  CREATE TRIGGER intent_never_changes BEFORE UPDATE ON issuing
  WHEN OLD.state <> 'intent' OR OLD.uid <> NEW.uid OR OLD.request_digest <> NEW.request_digest
    OR OLD.ca_key_id <> NEW.ca_key_id OR OLD.tbs <> NEW.tbs OR OLD.serial <> NEW.serial
    OR OLD.not_after <> NEW.not_after OR OLD.opened_at <> NEW.opened_at OR OLD.identity IS NOT NEW.identity
    OR OLD.request IS NOT NEW.request
  BEGIN SELECT RAISE(ABORT, 'an issuing record may only move forward'); END;

  CREATE TRIGGER issuing_is_never_deleted BEFORE DELETE ON issuing
  BEGIN SELECT RAISE(ABORT, 'an issuing record is never deleted'); END;

  -- The first request with each key.
  CREATE TABLE fresh_key (
    spki_sha256    TEXT PRIMARY KEY,
    request_sha256 TEXT NOT NULL,
    identity       TEXT,
    uid            TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;

  CREATE TRIGGER fresh_key_never_changes BEFORE UPDATE ON fresh_key
  BEGIN SELECT RAISE(ABORT, 'the first use of a key never changes'); END;

  CREATE TRIGGER fresh_key_is_never_deleted BEFORE DELETE ON fresh_key
  BEGIN SELECT RAISE(ABORT, 'the first use of a key is never deleted'); END;
`;

const selectRecord = `SELECT uid, request_digest AS requestDigest, state, ca_key_id AS caKeyId, tbs, serial,
  not_after AS notAfter, opened_at AS openedAt, attempt, lease_until AS leaseUntil, lambda_request_id AS lambdaRequestId,
  identity, request, certificate, kms_request_id AS kmsRequestId
  FROM issuing`;

const ledgerFile: DatabaseKind = { name: 'ledger', applicationId: 0x43_53_67_6e /* CSgn */, schemaVersion: 5, schema };

/** Opens or creates a cluster's ledger; `:memory:` is a ledger that ends with the process. */
export function openEmbeddedLedger(fileOrMemory: string, lockTimeoutMilliseconds?: number): EmbeddedLedger {
  refuseInsideLambda('the embedded ledger', process.env);
  const database = openDatabase(fileOrMemory, ledgerFile, lockTimeoutMilliseconds);
  return { ledger: ledgerOver(database), reads: readsOver(database), close: () => database.close() };
}

function ledgerOver(database: DatabaseSync): CertificateLedger {
  const select = database.prepare(`${selectRecord} WHERE uid = ?`);
  const insert = database.prepare(
    `INSERT INTO issuing
       (uid, request_digest, state, ca_key_id, tbs, serial, not_after, opened_at, attempt, lease_until,
        lambda_request_id, identity, request)
     VALUES (?, ?, 'intent', ?, ?, ?, ?, ?, 1, ?, ?, ?, ?) ON CONFLICT (uid) DO NOTHING`,
  );
  const takeOver = database.prepare(
    `UPDATE issuing SET attempt = attempt + 1, lease_until = ?, lambda_request_id = ?
     WHERE uid = ? AND state = 'intent' AND attempt = ?`,
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

  const selectKey = database.prepare('SELECT request_sha256, identity FROM fresh_key WHERE spki_sha256 = ?');
  const markKey = database.prepare(
    'INSERT INTO fresh_key (spki_sha256, request_sha256, identity, uid) VALUES (?, ?, ?, ?)',
  );

  const transact = groupCommits(database);

  /** Runs one conditional statement. If its condition does not hold, it reads the record under the same lock. */
  function writeNow(uid: string, statement: StatementSync, ...values: SqlValue[]): LedgerResult {
    if (statement.run(...values).changes === 1) return { kind: 'written' };
    const row = select.get(uid);
    if (row === undefined) throw new Error(`the ledger has no record of ${uid}`);
    return { kind: 'found', found: recordFrom(row, uid) };
  }
  function write(uid: string, statement: StatementSync, ...values: SqlValue[]): Promise<LedgerResult> {
    return transact(() => writeNow(uid, statement, ...values));
  }

  /** Marks the key as used; false if another request used it before. */
  function markKeyUsed({ spkiSha256, requestSha256, identity }: FreshKey, intent: Intent): boolean {
    const mark = selectKey.get(spkiSha256);
    if (mark === undefined) {
      markKey.run(spkiSha256, requestSha256, intent.identity ?? null, intent.uid);
      return true;
    }
    return mark['request_sha256'] === requestSha256 || (identity !== undefined && mark['identity'] === identity);
  }

  function open(intent: Intent): Promise<LedgerResult>;
  function open(intent: Intent, freshKey: FreshKey | undefined): Promise<OpenResult>;
  async function open(intent: Intent, freshKey?: FreshKey): Promise<OpenResult> {
    const { uid, requestDigest, caKeyId, tbs, serial, notAfter, openedAt, leaseUntil } = intent;
    const request = intent.request === undefined ? null : JSON.stringify(intent.request);
    const optional = [intent.lambdaRequestId ?? null, intent.identity ?? null, request];
    const values = [uid, requestDigest, caKeyId, tbs, serial, notAfter, openedAt, leaseUntil, ...optional];
    return transact((): OpenResult => {
      if (freshKey !== undefined) {
        // Read first: a UID that has a record keeps its answer and marks no key.
        const row = select.get(uid);
        if (row !== undefined) return { kind: 'found', found: recordFrom(row, uid) };
        if (!markKeyUsed(freshKey, intent)) return { kind: 'keyUsed' };
      }
      return writeNow(uid, insert, ...values);
    });
  }

  return {
    async find(uid) {
      const row = select.get(uid);
      return row === undefined ? undefined : recordFrom(row, uid);
    },
    open,
    async takeOver(uid, attempt, leaseUntil, lambdaRequestId) {
      return write(uid, takeOver, leaseUntil, lambdaRequestId ?? null, uid, attempt);
    },
    async release(uid, attempt) {
      await transact(() => release.run(uid, attempt));
    },
    async complete(uid, certificate, kmsRequestId) {
      return write(uid, complete, certificate, kmsRequestId ?? null, uid);
    },
    async expire(uid, attempt) {
      return write(uid, expire, uid, attempt);
    },
  };
}

/** Each page is a statement of its own, so that a slow reader keeps no state of the file alive. */
const pageSize = 100;

function readsOver(database: DatabaseSync): CertificateReads {
  const bySerial = database.prepare(`${selectRecord} WHERE serial = ?`);
  const page = database.prepare(
    `${selectRecord} WHERE (not_after, uid) > (?, ?) AND not_after < ? ORDER BY not_after, uid LIMIT ${pageSize}`,
  );
  return {
    async findSerial(serial) {
      const row = bySerial.get(serial);
      return row === undefined ? undefined : recordFrom(row);
    },
    async *listByExpiry({ from, to, after }) {
      // No UID is empty, so this place is before all records of its instant.
      let last: { readonly notAfter: Instant; readonly uid: string } = { notAfter: from, uid: '' };
      if (after !== undefined && after.notAfter >= from) last = after;
      for (;;) {
        const records = page.all(last.notAfter, last.uid, to).map((row) => recordFrom(row));
        yield* records;
        const end = records.at(-1);
        if (end === undefined || records.length < pageSize) return;
        last = end;
      }
    },
  };
}

function recordFrom(row: Row, uid = String(row['uid'])): IssuingRecord {
  const fields = Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null));
  const { request, ...others } = fields;
  return issuingRecordFrom(request === undefined ? others : { ...others, request: JSON.parse(String(request)) }, uid);
}
