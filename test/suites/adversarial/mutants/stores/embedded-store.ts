/** Mistakes in the attestation store of SQLite, which the contract of the store must catch. */
import { changesOf } from '../../../../harness/mutants/mutant.ts';
import type { Subject } from '../../../../harness/mutants/subject.ts';

const changes = [
  ...changesOf(
    'adapters/embedded/attestations.ts',
    ['a later verdict replaces the first', "if (found !== undefined) return { kind: 'verdict', found };", ''],
    ['a claim is written whatever has changed', "if (!conditionsHold(claim, now)) return { kind: 'changed' };", ''],
    [
      'a verdict lasts one instant longer',
      'FROM verdict WHERE uid = ? AND expires_at > ?',
      'FROM verdict WHERE uid = ? AND expires_at >= ?',
    ],
    [
      'a verdict never expires',
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
      'retire === undefined ? undefined : records.findUnchanged(retire)',
      'retire === undefined ? undefined : records.find(retire.identity)',
    ],
    [
      'a name passes on from a retired machine',
      "if (retired?.state === 'retired' && !records.isEnding(nodeName)) return false;",
      '',
    ],
    [
      'a name passes on from a machine that was retired since',
      'if (retire !== undefined && retired?.state !== retire.state) return false;',
      'if (retire !== undefined && retired === undefined) return false;',
    ],
    ['a machine may be used first twice', 'if (records.find(identity) !== undefined) return false;', ''],
    [
      'any use replaces the record',
      'records.findUnchanged({ ...write.record, rev: rev - 1 })',
      'records.find(identity)',
    ],
    [
      'a retired machine goes on',
      "rev: rev - 1 })?.state !== 'active') return false;",
      'rev: rev - 1 }) === undefined) return false;',
    ],
    ['a name may belong to another machine', 'if (holder !== retired?.identity) return false;', ''],
    ['a free name is not claimed', 'retire === undefined ? now : undefined)', 'undefined)'],
    [
      'a free name has a holder',
      'holder: (nodeName) => records.holder(nodeName, now)',
      'holder: (nodeName) => records.holder(nodeName)',
    ],
    [
      'a record ends that was changed since',
      "if (records.findUnchanged(record)?.state !== 'active') return { kind: 'changed' };",
      '',
    ],
    [
      'a record ends whose name belongs to another machine',
      "if (records.holder(record.nodeName) !== record.identity) return { kind: 'changed' };",
      '',
    ],
    ['a retirement writes no audit item', '        records.audit(audit);\n', ''],
    [
      'a retirement that does not fit together is written',
      '      checkRetirement(record, { nameFreeAt, audit });\n',
      '',
    ],

    [
      'a name may belong to another machine in a later use',
      'if (records.holder(nodeName) !== identity) return false;',
      '',
    ],
    ['any request may spend a spent proof', '[undefined, requestSha256].includes(spentBy(kind, id, now))', 'true'],
    [
      'a proof may not be spent by the same bytes',
      '[undefined, requestSha256].includes(spentBy(kind, id, now))',
      'spentBy(kind, id, now) === undefined',
    ],
    [
      'the entry may have been removed',
      'if (entry !== undefined && selectMachine.get(entry) === undefined) return false;',
      '',
    ],
    ['a pattern is found by its text', "name.includes('*') ? undefined : selectMachine", 'selectMachine'],
    ['an address may belong to another machine', 'allowedOwners.has(records.owner(address))', 'true'],
    ['an address does not pass on', 'new Set([undefined, retired?.identity])', 'new Set([undefined])'],
    [
      'the machine that is gone stays active',
      "if (retire?.state === 'active') records.retire(retire, { retiredAt: now });",
      '',
    ],
    [
      'proofs are not spent',
      'for (const { kind, id, requestSha256, expiresAt } of once) putOnce.run(kind, id, requestSha256, expiresAt);',
      '',
    ],
    ['verdicts are not kept', 'putVerdict.run(verdict.uid, verdict.expiresAt, JSON.stringify(verdict));', ''],
    ['a claim writes no audit item', 'for (const item of audit) records.audit(item);', ''],
    ['a claim that does not fit together is written', '      checkClaim(claim);\n', ''],
    [
      'what is observed is written over anything',
      "if (records.findUnchanged({ ...record, rev: record.rev - 1 })?.state !== 'active') return false;",
      '',
    ],
    ['an observation that admits a machine is written', '      checkObservation(record);\n', ''],
    ['a refusal begins the count anew', 'refusals = refusals + 1', 'refusals = 1'],
    [
      'refusals of all requesters are one',
      'WHERE requester = ? AND beginning = ?',
      'WHERE ? IS NOT NULL AND beginning = ?',
    ],
  ),
  ...changesOf(
    'core/attestation/records/look-up.ts',
    [
      'the requester is reported as another holder',
      'holder === undefined || holder.identity === identity ? {}',
      'holder === undefined ? {}',
    ],
    ['a pattern is an entry of its own', "!name.includes('*') && items", 'items'],
    ['patterns are names', 'nameMatches(entry, name)', 'entry === name'],
    ['an empty question is on the list', 'listed: items.entries', 'listed: machines.length === 0 || items.entries'],
  ),
  ...changesOf(
    'adapters/embedded/attestation-statements.ts',
    ['a record is taken for the one before the reset', 'found.firstSeen === firstSeen && ', ''],
    ['addresses stay with the machine that is gone', '      free.run(identity);\n', ''],
    ['a retired machine keeps its name', 'if (times.nameFreeAt !== undefined) endName.run', 'if (rev < 0) endName.run'],
    [
      'a name is free one instant later',
      'expires_at IS NULL OR expires_at > ?',
      'expires_at IS NULL OR expires_at >= ?',
    ],
    ['the name of the next machine becomes free', 'excluded.identity, expires_at = NULL', 'excluded.identity'],
  ),
  ...changesOf(
    'adapters/embedded/attestation-admin.ts',
    [
      'a reset is of whatever record is there',
      'const found = records.findUnchanged(record);',
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
    ['an adoption takes a name', ' || records.holder(nodeName, audit.at) !== undefined', ''],
    ['an adoption gets no free name', 'records.holder(nodeName, audit.at)', 'records.holder(nodeName)'],
    ['an adoption takes an address', 'if (taken || ', 'if ('],
    ['an adoption brings a key', '      checkAdoption(record);\n', ''],
    ['an admin change writes no audit item', '      records.audit(audit);\n', ''],
    [
      'what is not there can be removed',
      'deleteMachine.run(name).changes === 0',
      'deleteMachine.run(name).changes < 0',
    ],
    ['expired verdicts are listed', 'FROM verdict WHERE expires_at > ?', 'FROM verdict WHERE ? > 0'],
  ),
];

export const subject: Subject = {
  module: import.meta.filename,
  changes,
  cases: ['test/suites/adversarial/mutants/stores/embedded-store-cases.ts'],
};
