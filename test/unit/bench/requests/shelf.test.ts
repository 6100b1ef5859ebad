import { expect, test } from 'vitest';
import { firstOf, renewed } from '../../../../bench/requests/shelf.ts';
import type { Shelf } from '../../../../bench/requests/shelf.ts';

const uid = '0a1b2c3d-0000-4000-8000-0123456789ab';
const other = 'ffffffff-0000-4000-8000-0123456789ab';

function shelfOf(bytes: string): Shelf {
  return { names: ['a'], entries: [{ key: 'key', value: Buffer.from(bytes, 'latin1').toString('base64') }] };
}

function bytesOf({ entries }: Shelf): string {
  return Buffer.from(entries[0]!.value, 'base64').toString('latin1');
}

test('renewed requests have another UID, and every other byte stays', () => {
  const before = `k8s\0\xff\x80name ${uid} key \x00\xfe ${uid} and ${other}`;
  const after = bytesOf(renewed(shelfOf(before)));
  expect(after).toHaveLength(before.length);
  const fresh = after.slice(before.indexOf(uid), before.indexOf(uid) + uid.length);
  expect(fresh).toMatch(/^[0-9a-f-]{36}$/);
  expect(fresh).not.toBe(uid);
  expect(after.replaceAll(fresh, uid)).toBe(before);
  expect(bytesOf(renewed(shelfOf(before)))).not.toBe(after);
});

test('a request without a UID, and a shelf with too few requests, are errors', () => {
  expect(() => renewed(shelfOf('no uid'))).toThrow('no UID');
  expect(firstOf(shelfOf(uid), 1).names).toEqual(['a']);
  expect(() => firstOf(shelfOf(uid), 2)).toThrow('not 2');
});
