/** The decision table of trust on first use, row by row (docs/attestation.md). */
import { describe, expect, test } from 'vitest';
import type { IdentityRecord } from '../../../../../core/ports/attestation-store.ts';
import { decideFirstUse, firstRecord, seenRecord, usedRecord } from '../../../../../core/attestation/first-use.ts';
import type { FirstUse, FirstUseQuestion } from '../../../../../core/attestation/first-use.ts';

const hour = 3_600_000;
const now = Date.UTC(2026, 0, 2);

const recorded: IdentityRecord = {
  identity: 'aws#m1',
  nodeName: 'node-1',
  state: 'active',
  spkiSha256: 'key-1',
  previousSpkis: [],
  providerId: 'aws:///a/m1',
  startedAt: now - 10 * hour,
  addresses: [],
  firstSeen: now - 9 * hour,
  lastSeen: now - 2 * hour,
  renewals: 0,
  uses: 1,
  lastUid: 'u1',
  rev: 1,
};
const other: IdentityRecord = { ...recorded, identity: 'aws#m2', spkiSha256: 'key-2', providerId: 'aws:///a/m2' };

function ask(more: Partial<FirstUseQuestion>): string {
  const decided = decideFirstUse({
    identity: 'aws#m1',
    nodeName: 'node-1',
    spkiSha256: 'key-1',
    byNodeItself: false,
    secure: true,
    allowRestart: false,
    now,
    record: undefined,
    holder: undefined,
    ...more,
  });
  return decided.kind === 'refused' ? decided.violations[0].code : decided.kind;
}

type Row = readonly [
  presented: string,
  question: Partial<FirstUseQuestion>,
  decision: FirstUse['kind'] | 'TofuReuse' | 'TofuNodeMismatch' | 'TofuNodeTaken' | 'Revoked',
];
const { spkiSha256: _key, ...adopted } = recorded;

const table: readonly Row[] = [
  ['a new machine, a free name', {}, 'first'],
  ['the same machine, node and key', { record: recorded }, 'repeat'],
  ['the same by the node itself', { record: recorded, byNodeItself: true }, 'repeat'],
  ['a new key by the node itself', { record: recorded, spkiSha256: 'new', byNodeItself: true }, 'renewal'],
  ['a new key by a bootstrap user', { record: recorded, spkiSha256: 'new' }, 'TofuReuse'],
  [
    'the same with proof of the hardware: a new disk in the same machine',
    { record: recorded, spkiSha256: 'new', provesHardware: true },
    'renewal',
  ],
  [
    'the same where restarts are allowed: the start of the machine decides',
    { record: recorded, spkiSha256: 'new', allowRestart: true },
    'restart',
  ],
  [
    'a new key where the provider cannot prove a renewal, even by the node itself',
    { record: recorded, spkiSha256: 'new', byNodeItself: true, secure: false },
    'TofuReuse',
  ],
  ['the same key there', { record: recorded, secure: false }, 'repeat'],
  ['another node name', { record: recorded, nodeName: 'node-2' }, 'TofuNodeMismatch'],
  [
    'another node name with the same key, by that node',
    { record: recorded, nodeName: 'node-2', byNodeItself: true },
    'TofuNodeMismatch',
  ],
  ['another machine, the name taken: whether its machine is gone decides', { holder: other }, 'takeover'],
  ['a name whose machine was retired by its successor', { holder: { ...other, state: 'retired' } }, 'TofuNodeTaken'],
  [
    'a name whose machine was retired without a successor',
    { holder: { ...other, state: 'retired', nameFreeAt: now + hour } },
    'takeover',
  ],
  ['a name that an edited table gives to two', { record: recorded, holder: other }, 'TofuNodeTaken'],
  ['a retired machine that came back', { record: { ...recorded, state: 'retired' } }, 'Revoked'],
  ['a retired machine renewing', { record: { ...recorded, state: 'retired' }, byNodeItself: true }, 'Revoked'],
  ['an adopted machine, by the node itself', { record: adopted, byNodeItself: true }, 'renewal'],
  ['an adopted machine, by a bootstrap user', { record: adopted }, 'TofuReuse'],
  ['the same where restarts are allowed', { record: adopted, allowRestart: true }, 'TofuReuse'],
  ['after a reset: no record', { record: undefined, spkiSha256: 'new' }, 'first'],
];
test.each(table)('%s', (_, question, decision) => expect(ask(question)).toBe(decision));

describe('what is recorded', () => {
  const use = {
    identity: 'aws#m1',
    nodeName: 'node-1',
    spkiSha256: 'key-1',
    providerId: 'aws:///a/m1',
    startedAt: now - hour,
    uid: 'u2',
    now,
  };
  test('a first use', () => {
    expect(firstRecord(use)).toEqual({
      identity: 'aws#m1',
      nodeName: 'node-1',
      state: 'active',
      spkiSha256: 'key-1',
      previousSpkis: [],
      providerId: 'aws:///a/m1',
      startedAt: now - hour,
      addresses: [],
      recent: { since: now, uses: 1 },
      firstSeen: now,
      lastSeen: now,
      renewals: 0,
      uses: 1,
      lastUid: 'u2',
      rev: 1,
    });
  });
  test('the same key again counts a use and no renewal', () => {
    expect(usedRecord(recorded, use)).toMatchObject({
      spkiSha256: 'key-1',
      renewals: 0,
      uses: 2,
      rev: 2,
      lastSeen: now,
    });
  });
  test('the last start that is known stays', () => {
    expect(usedRecord(recorded, use).startedAt).toBe(now - hour);
    expect(usedRecord(recorded, { ...use, startedAt: undefined }).startedAt).toBe(recorded.startedAt);
    expect(firstRecord({ ...use, startedAt: undefined })).not.toHaveProperty('startedAt');
  });
  test('the attestation key and the clock of its TPM, which a use without a quote leaves alone', () => {
    const device = { akName: 'ak', resetCount: 1, clock: 5 };
    const first = firstRecord({ ...use, device });
    expect(first.device).toEqual(device);
    expect(firstRecord(use)).not.toHaveProperty('device');
    const later = { ...device, clock: 6 };
    expect(usedRecord(first, { ...use, device: later }).device).toEqual(later);
    expect(usedRecord(first, use).device).toEqual(device);
  });
  test('a renewal keeps the four keys before', () => {
    let record = recorded;
    for (const key of ['k2', 'k3', 'k4', 'k5', 'k6', 'k7']) record = usedRecord(record, { ...use, spkiSha256: key });
    expect(record).toMatchObject({ spkiSha256: 'k7', previousSpkis: ['k6', 'k5', 'k4', 'k3'], renewals: 6, rev: 7 });
  });
  test("an adopted machine's first key is no renewal", () => {
    expect(usedRecord(adopted, use)).toMatchObject({ spkiSha256: 'key-1', previousSpkis: [], renewals: 0 });
  });
  test('a serving certificate leaves the key alone; time never goes back', () => {
    const late = seenRecord({ ...recorded, lastSeen: now + 5 }, { startedAt: undefined, uid: 'u3', now });
    const recent = { since: now, uses: 1 };
    expect(late).toEqual({ ...recorded, lastSeen: now + 5, uses: 2, recent, lastUid: 'u3', rev: 2 });
  });
  test('finding 8: a serving certificate records the start of the machine, which never goes back', () => {
    const serve = (startedAt: number) => seenRecord(recorded, { startedAt, uid: 'u3', now }).startedAt;
    expect(serve(now - hour)).toBe(now - hour);
    expect(serve(now - 20 * hour)).toBe(recorded.startedAt);
    const { startedAt: _, ...unknown } = recorded;
    expect(seenRecord(unknown, { startedAt: 5, uid: 'u3', now }).startedAt).toBe(5);
  });
  test('finding 8, finding 14: each use of the machine erases what was seen once', () => {
    const restart = { startedAt: now, since: now, spkiSha256: 'new', contested: true };
    const waiting = { ...recorded, unknownSince: now - 1, restart };
    for (const record of [seenRecord(waiting, { startedAt: now, uid: 'u3', now }), usedRecord(waiting, use)]) {
      expect(record).not.toHaveProperty('unknownSince');
      expect(record).not.toHaveProperty('restart');
    }
  });
});
