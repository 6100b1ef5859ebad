/** The statements that the attestation store and its administration share, and the removal of what expired. */
import type { DatabaseSync } from 'node:sqlite';
import { identityRecordFrom } from '../../core/attestation/records/stored-records.ts';
import type { AuditItem, IdentityRecord } from '../../core/ports/attestation-store.ts';
import type { Instant } from '../../core/ports/instant.ts';
import { textIn, jsonIn } from './database.ts';

export type IdentityStatements = ReturnType<typeof identityStatements>;

/** The statements that store and administration share. Each must run inside a transaction. */
export function identityStatements(database: DatabaseSync) {
  const select = database.prepare('SELECT record FROM identity WHERE identity = ?');
  const selectHolder = database.prepare(
    'SELECT identity FROM node WHERE node_name = ? AND (expires_at IS NULL OR expires_at > ?)',
  );
  const selectEnding = database.prepare('SELECT 1 FROM node WHERE node_name = ? AND expires_at IS NOT NULL');
  const selectOwner = database.prepare('SELECT identity FROM address WHERE address = ?');
  const insert = database.prepare(
    'INSERT INTO identity (identity, node_name, state, first_seen, rev, record) VALUES (?, ?, ?, ?, ?, ?)',
  );
  const update = database.prepare('UPDATE identity SET state = ?, rev = ?, record = ? WHERE identity = ?');
  const setHolder = database.prepare(
    `INSERT INTO node (node_name, identity) VALUES (?, ?)
     ON CONFLICT (node_name) DO UPDATE SET identity = excluded.identity, expires_at = NULL`,
  );
  const endName = database.prepare('UPDATE node SET expires_at = ? WHERE node_name = ? AND identity = ?');
  const occupy = database.prepare('INSERT INTO address (address, identity) VALUES (?, ?)');
  const free = database.prepare('DELETE FROM address WHERE identity = ?');
  const insertAudit = database.prepare('INSERT INTO audit (id, item) VALUES (?, ?)');

  const find = (identity: string): IdentityRecord | undefined => {
    const row = select.get(identity);
    return row === undefined ? undefined : identityRecordFrom(jsonIn(row, 'record'));
  };
  return {
    find,
    /** The name of a retired machine has no holder from `nameFreeAt` on; without `now` nothing has expired. */
    holder: (nodeName: string, now: Instant = 0): string | undefined =>
      textIn(selectHolder.get(nodeName, now), 'identity'),
    owner: (address: string): string | undefined => textIn(selectOwner.get(address), 'identity'),
    /** The stored record, if it is unchanged. `rev` alone is not enough: after a reset, the next first use starts at 1. */
    findUnchanged({ identity, rev, firstSeen, nodeName }: IdentityRecord): IdentityRecord | undefined {
      const found = find(identity);
      return found?.rev === rev && found.firstSeen === firstSeen && found.nodeName === nodeName ? found : undefined;
    },
    create(record: IdentityRecord) {
      const { identity, nodeName, state, firstSeen, rev } = record;
      insert.run(identity, nodeName, state, firstSeen, rev, JSON.stringify(record));
      setHolder.run(nodeName, identity);
    },
    replace(record: IdentityRecord) {
      update.run(record.state, record.rev, JSON.stringify(record), record.identity);
    },
    /** Whether the node name of this retired machine has no successor yet. */
    isEnding: (nodeName: string): boolean => selectEnding.get(nodeName) !== undefined,
    /** The addresses become free, and the node name at `nameFreeAt`; without it the name passes on in the same transaction. */
    retire(record: IdentityRecord, times: Pick<IdentityRecord, 'retiredAt' | 'nameFreeAt'>) {
      const { identity, nodeName, rev } = record;
      const retired: IdentityRecord = { ...record, ...times, state: 'retired', addresses: [], rev: rev + 1 };
      update.run(retired.state, retired.rev, JSON.stringify(retired), identity);
      free.run(identity);
      if (times.nameFreeAt !== undefined) endName.run(times.nameFreeAt, nodeName, identity);
    },
    occupy: (address: string, identity: string) => void occupy.run(address, identity),
    freeAddresses: (identity: string) => void free.run(identity),
    audit: (item: AuditItem) => void insertAudit.run(item.id, JSON.stringify(item)),
  };
}

// ── Expired rows ────────────────────────────────────────────────────────────────────────────────────────────────────

/** As in DynamoDB (attestation-items.ts): processes that share the file may have different clocks. */
const keptMilliseconds = 3_600_000;
/** In one transaction and from each table, so that a write is not delayed. A claim adds fewer rows. */
const mostRows = 100;

/** The indexes that the removal needs. */
export const expiryIndexes = `
  CREATE INDEX verdict_expiry ON verdict (expires_at);
  CREATE INDEX once_expiry ON once (expires_at);
  CREATE INDEX refused_expiry ON refused (beginning);
  CREATE INDEX node_expiry ON node (expires_at) WHERE expires_at IS NOT NULL;
`;

/**
 * Removes expired verdicts, spent evidence, counts of refusals and node names of retired machines, which count as absent before that.
 * The result must run inside a transaction.
 */
export function expiredRows(database: DatabaseSync): (now: Instant) => void {
  const removals = [
    'DELETE FROM verdict WHERE uid IN (SELECT uid FROM verdict WHERE expires_at <= ? LIMIT ?)',
    'DELETE FROM once WHERE (kind, id) IN (SELECT kind, id FROM once WHERE expires_at <= ? LIMIT ?)',
    // A window of refusals is a minute long (request-limits.ts).
    'DELETE FROM refused WHERE (requester, beginning) IN (SELECT requester, beginning FROM refused WHERE beginning <= ? LIMIT ?)',
    'DELETE FROM node WHERE node_name IN (SELECT node_name FROM node WHERE expires_at <= ? LIMIT ?)',
  ].map((sql) => database.prepare(sql));
  return (now) => {
    for (const removal of removals) removal.run(now - keptMilliseconds, mostRows);
  };
}
