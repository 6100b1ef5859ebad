/**
 * The items of the attestations table, and the writes that attest and operators share.
 *
 *     id#<identity>        the record of a machine          node#<name>            the holder of the name; `expiresAt` if
 *                                                                                  it is retired and has no successor yet
 *     once#<kind>#<id>     spent evidence                   once#address#<ip>      the user of the address
 *     verdict#<uid>        the verdict about a request      audit#<ULID>           who did what, when and why
 *     machine#<name>       an entry of the machine list     machine#*              all entries with a `*`, in one item
 *     refused#<requester>#<from>   how often that requester was refused from then on (SHA-256 of the user name)
 *     lock#node#<name>     a locked node name               lock#id#<identity>     a locked machine
 *     lock#key#<SHA-256>   a locked key
 */
import { createHash } from 'node:crypto';
import type { AttributeValue, TransactWriteItem } from '@aws-sdk/client-dynamodb';
import { addressKind, providerAndName } from '../../core/attestation/records/stored-records.ts';
import type { AuditItem, IdentityRecord, RefusalWindow } from '../../core/ports/attestation-store.ts';
import type { LockSubject } from '../../core/ports/locks.ts';
import type { Instant } from '../../core/ports/instant.ts';
import { attestationsTable, itemKey } from './table.ts';
import { itemFrom } from './values.ts';
import type { Item } from './values.ts';

const { partitionKey } = attestationsTable;

export const keys = {
  identity: (identity: string) => keyOf(itemKey('id', ...providerAndName(identity))),
  node: (nodeName: string) => keyOf(itemKey('node', nodeName)),
  once: (kind: string, id: string) => keyOf(itemKey('once', kind, id)),
  address: (address: string) => keyOf(itemKey('once', addressKind, address)),
  verdict: (uid: string) => keyOf(itemKey('verdict', uid)),
  lock: (subject: LockSubject) => keyOf(itemKey('lock', ...lockParts(subject))),
  machine: (name: string) => keyOf(itemKey('machine', ...providerAndName(name))),
  /** No exact name has this key: names with `*` are patterns. */
  patterns: keyOf(itemKey('machine', '*')),
  refused: ({ requester, from }: RefusalWindow) =>
    keyOf(itemKey('refused', createHash('sha256').update(requester).digest('hex'), String(from))),
  audit: (id: string) => keyOf(itemKey('audit', id)),
};

/** Each pattern is an attribute of one item, since an attribute can be set or removed without reading the item. */
export const patternPrefix = 'pattern:';

/** `lock#node#worker-3`, `lock#id#aws#aws/…`: the separators of the subject also separate the parts of the key. */
function lockParts(subject: LockSubject): readonly string[] {
  const [kind, rest] = [subject.slice(0, subject.indexOf('#')), subject.slice(subject.indexOf('#') + 1)];
  return kind === 'id' ? [kind, ...providerAndName(rest)] : [kind, rest];
}

function keyOf(key: string): Item {
  return { [partitionKey]: { S: key } };
}

/** DynamoDB deletes the item one hour after it expired, so that clock differences do not matter. */
export function timeToLive(expiresAt: Instant): Item {
  return { [attestationsTable.timeToLive]: cleanUpAt(expiresAt) };
}

/** The value of that attribute. */
export function cleanUpAt(expiresAt: Instant): AttributeValue {
  return { N: String(Math.ceil(expiresAt / 1000) + 3_600) };
}

export interface Condition {
  readonly expression: string;
  readonly names?: Readonly<Record<string, string>>;
  readonly values?: Item;
}

/** Functions that build the writes of one table. Their comments name the conditions of core/ports/attestation-store.ts. */
export function writesOf(tableName: string) {
  const conditional = ({ expression, names, values = {} }: Condition, more: Item = {}) => ({
    TableName: tableName,
    ConditionExpression: expression,
    ...(names === undefined ? {} : { ExpressionAttributeNames: names }),
    ...(Object.keys({ ...values, ...more }).length === 0 ? {} : { ExpressionAttributeValues: { ...values, ...more } }),
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD' as const,
  });
  const put = (key: Item, item: Item, condition: Condition): TransactWriteItem => ({
    Put: { ...conditional(condition), Item: { ...item, ...key } },
  });
  const remove = (key: Item, condition: Condition): TransactWriteItem => ({
    Delete: { ...conditional(condition), Key: key },
  });
  const check = (key: Item, condition: Condition): TransactWriteItem => ({
    ConditionCheck: { ...conditional(condition), Key: key },
  });

  /** `token` is stored as `writer`, so that an operator's call recognises its own write. */
  function audit(item: AuditItem, token?: string): TransactWriteItem {
    const writer: Item = token === undefined ? {} : { writer: { S: token } };
    return put(keys.audit(item.id), { ...itemFrom(item), ...writer }, isAbsent);
  }

  /** address-free. */
  function addAddresses(addresses: readonly string[], identity: string, former?: string): readonly TransactWriteItem[] {
    const condition = former === undefined ? isAbsent : isAbsentOr(belongsTo(former));
    return unique(addresses).map((address) => put(keys.address(address), itemFrom({ identity, address }), condition));
  }

  function freeAddresses(addresses: readonly string[], identity: string): readonly TransactWriteItem[] {
    return unique(addresses).map((address) => remove(keys.address(address), belongsTo(identity)));
  }

  /** machine-new, name-free (with `former` its holder must be that machine), address-free. */
  function firstUse(record: IdentityRecord, now: Instant, former?: IdentityRecord): readonly TransactWriteItem[] {
    const { identity, nodeName, addresses } = record;
    return [
      put(keys.identity(identity), itemFrom(record), isAbsent),
      put(keys.node(nodeName), itemFrom({ identity, nodeName }), former === undefined ? isFree(now) : isHeldBy(former)),
      ...addAddresses(addresses, identity, former?.identity),
    ];
  }

  /**
   * retired-current. Changes only the fields of a retirement, so that no outdated field of `record` is written. Its addresses become
   * free, except `taken`.
   */
  function retire(
    record: IdentityRecord,
    times: Pick<IdentityRecord, 'retiredAt' | 'nameFreeAt'>,
    taken: readonly string[] = [],
  ): readonly TransactWriteItem[] {
    const active = isCurrent(record);
    const fields = Object.entries(itemFrom({ state: 'retired', rev: record.rev + 1, addresses: [], ...times }));
    const names = Object.fromEntries(fields.map(([name]) => [`#${name}`, name]));
    const values = Object.fromEntries(fields.map(([name, value]) => [`:next_${name}`, value]));
    const update = {
      Update: {
        ...conditional({ ...active, names: { ...active.names, ...names } }, values),
        Key: keys.identity(record.identity),
        UpdateExpression: `SET ${fields.map(([name]) => `#${name} = :next_${name}`).join(', ')}`,
      },
    };
    const left = record.addresses.filter((address) => !taken.includes(address));
    return [update, ...freeAddresses(left, record.identity)];
  }

  /** name-own. The name of a retired machine is free from `expiresAt` on. */
  function endName({ identity, nodeName }: IdentityRecord, expiresAt: Instant): TransactWriteItem {
    const item = { ...itemFrom({ identity, nodeName, expiresAt }), ...timeToLive(expiresAt) };
    return put(keys.node(nodeName), item, belongsTo(identity));
  }

  return { put, remove, check, audit, addAddresses, freeAddresses, firstUse, retire, endName };
}

function unique(texts: readonly string[]): readonly string[] {
  return [...new Set(texts)];
}

export const isAbsent: Condition = { expression: `attribute_not_exists(${partitionKey})` };

/** entry-listed. */
export const isPresent: Condition = { expression: `attribute_exists(${partitionKey})` };

/** name-own: the node name or address belongs to this machine. */
export function belongsTo(identity: string): Condition {
  return {
    expression: '#identity = :identity',
    names: { '#identity': 'identity' },
    values: { ':identity': { S: identity } },
  };
}

/** name-free: no machine has the node name. Only the name of a retired machine has `expiresAt`. */
function isFree(now: Instant): Condition {
  return isAbsentOr({
    expression: '#expiresAt <= :now',
    names: { '#expiresAt': 'expiresAt' },
    values: { ':now': { N: String(now) } },
  });
}

/** name-free: the machine in `retire` has the node name, active or retired as it was read: after a reset it could be active again. */
function isHeldBy({ identity, state }: IdentityRecord): Condition {
  const held = belongsTo(identity);
  if (state === 'active') return held;
  return {
    ...held,
    expression: `${held.expression} AND attribute_exists(#expiresAt)`,
    names: { ...held.names, '#expiresAt': 'expiresAt' },
  };
}

function isAbsentOr(other: Condition): Condition {
  return { ...other, expression: `${isAbsent.expression} OR ${other.expression}` };
}

/** record-same. `rev` alone is not enough: after a reset, the next first use starts at 1 again. */
export function isUnchanged({ rev, firstSeen, nodeName }: IdentityRecord): Condition {
  return {
    expression: '#rev = :rev AND #firstSeen = :firstSeen AND #nodeName = :nodeName',
    names: { '#rev': 'rev', '#firstSeen': 'firstSeen', '#nodeName': 'nodeName' },
    values: {
      ':rev': { N: String(rev) },
      ':firstSeen': { N: String(firstSeen) },
      ':nodeName': { S: nodeName },
    },
  };
}

/** record-current, retired-current: a retired machine neither uses its record nor retires again. */
export function isCurrent(record: IdentityRecord): Condition {
  const { expression, names, values } = isUnchanged(record);
  return {
    expression: `${expression} AND #state = :active`,
    names: { ...names, '#state': 'state' },
    values: { ...values, ':active': { S: 'active' } },
  };
}
