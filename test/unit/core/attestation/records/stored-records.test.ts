import { describe, expect, test } from 'vitest';
import {
  auditItemFrom,
  identityRecordFrom,
  machineEntryFrom,
  mostDescribed,
  providerAndName,
  verdictFrom,
} from '../../../../../core/attestation/records/stored-records.ts';
import type { StoredFields } from '../../../../../core/encoding/stored-fields.ts';

const record: StoredFields = {
  identity: 'aws#i',
  nodeName: 'n',
  state: 'active',
  spkiSha256: '11',
  previousSpkis: ['22'],
  providerId: 'aws:///z/i',
  startedAt: 1,
  unknownSince: 2,
  restart: { startedAt: 1, since: 2, spkiSha256: 'k', contested: true },
  recent: { since: 3, uses: 4 },
  addresses: ['10.0.0.1'],
  firstSeen: 1,
  lastSeen: 2,
  renewals: 0,
  uses: 1,
  lastUid: 'u',
  described: { at: 5, addresses: ['10.0.0.1'], dnsNames: ['n.example'] },
  device: { akName: '000b11', resetCount: 3, clock: 4 },
  rev: 1,
};
const verdict: StoredFields = {
  uid: 'u',
  requestDigest: 'd',
  signerName: 's/s',
  decision: 'deny',
  violations: [{ code: 'TofuReuse', message: 'm' }],
  annotations: { a: 'b' },
  identity: 'aws#i',
  registeredAt: 1,
  firstKey: true,
  nodeName: 'n',
  mode: 'enforce',
  decidedAt: 1,
  expiresAt: 2,
};
const audit: StoredFields = {
  id: '01ARYZ6S41',
  at: 1,
  by: 'eve',
  action: 'reset',
  subject: 'aws#i',
  nodeName: 'n',
  reason: 'r',
  before: record,
};
const machine: StoredFields = {
  name: 'tpm#11',
  nodeName: 'n',
  addresses: ['10.0.0.1'],
  dnsNames: ['n.example'],
  addedAt: 1,
  by: 'eve',
  reason: 'r',
};

/** What each field must not be; a field is only optional where the type says so, and an empty list where older entries lack it. */
const kinds: readonly (readonly [
  name: string,
  read: (plain: StoredFields) => unknown,
  whole: StoredFields,
  optional: string[],
  emptyIfAbsent: string[],
])[] = [
  [
    'record of a machine',
    identityRecordFrom,
    record,
    ['spkiSha256', 'startedAt', 'unknownSince', 'restart', 'recent', 'lastUid', 'described', 'device'],
    [],
  ],
  ['verdict', verdictFrom, verdict, ['identity', 'registeredAt', 'firstKey', 'nodeName'], []],
  ['audit item', auditItemFrom, audit, ['nodeName', 'before'], []],
  ['entry of the list of machines', machineEntryFrom, machine, ['nodeName'], ['addresses', 'dnsNames']],
];

describe.each(kinds)('a stored %s', (_, read, whole, optional, emptyIfAbsent) => {
  test('comes back as it is, and nothing else with it', () => {
    expect(read(whole)).toEqual(whole);
    expect(read({ ...whole, pk: 'id#x', writer: 'token', ttl: 5 })).toEqual(whole);
  });

  test.each(Object.keys(whole))('with another %s than this program writes is a fault', (name) => {
    const other: Readonly<Record<string, readonly unknown[]>> = {
      string: [1, null, {}, ['a'], true],
      number: ['1', 1.5, null, 2 ** 53],
      boolean: [1, 'true', null],
      object: [1, 'x', null, [1], [[]], [null], { a: 1 }],
    };
    for (const wrong of other[typeof whole[name]] ?? [])
      expect(() => read({ ...whole, [name]: wrong })).toThrow(TypeError);
    const { [name]: absent, ...rest } = whole;
    expect(absent).toBeDefined();
    if (optional.includes(name)) expect(read(rest)).toEqual(rest);
    else if (emptyIfAbsent.includes(name)) expect(read(rest)).toEqual({ ...rest, [name]: [] });
    else expect(() => read(rest)).toThrow(TypeError);
  });
});

test.each([
  [identityRecordFrom, { ...record, state: 'lost' }],
  [verdictFrom, { ...verdict, decision: 'perhaps' }],
  [verdictFrom, { ...verdict, decision: 'approve' }],
  [verdictFrom, { ...verdict, mode: 'off' }],
  [verdictFrom, { ...verdict, violations: [] }],
  [verdictFrom, { ...verdict, violations: [{ code: 'Invented', message: 'm' }] }],
  [verdictFrom, { ...verdict, violations: [{ code: 'TofuReuse' }] }],
  [auditItemFrom, { ...audit, action: 'forget' }],
  [auditItemFrom, { ...audit, before: { ...record, rev: '1' } }],
  [identityRecordFrom, { ...record, device: { akName: '000b11', resetCount: 3 } }],
  [identityRecordFrom, { ...record, device: { akName: '000b11', resetCount: 3, clock: 0.5 } }],
  [machineEntryFrom, { ...machine, dnsNames: [1] }],
  [identityRecordFrom, { ...record, described: { at: 5, addresses: [] } }],
  [identityRecordFrom, { ...record, described: { at: '5', addresses: [], dnsNames: [] } }],
  [identityRecordFrom, { ...record, described: { at: 5, addresses: Array(mostDescribed).fill('a'), dnsNames: ['b'] } }],
])('unknown words are a fault', (read, plain) => {
  expect(() => read(plain as never)).toThrow(TypeError);
});

test('a name is all that follows the first mark', () => {
  expect(providerAndName('aws#aws/1/r/i-1')).toEqual(['aws', 'aws/1/r/i-1']);
  expect(providerAndName('insecure#a#b')).toEqual(['insecure', 'a#b']);
  expect(providerAndName('#')).toEqual(['', '']);
  expect(providerAndName('none')).toEqual(['none']);
});
