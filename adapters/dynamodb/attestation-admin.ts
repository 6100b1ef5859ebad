/** What operators do to the attestations table: each change in one transaction with its audit item. */
import { ScanCommand } from '@aws-sdk/client-dynamodb';
import type { TransactWriteItem } from '@aws-sdk/client-dynamodb';
import {
  auditItemFrom,
  identityRecordFrom,
  lockFrom,
  machineEntryFrom,
  verdictFrom,
} from '../../core/attestation/records/stored-records.ts';
import type { StoredFields } from '../../core/encoding/stored-fields.ts';
import type { AttestationAdmin, AuditItem, ChangeResult, MachineEntry } from '../../core/ports/attestation-store.ts';
import { oldestFirst, subjectsOf } from '../../core/attestation/records/lock-subjects.ts';
import { checkAdoption } from '../../core/attestation/records/claim-check.ts';
import { auditedChange } from './audited-change.ts';
import { isAbsent, isPresent, belongsTo, isUnchanged, keys, patternPrefix, writesOf } from './attestation-items.ts';
import { attestationsTable, mapTableErrors } from './table.ts';
import { transactGet } from './transactions.ts';
import type { TransactionOptions } from './transactions.ts';
import { attributeFrom, itemFrom, plainFrom } from './values.ts';
import type { Item } from './values.ts';

export function dynamoDbAttestationAdmin(options: TransactionOptions): AttestationAdmin {
  const { client, tableName } = options;
  const writes = writesOf(tableName);

  /** Every item of this kind. Only for operators' commands: it reads the whole table. */
  async function* scan(kind: string): AsyncGenerator<Item> {
    let from: Item | undefined;
    do {
      const command = new ScanCommand({
        TableName: tableName,
        ConsistentRead: true,
        FilterExpression: 'begins_with(#pk, :kind)',
        ExpressionAttributeNames: { '#pk': attestationsTable.partitionKey },
        ExpressionAttributeValues: { ':kind': { S: `${kind}#` } },
        ...(from === undefined ? {} : { ExclusiveStartKey: from }),
      });
      const { Items: items = [], LastEvaluatedKey: next } = await mapTableErrors(() => client.send(command));
      yield* items;
      from = next;
    } while (from !== undefined);
  }

  async function* list<T>(kind: string, read: (plain: StoredFields) => T): AsyncGenerator<T> {
    for await (const item of scan(kind)) yield read(plainFrom(item));
  }

  const change = (audit: AuditItem, ...items: readonly TransactWriteItem[]): Promise<ChangeResult> =>
    auditedChange(options, audit, ...items);

  return {
    listIdentities: () => list('id', identityRecordFrom),
    async *listVerdicts(now) {
      for await (const verdict of list('verdict', verdictFrom)) if (verdict.expiresAt > now) yield verdict;
    },
    async *listAudit() {
      const items = await Array.fromAsync(list('audit', auditItemFrom));
      yield* items.toSorted((a, b) => (a.id < b.id ? -1 : 1));
    },
    async listMachines() {
      const entries = (await Array.fromAsync(scan('machine'))).flatMap(entriesIn);
      return entries.toSorted((a, b) => (a.name < b.name ? -1 : 1));
    },
    async reset(record, audit) {
      const { identity, nodeName, addresses } = record;
      // A retired machine that has lost its node name never gets it back. So a machine that does not hold the name now cannot
      // hold it when the transaction is written.
      const [node] = await transactGet(options, [keys.node(nodeName)]);
      return change(
        audit,
        writes.remove(keys.identity(identity), isUnchanged(record)),
        ...(node?.['identity']?.S === identity ? [writes.remove(keys.node(nodeName), belongsTo(identity))] : []),
        ...writes.freeAddresses(addresses, identity),
      );
    },
    async adopt(record, audit) {
      checkAdoption(record);
      const answer = await change(audit, ...writes.firstUse(record, audit.at));
      return answer.kind === 'written' ? answer : { kind: 'changed' };
    },
    async allowMachine(entry, audit) {
      const { name, ...about } = entry;
      if (name.includes('*'))
        return change(audit, patternWrite(`SET #pattern = :about`, name, { ':about': attributeFrom(about) }));
      return change(audit, { Put: { TableName: tableName, Item: { ...itemFrom(entry), ...keys.machine(name) } } });
    },
    async removeMachine(name, audit) {
      const hasPattern = 'attribute_exists(#pattern)';
      const item = name.includes('*')
        ? patternWrite('REMOVE #pattern', name, undefined, hasPattern)
        : writes.remove(keys.machine(name), isPresent);
      const answer = await change(audit, item);
      return answer.kind === 'written' ? answer : { kind: 'missing' };
    },
    async listLocks() {
      return oldestFirst(await Array.fromAsync(list('lock', lockFrom)));
    },
    async lock(lock, audit) {
      const answer = await change(
        audit,
        ...subjectsOf(lock).map((subject) => writes.put(keys.lock(subject), itemFrom(lock), isAbsent)),
      );
      return answer.kind === 'written' ? answer : { kind: 'changed' };
    },
    async unlock(lock, audit) {
      const same = { expression: '#id = :id', names: { '#id': 'id' }, values: { ':id': { S: lock.id } } };
      const answer = await change(audit, ...subjectsOf(lock).map((subject) => writes.remove(keys.lock(subject), same)));
      return answer.kind === 'written' ? answer : { kind: 'missing' };
    },
    async addAudit(audit) {
      await change(audit);
    },
  };

  function patternWrite(update: string, name: string, values?: Item, condition?: string): TransactWriteItem {
    return {
      Update: {
        TableName: tableName,
        Key: keys.patterns,
        UpdateExpression: update,
        ExpressionAttributeNames: { '#pattern': patternPrefix + name },
        ...(values === undefined ? {} : { ExpressionAttributeValues: values }),
        ...(condition === undefined ? {} : { ConditionExpression: condition }),
      },
    };
  }
}

/** The entry in an item, or the entries in the item of all patterns. */
function entriesIn(item: Item): readonly MachineEntry[] {
  if (item[attestationsTable.partitionKey]?.S !== keys.patterns[attestationsTable.partitionKey]?.S)
    return [machineEntryFrom(plainFrom(item))];
  return Object.entries(plainFrom(item)).flatMap(([name, about]) =>
    name.startsWith(patternPrefix)
      ? [machineEntryFrom({ ...(about as StoredFields), name: name.slice(patternPrefix.length) })]
      : [],
  );
}
