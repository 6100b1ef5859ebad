/** Revocations and CRLs in one SQLite file per cluster: the same ports as in DynamoDB, for development and tests. */
import type { CrlStore, RevocationStore } from '../../core/ports/revocations.ts';
import { crlHeadFrom, decodeCrlBody, encodeCrlBody, revocationFrom } from '../../core/revocation/stored-revocations.ts';
import { groupCommits, jsonIn, openDatabase, textIn } from './database.ts';
import type { DatabaseKind } from './database.ts';
import { refuseInsideLambda } from './refuse-in-lambda.ts';

const schema = `
  CREATE TABLE revoked (
    ca_key_id  TEXT NOT NULL,
    serial     TEXT NOT NULL,
    not_after  INTEGER NOT NULL,
    revocation TEXT NOT NULL,
    PRIMARY KEY (ca_key_id, serial)
  ) STRICT, WITHOUT ROWID;

  CREATE INDEX revoked_expiry ON revoked (ca_key_id, not_after, serial);

  CREATE TRIGGER revoked_never_changes BEFORE UPDATE ON revoked
  BEGIN SELECT RAISE(ABORT, 'a revocation never changes'); END;

  CREATE TRIGGER revoked_is_never_deleted BEFORE DELETE ON revoked
  BEGIN SELECT RAISE(ABORT, 'a revocation is never deleted'); END;

  -- The CRLs of all numbers; only the latest has its body.
  CREATE TABLE crl (
    ca_key_id TEXT NOT NULL,
    number    INTEGER NOT NULL,
    head      TEXT NOT NULL,
    body      TEXT,
    PRIMARY KEY (ca_key_id, number)
  ) STRICT;
`;

const revocationsFile: DatabaseKind = {
  name: 'revocations',
  applicationId: 0x43_53_67_72 /* CSgr */,
  schemaVersion: 1,
  schema,
};

export interface EmbeddedRevocations {
  readonly revocations: RevocationStore;
  readonly crls: CrlStore;
  /** Afterwards every method throws. */
  readonly close: () => void;
}

/** A page of `list` is a statement of its own, so that a slow reader keeps no state of the file alive. */
const pageSize = 500;

/** Opens or creates the file; `:memory:` ends with the process. */
export function openEmbeddedRevocations(fileOrMemory: string): EmbeddedRevocations {
  refuseInsideLambda('the embedded store of revocations', process.env);
  const database = openDatabase(fileOrMemory, revocationsFile);
  const select = database.prepare('SELECT revocation FROM revoked WHERE ca_key_id = ? AND serial = ?');
  const insert = database.prepare('INSERT INTO revoked VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING');
  const page = database.prepare(
    `SELECT revocation FROM revoked WHERE ca_key_id = ? AND (not_after, serial) > (?, ?)
     ORDER BY not_after, serial LIMIT ${pageSize}`,
  );
  const latest = database.prepare(
    'SELECT number, head, body FROM crl WHERE ca_key_id = ? ORDER BY number DESC LIMIT 1',
  );
  const insertCrl = database.prepare('INSERT INTO crl VALUES (?, ?, ?, ?)');
  const dropBodies = database.prepare('UPDATE crl SET body = NULL WHERE ca_key_id = ? AND number < ?');
  const transact = groupCommits(database);

  return {
    close: () => database.close(),
    revocations: {
      async find(caKeyId, serial) {
        const row = select.get(caKeyId, serial);
        return row === undefined ? undefined : revocationFrom(jsonIn(row, 'revocation'));
      },
      add(revocation) {
        const { caKeyId, serial, notAfter } = revocation;
        return transact(() => {
          insert.run(caKeyId, serial, notAfter, JSON.stringify(revocation));
          return revocationFrom(jsonIn(select.get(caKeyId, serial) ?? {}, 'revocation'));
        });
      },
      async *list(caKeyId, now) {
        // U+10FFFF is after each serial number, so this place is after all revocations of `now`.
        let after: { readonly notAfter: number; readonly serial: string } = { notAfter: now, serial: '\u{10FFFF}' };
        for (;;) {
          const rows = page.all(caKeyId, after.notAfter, after.serial);
          const found = rows.map((row) => revocationFrom(jsonIn(row, 'revocation')));
          yield* found;
          const last = found.at(-1);
          if (last === undefined || found.length < pageSize) return;
          after = last;
        }
      },
    },
    crls: {
      async findHead(caKeyId) {
        const row = latest.get(caKeyId);
        return row === undefined ? undefined : crlHeadFrom(jsonIn(row, 'head'));
      },
      async findCrl(caKeyId) {
        const row = latest.get(caKeyId);
        if (row === undefined) return undefined;
        return { ...crlHeadFrom(jsonIn(row, 'head')), ...decodeCrlBody(textIn(row, 'body') ?? '') };
      },
      putCrl(crl) {
        const { der: _, revoked: __, ...head } = crl;
        const { caKeyId, number } = head;
        return transact(() => {
          if (Number(latest.get(caKeyId)?.['number'] ?? 0) !== number - 1) return false;
          insertCrl.run(caKeyId, number, JSON.stringify(head), encodeCrlBody(crl));
          dropBodies.run(caKeyId, number);
          return true;
        });
      },
    },
  };
}
