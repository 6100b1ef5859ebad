import { expect, test } from 'vitest';
import { firstOf, withNewUids } from '../../../../bench/requests/request-snapshot.ts';
import type { Snapshot } from '../../../../bench/requests/request-snapshot.ts';

const uid = '0a1b2c3d-0000-4000-8000-0123456789ab';
const other = 'ffffffff-0000-4000-8000-0123456789ab';

function snapshotOf(bytes: string): Snapshot {
  return { names: ['a'], entries: [{ key: 'key', value: Buffer.from(bytes, 'latin1').toString('base64') }] };
}

function bytesOf({ entries }: Snapshot): string {
  return Buffer.from(entries[0]!.value, 'base64').toString('latin1');
}

test('requests get new UIDs, and every other byte stays', () => {
  const before = `k8s\0\xff\x80name ${uid} key \x00\xfe ${uid} and ${other}`;
  const after = bytesOf(withNewUids(snapshotOf(before)));
  expect(after).toHaveLength(before.length);
  const fresh = after.slice(before.indexOf(uid), before.indexOf(uid) + uid.length);
  expect(fresh).toMatch(/^[0-9a-f-]{36}$/);
  expect(fresh).not.toBe(uid);
  expect(after.replaceAll(fresh, uid)).toBe(before);
  expect(bytesOf(withNewUids(snapshotOf(before)))).not.toBe(after);
});

test('a request without a UID, and a snapshot with too few requests, are errors', () => {
  expect(() => withNewUids(snapshotOf('no uid'))).toThrow('no UID');
  expect(firstOf(snapshotOf(uid), 1).names).toEqual(['a']);
  expect(() => firstOf(snapshotOf(uid), 2)).toThrow('not 2');
});
