/** Mistakes in the attestation store of DynamoDB, which the contract of the store must catch. */
import { changesOf } from '../../../../harness/mutants/mutant.ts';
import type { Subject } from '../../../../harness/mutants/subject.ts';

/** A condition that always holds. */
const always = "{ expression: 'attribute_exists(pk) OR attribute_not_exists(pk)' }";

const changes = [
  ...changesOf(
    'adapters/dynamodb/attestations.ts',
    [
      'what is observed is written over anything',
      'const unchanged = isCurrent({ ...record, rev: record.rev - 1 });',
      "const unchanged = { expression: 'attribute_exists(pk) OR attribute_not_exists(pk)' };",
    ],
    ['an observation that admits a machine is written', '      checkObservation(record);\n', ''],
    ['a refusal begins the count anew', "'ADD #refusals :one SET #ttl = :ttl'", "'SET #refusals = :one, #ttl = :ttl'"],
    [
      'only the verdict is recalled',
      'Keys: [...wanted], ConsistentRead: true',
      'Keys: [...wanted].slice(0, 1), ConsistentRead: true',
    ],
    [
      'a later verdict replaces the first',
      'writes.put(keys.verdict(uid), verdictItem, isAbsentOrExpired(now))',
      `writes.put(keys.verdict(uid), verdictItem, ${always})`,
    ],
    ['what expires lasts one instant longer', 'OR #expiresAt <= :now`', 'OR #expiresAt < :now`'],
    ['an expired item blocks for ever', 'OR #expiresAt <= :now`', 'OR (#expiresAt <= :now AND #expiresAt > :now)`'],
    ['any request may spend a spent proof', 'isAbsentOrExpired(now, proof.requestSha256)', always],
    [
      'a proof may not be spent by the same bytes',
      'isAbsentOrExpired(now, proof.requestSha256)',
      'isAbsentOrExpired(now)',
    ],
    ['any use replaces the record', 'isCurrent({ ...record, rev: rev - 1 })', always],
    ['a retired machine goes on', 'belongsTo, isCurrent, isPresent', 'belongsTo, isUnchanged as isCurrent, isPresent'],
    [
      'a name may belong to another machine in a later use',
      '      writes.check(keys.node(nodeName), belongsTo(identity)),\n',
      '',
    ],
    ['addresses of a later use are not claimed', '      ...writes.addAddresses(newAddresses, identity),\n', ''],
    [
      'the machine that is gone stays active',
      "retire?.state === 'active' ? writes.retire(retire, { retiredAt: now }, newAddresses) : []",
      '[]',
    ],
    ['a retired machine keeps its name', '        writes.endName(record, nameFreeAt),\n', ''],
    [
      'a retirement that does not fit together is written',
      '      checkRetirement(record, { nameFreeAt, audit });\n',
      '',
    ],
    [
      'a name passes on at no time',
      'writes.firstUse(write.record, now, retire)',
      'writes.firstUse(write.record, 0, retire)',
    ],
    ['a claim writes no audit item', '      ...audit.map((item) => writes.audit(item)),\n', ''],
    [
      'a lost race is reported as a verdict',
      "if (existing === undefined) return { kind: 'changed' };",
      "if (existing === undefined) return { kind: 'verdict', found: claim.verdict };",
    ],
    [
      'a name’s holder is not read with it',
      'if (holder === undefined || asked.has(keyEntry(holder)[0])) return read;',
      'return read;',
    ],
    ['a claim that does not fit together is written', '      checkClaim(claim);\n', ''],
    ['the entry may have been removed', '[writes.check(keys.machine(entry), isPresent)]', '[]'],
    ['a pattern is found by its text', "name.includes('*') ? undefined : await get(", 'await get('],
  ),
  ...changesOf(
    'adapters/dynamodb/attestation-reads.ts',
    [
      'an expired verdict is found',
      'return verdict.expiresAt > now ? verdict : undefined;',
      'return now > 0 ? verdict : undefined;',
    ],
    ['the name of a retired machine is never free', 'return until <= now ? undefined : owner', 'return owner'],
    ['the name of a retired machine is free later', 'return until <= now ?', 'return until < now ?'],
    [
      'an expired proof is found',
      'return expiresAt > now ? requestSha256 : undefined;',
      'return now > 0 ? requestSha256 : undefined;',
    ],
    ['exact entries are not on the list', 'read(keys.machine(name)) !== undefined', 'name === undefined'],
    ['a pattern keeps its prefix', 'map((name) => name.slice(patternPrefix.length))', 'map((name) => name)'],
    ['the patterns’ own item is on the list', "machines.filter((name) => !name.includes('*'))", 'machines'],
  ),
  ...changesOf(
    'adapters/dynamodb/attestation-items.ts',
    [
      'a machine may be used first twice',
      'put(keys.identity(identity), itemFrom(record), isAbsent)',
      `put(keys.identity(identity), itemFrom(record), ${always})`,
    ],
    [
      'a name may belong to another machine',
      'former === undefined ? isFree(now) : isHeldBy(former))',
      `former === undefined ? ${always} : isHeldBy(former))`,
    ],
    [
      'a name is transferred from a machine that does not have it',
      'former === undefined ? isFree(now) : isHeldBy(former))',
      `former === undefined ? isFree(now) : ${always})`,
    ],
    [
      'a name passes on from a retired machine that is back',
      'AND attribute_exists(#expiresAt)',
      'AND (attribute_exists(#expiresAt) OR attribute_not_exists(#expiresAt))',
    ],
    ['a name is free one instant later', "expression: '#expiresAt <= :now'", "expression: '#expiresAt < :now'"],
    [
      'the name of another machine ends with a retired one',
      'timeToLive(expiresAt) };\n    return put(keys.node(nodeName), item, belongsTo(identity));',
      `timeToLive(expiresAt) };\n    return put(keys.node(nodeName), item, ${always});`,
    ],
    ['addresses stay with the machine that is gone', '[update, ...freeAddresses(left, record.identity)]', '[update]'],
    [
      'an address may belong to another machine',
      'former === undefined ? isAbsent : isAbsentOr(belongsTo(former))',
      always,
    ],
    [
      'an address does not pass on',
      'former === undefined ? isAbsent : isAbsentOr(belongsTo(former))',
      'former === undefined ? isAbsent : isAbsent',
    ],
    ['a record of another rev is the same', '#rev = :rev AND #firstSeen', '#rev >= :rev AND #firstSeen'],
    [
      'a record is taken for the one before the reset',
      '#firstSeen = :firstSeen AND',
      '(#firstSeen <= :firstSeen OR #firstSeen > :firstSeen) AND',
    ],
    ['a record is taken for that of another node', "#nodeName = :nodeName'", "#nodeName <> :nodeName'"],
    ['no state is looked at', 'AND #state = :active', 'AND (#rev = :rev OR #state = :active)'],
    ['proofs of different kinds run together', "keyOf(itemKey('once', kind, id))", 'keyOf(`once#${kind}#${id}`)'],
    ['proofs of all kinds are one', "keyOf(itemKey('once', kind, id))", "keyOf(itemKey('once', kind.slice(0, 0), id))"],
    [
      'audit items are written over',
      '{ ...itemFrom(item), ...writer }, isAbsent)',
      `{ ...itemFrom(item), ...writer }, ${always})`,
    ],
  ),
  ...changesOf(
    'adapters/dynamodb/attestation-admin.ts',
    [
      'a reset is of whatever record is there',
      'writes.remove(keys.identity(identity), isUnchanged(record))',
      "writes.remove(keys.identity(identity), { expression: 'attribute_exists(pk)' })",
    ],
    ['a reset keeps the name', '[writes.remove(keys.node(nodeName), belongsTo(identity))] : []', '[] : []'],
    ['a reset wants the name of its successor', "node?.['identity']?.S === identity ?", 'node !== undefined ?'],
    ['a reset keeps the addresses', '        ...writes.freeAddresses(addresses, identity),\n', ''],
    ['an adoption brings a key', '      checkAdoption(record);\n', ''],
    [
      'what is not there can be removed: a name',
      'writes.remove(keys.machine(name), isPresent)',
      `writes.remove(keys.machine(name), ${always})`,
    ],
    [
      'what is not there can be removed: a pattern',
      "'attribute_exists(#pattern)'",
      "'attribute_exists(#pattern) OR attribute_not_exists(#pattern)'",
    ],
    ['expired verdicts are listed', 'if (verdict.expiresAt > now) yield verdict;', 'if (now > 0) yield verdict;'],
    ['audit items are in no order', 'a.id < b.id ? -1 : 1', 'a.id < b.id ? 1 : -1'],
    ['an adoption takes a name at no time', 'writes.firstUse(record, audit.at)', 'writes.firstUse(record, 0)'],
  ),
  ...changesOf(
    'adapters/dynamodb/audited-change.ts',
    ['a missing record has changed', "? 'missing' : 'changed'", "? 'changed' : 'changed'"],
    ['a change writes no audit item', '[...items, auditWrite]', '[...items]'],
  ),
];

export const subject: Subject = {
  module: import.meta.filename,
  changes,
  cases: ['test/suites/adversarial/mutants/stores/dynamodb-store-cases.ts'],
};
