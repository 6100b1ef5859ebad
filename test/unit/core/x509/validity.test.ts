import { fc } from '../../../harness/determinism/properties.ts';
import { describe, expect, test } from 'vitest';
import { CertificateDefectError } from '../../../../core/ports/errors.ts';
import { serialFrom, validity } from '../../../../core/x509/validity.ts';

const minute = 60;
const hour = 60 * minute;
const day = 24 * hour;
const now = Date.UTC(2026, 10, 21, 10, 0, 0);
const farAway = now + 10 * 365 * day * 1000;

function span(maxTtlSeconds: number, expirationSeconds?: number, caNotAfter = farAway): number {
  const answer = validity({ maxTtlSeconds, expirationSeconds, caNotAfter, now });
  expect(answer.notBefore).toBe(now - 5 * minute * 1000);
  return (answer.notAfter - answer.notBefore) / 1000;
}

/** Rows of docs/signers.md, measured at kube-controller-manager 1.36.3, and the ones between. */
describe('from notBefore to notAfter', () => {
  test.each<[string, number, number, number | undefined]>([
    ['600 s: 15 minutes', 15 * minute, day, 600],
    ['7 200 s: 2 h 5 min', 2 * hour + 5 * minute, day, 7_200],
    ['28 799 s: and 5 min', 28_799 + 5 * minute, day, 28_799],
    ['28 800 s: exactly 8 h', 8 * hour, day, 28_800],
    ['48 h under 24 h: 24 h', day, day, 48 * hour],
    ['none: the maximum', day, day, undefined],
    ['less than 10 minutes: 10 minutes', 15 * minute, day, 1],
    ['a negative number: 10 minutes', 15 * minute, day, -2_147_483_648],
    ['0: 10 minutes', 15 * minute, day, 0],
    ['the in-tree default', 365 * day, 365 * day, undefined],
    ['a maximum of a minute', 6 * minute, minute, undefined],
    ['a maximum of a minute, more asked', 6 * minute, minute, 600],
    ['a maximum of a minute, less asked: never more than the maximum', 6 * minute, minute, 30],
    ['just short of 8 h as maximum', 8 * hour - 1 + 5 * minute, 8 * hour - 1, undefined],
    ['8 h as maximum', 8 * hour, 8 * hour, undefined],
  ])('%s', (_, seconds, maximum, asked) => {
    expect(span(maximum, asked)).toBe(seconds);
  });
});

describe("the CA's own time", () => {
  test('cuts the end off', () => {
    expect(span(day, undefined, now + hour * 1000)).toBe(hour + 5 * minute);
    expect(span(day, undefined, now + 1000)).toBe(5 * minute + 1);
  });

  test.each([
    ['this very moment', now],
    ['a millisecond ago', now - 1],
    ['within the backdating', now - 60_000],
    ['long ago', now - day * 1000],
  ])('over since %s: nothing', (_, caNotAfter) => {
    expect(() => validity({ maxTtlSeconds: day, expirationSeconds: undefined, caNotAfter, now })).toThrow(
      new CertificateDefectError(`the CA expired at ${new Date(caNotAfter).toISOString()}`),
    );
  });
});

test('never empty, never beyond profile or CA, always whole seconds', () => {
  const seconds = fc.integer({ min: 60, max: 50 * 365 * day });
  fc.assert(
    fc.property(
      fc.record({
        maxTtlSeconds: seconds,
        expirationSeconds: fc.option(fc.integer(), { nil: undefined }),
        now: fc.integer({ min: day * 1000, max: farAway }),
        left: seconds,
      }),
      ({ maxTtlSeconds, expirationSeconds, now: at, left }) => {
        const caNotAfter = (Math.floor(at / 1000) + left) * 1000;
        const answer = validity({ maxTtlSeconds, expirationSeconds, caNotAfter, now: at });
        expect(answer.notBefore % 1000).toBe(0);
        expect(answer.notAfter % 1000).toBe(0);
        expect(answer.notBefore).toBeLessThanOrEqual(at - 300_000);
        expect(answer.notAfter).toBeGreaterThan(at - 1000);
        expect(answer.notAfter).toBeLessThanOrEqual(Math.min(caNotAfter, at + maxTtlSeconds * 1000));
      },
    ),
    { numRuns: 500 },
  );
});

describe('serial numbers', () => {
  test('sixteen octets, positive, never zero, as random as they can be', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 16, maxLength: 16 }), (random) => {
        const serial = serialFrom(random);
        expect(serial).toHaveLength(16);
        expect(serial[0]! >> 6).toBe(1);
        expect(serial[0]! & 0x3f).toBe(random[0]! & 0x3f);
        expect(serial.subarray(1)).toEqual(random.subarray(1));
      }),
      { numRuns: 100 },
    );
    expect(Buffer.from(serialFrom(new Uint8Array(16))).toString('hex')).toBe(`40${'00'.repeat(15)}`);
  });

  test('the random octets are left alone', () => {
    const random = new Uint8Array(16);
    serialFrom(random);
    expect(random[0]).toBe(0);
  });

  test('not from fewer or more', () => {
    expect(() => serialFrom(new Uint8Array(15))).toThrow(RangeError);
    expect(() => serialFrom(new Uint8Array(17))).toThrow(RangeError);
  });
});
