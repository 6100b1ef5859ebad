import { describe, expect, test } from 'vitest';
import { reconciler } from '../../../../core/inventory/reconcile.ts';
import type { Gap, Reconciliation, SignEvent } from '../../../../core/inventory/reconcile.ts';
import { signEventOf } from '../../../../core/inventory/sign-event.ts';
import type { SignatureRecord } from '../../../../core/ports/signature-log.ts';
import type { InventoryRecord } from '../../../../core/inventory/certificate-entry.ts';

const key = 'arn:aws:kms:eu-central-1:111122223333:key/1';
const otherKey = `${key}2`;
const signRole = 'arn:aws:iam::111122223333:role/sign';
const caRole = 'arn:aws:iam::111122223333:role/ca';
const kubeadmRole = 'arn:aws:iam::111122223333:role/kubeadm';
const minute = 60_000;
const hour = 60 * minute;
const from = Date.parse('2026-05-01T00:00:00Z');
const to = from + 24 * hour;
const noon = from + 12 * hour;

let made = 0;
function event(requestId: string, at = noon, change: Partial<SignEvent> = {}): SignEvent {
  return { eventId: `event-${(made += 1)}`, requestId, at, keyId: key, principal: signRole, ...change };
}
type Given = Parameters<ReturnType<typeof reconciler>['addRecord']>[0];
function record(uid: string, change: Partial<InventoryRecord> = {}): Given {
  const openedAt = noon - 300;
  return {
    uid,
    serial: uid,
    state: 'issued',
    caKeyId: key,
    openedAt,
    notAfter: openedAt + 8 * hour,
    attempt: 1,
    ...change,
  };
}
const issued = (uid: string, change: Partial<InventoryRecord> = {}) =>
  record(uid, { kmsRequestId: `kms-${uid}`, ...change });

function compare(
  records: readonly Given[],
  events: readonly SignEvent[],
  signatures: readonly SignatureRecord[] = [],
): Reconciliation {
  const compared = reconciler({ from, to, keys: new Set([key, otherKey]), signRole, kubeadmRole, caRole });
  records.forEach(compared.addRecord);
  signatures.forEach(compared.addSignature);
  events.forEach(compared.addEvent);
  return compared.finish();
}
const gapsOf = (records: readonly Given[], events: readonly SignEvent[]) => compare(records, events).gaps.map(gapText);

function gapText(gap: Gap): readonly [string, string] {
  if ('event' in gap) return [gap.kind, gap.event.requestId];
  return [gap.kind, 'record' in gap ? gap.record.uid : gap.signature.id];
}

test('each signature has its record: nothing is left', () => {
  const twice = event('kms-a');
  expect(compare([issued('a'), issued('b')], [twice, event('kms-b'), twice])).toEqual({
    signatures: 2,
    recorded: 2,
    openIntents: [],
    caFunction: [],
    gaps: [],
  });
});

test('a signature without a record is an alarm, with any principal', () => {
  expect(gapsOf([issued('a')], [event('kms-a'), event('x', noon + hour)])).toEqual([['noRecord', 'x']]);
  expect(gapsOf([], [event('x', noon, { principal: 'arn:aws:iam::111122223333:user/eve' })])).toEqual([
    ['noRecord', 'x'],
  ]);
});

test('an intent explains signatures while it was open, and no more than its attempts can have made', () => {
  const intent = record('i', { state: 'intent', attempt: 2 });
  const lost = Array.from({ length: 5 }, (_, i) => event(`lost-${i}`, noon + i * minute));
  const found = compare([intent], lost);
  expect(found.openIntents.map((open) => [open.event.requestId, 'uid' in open && open.uid])).toEqual(
    ['lost-0', 'lost-1', 'lost-2', 'lost-3'].map((id) => [id, 'i']),
  );
  expect(found.gaps).toMatchObject([{ kind: 'noRecord', event: { requestId: 'lost-4' } }]);
  // Before it was begun, with another key, and after half of its lifetime, when no delivery signs it any more.
  const outside = [
    event('early', noon - minute),
    event('key', noon, { keyId: otherKey }),
    event('late', noon + 4 * hour + minute),
  ];
  expect(gapsOf([intent], outside).map(([kind]) => kind)).toEqual(['noRecord', 'noRecord', 'noRecord']);
  expect(gapsOf([record('e', { state: 'expired' })], [event('lost')])).toEqual([]);
  // Another principal is not the sign function, whatever is open.
  expect(gapsOf([intent], [event('thief', noon, { principal: 'arn:aws:iam::111122223333:role/thief' })])).toEqual([
    ['noRecord', 'thief'],
  ]);
});

test('a repeated call of an issued certificate is explained until its signature, not later', () => {
  const events = [event('lost', noon + 10_000), event('kms-a', noon + 20_000)];
  expect(gapsOf([issued('a')], events)).toEqual([]);
  expect(gapsOf([issued('a')], [event('kms-a'), event('later', noon + minute)])).toEqual([['noRecord', 'later']]);
  // One attempt makes two calls at most, of which the record names one.
  const three = [event('lost-1', noon), event('lost-2', noon), event('kms-a', noon)];
  expect(gapsOf([issued('a')], three)).toEqual([['noRecord', 'lost-2']]);
});

test('an issued record without its signature in the trail is an alarm, unless it was begun outside the time', () => {
  expect(gapsOf([issued('a')], [])).toEqual([['noEvent', 'a']]);
  expect(gapsOf([issued('a', { openedAt: from - 1 }), issued('b', { openedAt: to - 1_000 })], [])).toEqual([]);
  expect(gapsOf([record('a')], [])).toEqual([['unnamed', 'a']]);
  expect(gapsOf([record('a', { openedAt: from - hour })], [])).toEqual([]);
});

test('a record that names the signature of another key explains nothing', () => {
  expect(gapsOf([issued('a', { caKeyId: otherKey })], [event('kms-a')])).toEqual([
    ['otherKey', 'kms-a'],
    ['noEvent', 'a'],
  ]);
});

describe('the ca function', () => {
  const byCa = (requestId: string, at = noon, change: Partial<SignEvent> = {}) =>
    event(requestId, at, { principal: caRole, ...change });
  const signed = (id: string, change: Partial<SignatureRecord> = {}): SignatureRecord => ({
    id,
    caKeyId: key,
    ca: 'nodes',
    action: 'crl',
    tbsSha256: 'ab'.repeat(32),
    at: noon - 300,
    kmsRequestId: `kms-${id}`,
    ...change,
  });
  const begun = (id: string, change: Partial<SignatureRecord> = {}): SignatureRecord => {
    const { kmsRequestId: _, ...record } = signed(id);
    return { ...record, ...change };
  };
  const gaps = (events: readonly SignEvent[], signatures: readonly SignatureRecord[]) =>
    compare([], events, signatures).gaps.map(gapText);

  test('each of its signatures has its record, which says what it was for', () => {
    const [crl, made] = [signed('crl'), signed('made', { action: 'deploy' })];
    expect(compare([], [byCa('kms-crl'), byCa('kms-made')], [crl, made])).toMatchObject({
      signatures: 2,
      recorded: 0,
      caFunction: [{ signature: crl }, { signature: made }],
      openIntents: [],
      gaps: [],
    });
  });

  test('a signature of it without a record is an alarm, as that of anybody', () => {
    expect(gaps([byCa('x')], [signed('crl')])).toEqual([
      ['noRecord', 'x'],
      ['noEvent', 'crl'],
    ]);
  });

  test('a record that was begun explains two signatures of its role and key within the time of the function', () => {
    const lost = [byCa('lost-1', noon), byCa('lost-2', noon + 119_000), byCa('lost-3', noon + 119_000)];
    const found = compare([], lost, [begun('b')]);
    expect(found.openIntents).toMatchObject([{ signature: { id: 'b' } }, { signature: { id: 'b' } }]);
    expect(found.gaps.map(gapText)).toEqual([['noRecord', 'lost-3']]);
    for (const other of [
      byCa('early', noon - minute),
      byCa('late', noon + 3 * minute),
      byCa('k', noon, { keyId: otherKey }),
    ])
      expect(gaps([other], [begun('b')])).toEqual([['noRecord', other.requestId]]);
    // The sign function has its own intents, and the ca function none of the ledger.
    expect(gaps([event('sign')], [begun('b')])).toEqual([['noRecord', 'sign']]);
    const intent = record('i', { state: 'intent' });
    expect(gapsOf([intent], [byCa('ca')])).toEqual([['noRecord', 'ca']]);
    // A completed record names one of the two.
    expect(gaps([byCa('lost-1'), byCa('kms-crl'), byCa('lost-2')], [signed('crl')])).toEqual([['noRecord', 'lost-2']]);
  });

  test('a record whose signature the trail lacks is an alarm, unless it may be outside the time', () => {
    expect(gaps([], [signed('crl')])).toEqual([['noEvent', 'crl']]);
    expect(gaps([], [signed('a', { at: from - 1 }), signed('b', { at: to - minute }), begun('c')])).toEqual([]);
    expect(gaps([], [signed('other', { caKeyId: `${key}3` })])).toEqual([]);
  });

  test('a record that names the signature of another key explains nothing', () => {
    expect(gaps([byCa('kms-crl')], [signed('crl', { caKeyId: otherKey })])).toEqual([
      ['otherKey', 'kms-crl'],
      ['noEvent', 'crl'],
    ]);
  });
});

test('an intent of the kubeadm function explains a signature of its role alone, and an intent of sign none of it', () => {
  const byKubeadm = event('lost', noon, { principal: kubeadmRole });
  const intent = record('kubeadm/nodes/admin.conf/ab', { state: 'intent' });
  expect(compare([intent], [byKubeadm])).toMatchObject({ openIntents: [{ uid: intent.uid }], gaps: [] });
  expect(gapsOf([intent], [event('lost')])).toEqual([['noRecord', 'lost']]);
  expect(gapsOf([record('a', { state: 'intent' })], [byKubeadm])).toEqual([['noRecord', 'lost']]);
  const signed = issued(intent.uid);
  expect(compare([signed], [event(signed.kmsRequestId!, noon, { principal: kubeadmRole })])).toMatchObject({
    recorded: 1,
    gaps: [],
  });
});

test('other keys and other times are not compared', () => {
  const elsewhere = { keyId: `${key}3` };
  expect(
    compare(
      [issued('a', { caKeyId: elsewhere.keyId })],
      [event('x', noon, elsewhere), event('y', from - 1), event('z', to)],
    ),
  ).toEqual({
    signatures: 0,
    recorded: 0,
    openIntents: [],
    caFunction: [],
    gaps: [],
  });
});

const trailRecord = {
  eventSource: 'kms.amazonaws.com',
  eventName: 'Sign',
  eventID: 'e',
  requestID: 'r',
  eventTime: '2026-05-01T12:00:00Z',
  requestParameters: { keyId: 'alias/ca', signingAlgorithm: 'ECDSA_SHA_256' },
  resources: [{ ARN: key, type: 'AWS::KMS::Key' }],
  userIdentity: {
    arn: 'arn:aws:sts::111122223333:assumed-role/sign/countersign-demo-sign',
    sessionContext: { sessionIssuer: { arn: signRole } },
  },
};

test('an event of CloudTrail: the key by its ARN, the role of the session; failed calls and other events do not count', () => {
  expect(signEventOf(trailRecord)).toEqual({ eventId: 'e', requestId: 'r', at: noon, keyId: key, principal: signRole });
  expect(signEventOf({ ...trailRecord, errorCode: 'AccessDenied' })).toBeUndefined();
  expect(signEventOf({ ...trailRecord, eventName: 'Verify' })).toBeUndefined();
  expect(signEventOf({ ...trailRecord, eventSource: 'signer.amazonaws.com' })).toBeUndefined();
  const user = { arn: 'arn:aws:iam::111122223333:user/eve' };
  expect(signEventOf({ ...trailRecord, userIdentity: user })?.principal).toBe(user.arn);
});

test.each(['eventID', 'requestID', 'eventTime', 'resources'])(
  'a signature without its %s is not taken for none',
  (name) => {
    const { [name as keyof typeof trailRecord]: _, ...rest } = trailRecord;
    expect(() => signEventOf(rest)).toThrow(TypeError);
  },
);
