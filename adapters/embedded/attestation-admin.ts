/** What operators do to the embedded attestation store: each change in one transaction with its audit item. */
import type { DatabaseSync } from 'node:sqlite';
import {
  auditItemFrom,
  identityRecordFrom,
  lockFrom,
  machineEntryFrom,
  verdictFrom,
} from '../../core/attestation/records/stored-records.ts';
import type { Plain } from '../../core/attestation/records/stored-records.ts';
import type { AttestationAdmin, ChangeWrite } from '../../core/ports/attestation-store.ts';
import { oldestFirst, subjectsOf } from '../../core/attestation/locks.ts';
import { checkAdoption } from '../../core/attestation/records/claim-check.ts';
import type { IdentityStatements } from './identity-statements.ts';
import type { InTurn, Row, SqlValue } from './database.ts';

export function embeddedAttestationAdmin(
  database: DatabaseSync,
  records: IdentityStatements,
  inTurn: InTurn,
): AttestationAdmin {
  const deleteIdentity = database.prepare('DELETE FROM identity WHERE identity = ?');
  const deleteNode = database.prepare('DELETE FROM node WHERE node_name = ? AND identity = ?');
  const putMachine = database.prepare('INSERT OR REPLACE INTO machine (name, entry) VALUES (?, ?)');
  const deleteMachine = database.prepare('DELETE FROM machine WHERE name = ?');

  const findLock = database.prepare('SELECT lock AS json FROM lock WHERE subject = ?');
  const putLock = database.prepare('INSERT INTO lock (subject, lock) VALUES (?, ?)');
  const deleteLock = database.prepare('DELETE FROM lock WHERE subject = ?');

  /** Reads what is there when it is asked for, and gives it piece by piece. */
  async function* list<T>(sql: string, from: (plain: Plain) => T, ...values: SqlValue[]): AsyncIterable<T> {
    for (const row of database.prepare(sql).all(...values) as Row[]) yield recordOf(row, from);
  }

  return {
    listIdentities: () => list('SELECT record AS json FROM identity', identityRecordFrom),
    listVerdicts: (now) => list('SELECT verdict AS json FROM verdict WHERE expires_at > ?', verdictFrom, now),
    listAudit: () => list('SELECT item AS json FROM audit ORDER BY id', auditItemFrom),
    async listMachines() {
      const rows = database.prepare('SELECT entry AS json FROM machine ORDER BY name').all() as Row[];
      return rows.map((row) => recordOf(row, machineEntryFrom));
    },
    async reset(record, audit) {
      return inTurn((): ChangeWrite => {
        const found = records.still(record);
        if (found === undefined) return { kind: records.find(record.identity) === undefined ? 'missing' : 'changed' };
        const { identity, nodeName } = found;
        deleteIdentity.run(identity);
        // A retired machine's name is another's by now.
        deleteNode.run(nodeName, identity);
        records.freeAddresses(identity);
        records.audit(audit);
        return { kind: 'written' };
      });
    },
    async adopt(record, audit) {
      checkAdoption(record);
      return inTurn((): ChangeWrite => {
        const { identity, nodeName, addresses } = record;
        const taken = addresses.some((address) => records.owner(address) !== undefined);
        if (taken || records.find(identity) !== undefined || records.holder(nodeName) !== undefined)
          return { kind: 'changed' };
        records.create(record);
        for (const address of new Set(addresses)) records.occupy(address, identity);
        records.audit(audit);
        return { kind: 'written' };
      });
    },
    async allowMachine(entry, audit) {
      return inTurn((): ChangeWrite => {
        putMachine.run(entry.name, JSON.stringify(entry));
        records.audit(audit);
        return { kind: 'written' };
      });
    },
    async removeMachine(name, audit) {
      return inTurn((): ChangeWrite => {
        if (deleteMachine.run(name).changes === 0) return { kind: 'missing' };
        records.audit(audit);
        return { kind: 'written' };
      });
    },
    async listLocks() {
      const rows = database.prepare('SELECT lock AS json FROM lock').all() as Row[];
      return oldestFirst(rows.map((row) => recordOf(row, lockFrom)));
    },
    async lock(lock, audit) {
      return inTurn((): ChangeWrite => {
        const subjects = subjectsOf(lock);
        if (subjects.some((subject) => findLock.get(subject) !== undefined)) return { kind: 'changed' };
        for (const subject of subjects) putLock.run(subject, JSON.stringify(lock));
        records.audit(audit);
        return { kind: 'written' };
      });
    },
    async unlock(lock, audit) {
      return inTurn((): ChangeWrite => {
        const subjects = subjectsOf(lock);
        const isIt = (row: Row | undefined): boolean => row !== undefined && recordOf(row, lockFrom).id === lock.id;
        if (!subjects.every((subject) => isIt(findLock.get(subject)))) return { kind: 'missing' };
        for (const subject of subjects) deleteLock.run(subject);
        records.audit(audit);
        return { kind: 'written' };
      });
    },
  };
}

function recordOf<T>(row: Row, from: (plain: Plain) => T): T {
  return from(JSON.parse(String(row['json'])) as Plain);
}
