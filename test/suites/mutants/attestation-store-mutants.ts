/** Mistakes one could make in the two attestation stores. The contract must catch each of them in each store. */
export interface StoreMutant {
  readonly store: 'embedded' | 'dynamodb';
  /** What goes wrong. */
  readonly breaks: string;
  /** In adapters/. */
  readonly file: string;
  /** Must stand in the file exactly once: a mutant of code that is no longer there proves nothing. */
  readonly find: string;
  readonly replace: string;
}

type Planted = readonly (readonly [breaks: string, find: string, replace: string])[];

function mutantsOf(store: StoreMutant['store'], file: string, mutants: Planted): readonly StoreMutant[] {
  return mutants.map(([breaks, find, replace]) => ({ store, file, breaks, find, replace }));
}

const embedded = [
  ...mutantsOf('embedded', 'attestations.ts', [
    [
      'a later verdict replaces the first',
      "if (found !== undefined) return { written: false, why: 'verdict', found };",
      '',
    ],
    ['a claim holds whatever has changed', "if (!holds(claim, now)) return { written: false, why: 'changed' };", ''],
    [
      'a verdict lasts one instant longer',
      'FROM verdict WHERE uid = ? AND expires_at > ?',
      'FROM verdict WHERE uid = ? AND expires_at >= ?',
    ],
    [
      'a verdict lasts for ever',
      'FROM verdict WHERE uid = ? AND expires_at > ?',
      'FROM verdict WHERE uid = ? AND ? > 0',
    ],
    [
      'a proof lasts one instant longer',
      'kind = ? AND id = ? AND expires_at > ?',
      'kind = ? AND id = ? AND expires_at >= ?',
    ],
    ['proofs of all kinds are one', 'kind = ? AND id = ? AND expires_at > ?', '? > 0 AND id = ? AND expires_at > ?'],
    [
      'a name passes on from a later record',
      'retire === undefined ? undefined : records.still(retire)',
      'retire === undefined ? undefined : records.find(retire.identity)',
    ],
    [
      'a name passes on from a retired machine',
      "if (retire !== undefined && retired?.state !== 'active') return false;",
      'if (retire !== undefined && retired === undefined) return false;',
    ],
    [
      'a machine may be used first twice',
      "write.kind === 'create' ? before !== undefined : ",
      "write.kind === 'create' ? false : ",
    ],
    ['any use replaces the record', 'records.still({ ...write.record, rev: rev - 1 })', 'records.find(identity)'],
    ['a retired machine goes on', "before?.state !== 'active') return false;", 'before === undefined) return false;'],
    [
      'a name may be anybody’s',
      "if (records.holder(nodeName) !== (write.kind === 'create' ? retired?.identity : identity)) return false;",
      '',
    ],
    ['a proof may be spent by anybody', '[undefined, requestSha256].includes(spentBy(kind, id, now))', 'true'],
    [
      'a proof may not be spent by the same bytes',
      '[undefined, requestSha256].includes(spentBy(kind, id, now))',
      'spentBy(kind, id, now) === undefined',
    ],
    ['an address may be anybody’s', 'free.has(records.owner(address))', 'true'],
    ['an address does not pass on', 'new Set([undefined, retired?.identity])', 'new Set([undefined])'],
    ['addresses stay with the machine that is gone', 'records.freeAddresses(retire.identity);', ''],
    [
      'the machine that is gone stays active',
      "records.replace({ ...retire, state: 'retired', addresses: [], rev: retire.rev + 1 });",
      '',
    ],
    [
      'proofs are not spent',
      'for (const { kind, id, requestSha256, expiresAt } of once) putOnce.run(kind, id, requestSha256, expiresAt);',
      '',
    ],
    ['verdicts are not kept', 'putVerdict.run(verdict.uid, verdict.expiresAt, JSON.stringify(verdict));', ''],
    ['nobody hears of what a claim did', 'for (const item of audit) records.audit(item);', ''],
    [
      'whoever asks is told as somebody else',
      'holder === undefined || holder.identity === identity ? {}',
      'holder === undefined ? {}',
    ],
    ['patterns are names', 'nameMatches(entry, name)', 'entry === name'],
    [
      'an empty question is on the list',
      'listed: machines.length > 0 && selectMachines.all()',
      'listed: machines.length === 0 || selectMachines.all()',
    ],
    ['a claim that does not fit together is written', '      checkClaim(claim);\n', ''],
    [
      'what is observed is written over anything',
      "if (records.still({ ...record, rev: record.rev - 1 })?.state !== 'active') return false;",
      '',
    ],
    ['an observation that lets somebody in is written', '      checkObservation(record);\n', ''],
    ['a refusal begins the count anew', 'refusals = refusals + 1', 'refusals = 1'],
    [
      'refusals of all requesters are one',
      'WHERE requester = ? AND beginning = ?',
      'WHERE ? IS NOT NULL AND beginning = ?',
    ],
  ]),
  ...mutantsOf('embedded', 'identity-statements.ts', [
    ['a record is taken for the one before the reset', 'found.firstSeen === firstSeen && ', ''],
  ]),
  ...mutantsOf('embedded', 'attestation-admin.ts', [
    [
      'a reset is of whatever record is there',
      'const found = records.still(record);',
      'const found = records.find(record.identity);',
    ],
    [
      'a missing record has changed',
      "records.find(record.identity) === undefined ? 'missing' : 'changed'",
      "'changed'",
    ],
    ['a reset keeps the name', 'deleteNode.run(nodeName, identity);', ''],
    [
      'a reset takes the name from its successor',
      "'DELETE FROM node WHERE node_name = ? AND identity = ?'",
      "'DELETE FROM node WHERE node_name = ? AND ? > 0'",
    ],
    ['a reset keeps the addresses', 'records.freeAddresses(identity);', ''],
    ['an adoption takes a name', ' || records.holder(nodeName) !== undefined', ''],
    ['an adoption takes an address', 'if (taken || ', 'if ('],
    ['an adoption brings a key', '      checkAdoption(record);\n', ''],
    [
      'nobody hears of a reset',
      'records.freeAddresses(identity);\n        records.audit(audit);',
      'records.freeAddresses(identity);',
    ],
    ['nobody hears of a removal', "why: 'missing' };\n        records.audit(audit);", "why: 'missing' };"],
    [
      'what is not there can be removed',
      'deleteMachine.run(name).changes === 0',
      'deleteMachine.run(name).changes < 0',
    ],
    ['expired verdicts are listed', 'FROM verdict WHERE expires_at > ?', 'FROM verdict WHERE ? > 0'],
  ]),
];

/** What always holds. */
const anyhow = "{ expression: 'attribute_exists(pk) OR attribute_not_exists(pk)' }";

const dynamoDb = [
  ...mutantsOf('dynamodb', 'attestations.ts', [
    [
      'what is observed is written over anything',
      'const still = isStillActive({ ...record, rev: record.rev - 1 });',
      "const still = { expression: 'attribute_exists(pk) OR attribute_not_exists(pk)' };",
    ],
    ['an observation that lets somebody in is written', '      checkObservation(record);\n', ''],
    ['a refusal begins the count anew', "'ADD #refusals :one SET #ttl = :ttl'", "'SET #refusals = :one, #ttl = :ttl'"],
    [
      'only the verdict is recalled',
      'Keys: [...wanted], ConsistentRead: true',
      'Keys: [...wanted].slice(0, 1), ConsistentRead: true',
    ],
    [
      'a later verdict replaces the first',
      'writes.put(keys.verdict(uid), verdictItem, isNoneBy(now))',
      `writes.put(keys.verdict(uid), verdictItem, ${anyhow})`,
    ],
    ['what expires lasts one instant longer', 'OR #expiresAt <= :now`', 'OR #expiresAt < :now`'],
    [
      'what has expired is in the way for ever',
      'OR #expiresAt <= :now`',
      'OR (#expiresAt <= :now AND #expiresAt > :now)`',
    ],
    [
      'a verdict is found for ever',
      'return verdict.expiresAt > now ? verdict : undefined;',
      'return now > 0 ? verdict : undefined;',
    ],
    [
      'a spent proof is seen for ever',
      'return expiresAt > now ? requestSha256 : undefined;',
      'return now > 0 ? requestSha256 : undefined;',
    ],
    ['a proof may be spent by anybody', 'isNoneBy(now, proof.requestSha256)', anyhow],
    ['a proof may not be spent by the same bytes', 'isNoneBy(now, proof.requestSha256)', 'isNoneBy(now)'],
    ['any use replaces the record', 'isStillActive({ ...record, rev: rev - 1 })', anyhow],
    ['a retired machine goes on', 'isOf, isStillActive, keys', 'isOf, isStill as isStillActive, keys'],
    ['a name may be anybody’s in a later use', '      writes.check(keys.node(nodeName), isOf(identity)),\n', ''],
    ['addresses of a later use are not claimed', '      ...writes.occupy(newAddresses, identity),\n', ''],
    ['addresses stay with the machine that is gone', ', ...writes.free(left, retire.identity)]', ']'],
    ['the machine that is gone stays active', '[writes.retire(retire), ', '['],
    ['nobody hears of what a claim did', '      ...audit.map((item) => writes.audit(item)),\n', ''],
    [
      'a lost race is told as a verdict',
      "if (standing === undefined) return { written: false, why: 'changed' };",
      "if (standing === undefined) return { written: false, why: 'verdict', found: claim.verdict };",
    ],
    [
      'whoever asks is told as somebody else',
      'holder === undefined || holder.identity === identity ? {}',
      'holder === undefined ? {}',
    ],
    ['patterns are names', 'nameMatches(pattern, name)', 'pattern === name'],
    ['the patterns’ own item is on the list', "machines.filter((name) => !name.includes('*'))", 'machines'],
    [
      'a name’s holder is not read with it',
      'if (holder === undefined || asked.has(named(holder)[0])) return read;',
      'return read;',
    ],
    ['a claim that does not fit together is written', '      checkClaim(claim);\n', ''],
  ]),
  ...mutantsOf('dynamodb', 'attestation-items.ts', [
    [
      'a machine may be used first twice',
      'put(keys.identity(identity), itemFrom(record), isNew)',
      `put(keys.identity(identity), itemFrom(record), ${anyhow})`,
    ],
    [
      'a name may be anybody’s',
      'former === undefined ? isNew : isOf(former))',
      `former === undefined ? ${anyhow} : isOf(former))`,
    ],
    [
      'a name passes on that is somebody else’s',
      'former === undefined ? isNew : isOf(former))',
      `former === undefined ? isNew : ${anyhow})`,
    ],
    ['an address may be anybody’s', 'former === undefined ? isNew : isNewOr(isOf(former))', anyhow],
    [
      'an address does not pass on',
      'former === undefined ? isNew : isNewOr(isOf(former))',
      'former === undefined ? isNew : isNew',
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
      '{ ...itemFrom(item), ...writer }, isNew)',
      `{ ...itemFrom(item), ...writer }, ${anyhow})`,
    ],
  ]),
  ...mutantsOf('dynamodb', 'attestation-admin.ts', [
    [
      'a reset is of whatever record is there',
      'writes.remove(keys.identity(identity), isStill(record))',
      "writes.remove(keys.identity(identity), { expression: 'attribute_exists(pk)' })",
    ],
    ['a reset keeps the name', '[writes.remove(keys.node(nodeName), isOf(identity))] : []', '[] : []'],
    ['a reset wants the name of its successor', "node?.['identity']?.S === identity ?", 'node !== undefined ?'],
    ['a reset keeps the addresses', '        ...writes.free(addresses, identity),\n', ''],
    ['a missing record has changed', "? 'missing' : 'changed'", "? 'changed' : 'changed'"],
    ['an adoption brings a key', '      checkAdoption(record);\n', ''],
    ['nobody hears of it', '[...items, writes.audit(audit, token)]', '[...items]'],
    [
      'what is not there can be removed: a name',
      'expression: `attribute_exists(${attestationsTable.partitionKey})`',
      'expression: `attribute_exists(pk) OR attribute_not_exists(pk)`',
    ],
    [
      'what is not there can be removed: a pattern',
      "'attribute_exists(#pattern)'",
      "'attribute_exists(#pattern) OR attribute_not_exists(#pattern)'",
    ],
    ['expired verdicts are listed', 'if (verdict.expiresAt > now) yield verdict;', 'if (now > 0) yield verdict;'],
    ['audit items are in no order', 'a.id < b.id ? -1 : 1', 'a.id < b.id ? 1 : -1'],
  ]),
];

export const storeMutants: readonly StoreMutant[] = [...embedded, ...dynamoDb];
