/** What operators do to the embedded attestation store: each change in one transaction with its audit item. */
import type { DatabaseSync } from 'node:sqlite';
import {
  auditItemFrom,
  identityRecordFrom,
  lockFrom,
  machineEntryFrom,
  verdictFrom,
} from '../../core/attestation/records/stored-records.ts';
import type { StoredFields } from '../../core/encoding/stored-fields.ts';
import type { AttestationAdmin, AuditItem, ChangeResult } from '../../core/ports/attestation-store.ts';
import { oldestFirst, subjectsOf } from '../../core/attestation/records/lock-subjects.ts';
import { checkAdoption } from '../../core/attestation/records/claim-check.ts';
import type { IdentityStatements } from './attestation-statements.ts';
import type { Transact, Row, SqlValue } from './database.ts';

export function embeddedAttestationAdmin(
  database: DatabaseSync,
  records: IdentityStatements,
  transact: Transact,
): AttestationAdmin {
  const deleteIdentity = database.prepare('DELETE FROM identity WHERE identity = ?');
  const deleteNode = database.prepare('DELETE FROM node WHERE node_name = ? AND identity = ?');
  const putMachine = database.prepare('INSERT OR REPLACE INTO machine (name, entry) VALUES (?, ?)');
  const deleteMachine = database.prepare('DELETE FROM machine WHERE name = ?');

  const findLock = database.prepare('SELECT lock AS json FROM lock WHERE subject = ?');
  const putLock = database.prepare('INSERT INTO lock (subject, lock) VALUES (?, ?)');
  const deleteLock = database.prepare('DELETE FROM lock WHERE subject = ?');

  /** All rows are read when the first item is requested. */
  async function* list<T>(sql: string, from: (plain: StoredFields) => T, ...values: SqlValue[]): AsyncIterable<T> {
    for (const row of database.prepare(sql).all(...values) as Row[]) yield recordOf(row, from);
  }

  /** Runs `work`, and writes the audit item unless `work` returns why the change cannot be made. */
  const change = (audit: AuditItem, work: () => 'missing' | 'changed' | undefined): Promise<ChangeResult> =>
    transact(() => {
      const obstacle = work();
      if (obstacle !== undefined) return { kind: obstacle };
      records.audit(audit);
      return { kind: 'written' };
    });

  return {
    listIdentities: () => list('SELECT record AS json FROM identity', identityRecordFrom),
    listVerdicts: (now) => list('SELECT verdict AS json FROM verdict WHERE expires_at > ?', verdictFrom, now),
    listAudit: () => list('SELECT item AS json FROM audit ORDER BY id', auditItemFrom),
    async listMachines() {
      const rows = database.prepare('SELECT entry AS json FROM machine ORDER BY name').all() as Row[];
      return rows.map((row) => recordOf(row, machineEntryFrom));
    },
    async reset(record, audit) {
      return change(audit, () => {
        const found = records.findUnchanged(record);
        if (found === undefined) return records.find(record.identity) === undefined ? 'missing' : 'changed';
        const { identity, nodeName } = found;
        deleteIdentity.run(identity);
        // Only if this machine still has the name: the name of a retired machine may belong to another one.
        deleteNode.run(nodeName, identity);
        records.freeAddresses(identity);
        return undefined;
      });
    },
    async adopt(record, audit) {
      checkAdoption(record);
      return change(audit, () => {
        const { identity, nodeName, addresses } = record;
        const taken = addresses.some((address) => records.owner(address) !== undefined);
        if (taken || records.find(identity) !== undefined || records.holder(nodeName, audit.at) !== undefined)
          return 'changed';
        records.create(record);
        for (const address of new Set(addresses)) records.occupy(address, identity);
        return undefined;
      });
    },
    async allowMachine(entry, audit) {
      return change(audit, () => {
        putMachine.run(entry.name, JSON.stringify(entry));
        return undefined;
      });
    },
    async removeMachine(name, audit) {
      return change(audit, () => {
        return deleteMachine.run(name).changes === 0 ? 'missing' : undefined;
      });
    },
    async listLocks() {
      const rows = database.prepare('SELECT lock AS json FROM lock').all() as Row[];
      return oldestFirst(rows.map((row) => recordOf(row, lockFrom)));
    },
    async lock(lock, audit) {
      return change(audit, () => {
        const subjects = subjectsOf(lock);
        if (subjects.some((subject) => findLock.get(subject) !== undefined)) return 'changed';
        for (const subject of subjects) putLock.run(subject, JSON.stringify(lock));
        return undefined;
      });
    },
    async unlock(lock, audit) {
      return change(audit, () => {
        const subjects = subjectsOf(lock);
        const same = (row: Row | undefined): boolean => row !== undefined && recordOf(row, lockFrom).id === lock.id;
        if (!subjects.every((subject) => same(findLock.get(subject)))) return 'missing';
        for (const subject of subjects) deleteLock.run(subject);
        return undefined;
      });
    },
    async addAudit(audit) {
      await change(audit, () => undefined);
    },
  };
}

function recordOf<T>(row: Row, from: (plain: StoredFields) => T): T {
  return from(JSON.parse(String(row['json'])) as StoredFields);
}
