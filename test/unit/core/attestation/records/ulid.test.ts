import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { ulid } from '../../../../../core/attestation/records/ulid.ts';

test('the specification’s own example of a time', () => {
  // github.com/ulid/spec: 1469918176385 is 01ARYZ6S41.
  expect(ulid(1469918176385, new Uint8Array(10)).slice(0, 10)).toBe('01ARYZ6S41');
});

test('its ends', () => {
  expect(ulid(0, new Uint8Array(10))).toBe('0'.repeat(26));
  expect(ulid(2 ** 48 - 1, new Uint8Array(10).fill(0xff))).toBe('7ZZZZZZZZZZZZZZZZZZZZZZZZZ');
  expect(ulid(0, Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 33))).toBe(`${'0'.repeat(24)}11`);
});

test('sorts by its time, whatever the chance', () => {
  const ids = Array.from({ length: 200 }, (_, i) => ulid(1_800_000_000_000 + i * 977, randomBytes(10)));
  expect(ids.toSorted()).toEqual(ids);
  expect(ids.every((id) => /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/.test(id))).toBe(true);
});

test.each([
  [-1, 10],
  [2 ** 48, 10],
  [0.5, 10],
  [Number.NaN, 10],
  [0, 9],
  [0, 16],
])('%d with %d random bytes throws', (time, length) => {
  expect(() => ulid(time, new Uint8Array(length))).toThrow(RangeError);
});
