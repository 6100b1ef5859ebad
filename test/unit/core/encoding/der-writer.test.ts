import * as asn1js from 'asn1js';
import { fc } from '../../../harness/determinism/properties.ts';
import { describe, expect, test } from 'vitest';
import * as write from '../../../../core/encoding/der-writer.ts';
import { encodingOf, readDer } from '../../../../core/encoding/der-reader.ts';

/** asn1js writes the same value by code of its own. */
function opinion(block: asn1js.BaseBlock): string {
  return Buffer.from(block.toBER()).toString('hex');
}

/** What was written, if our reader takes it for DER. */
function written(bytes: Uint8Array): string {
  const read = readDer(bytes);
  return read.ok ? Buffer.from(encodingOf(read.value)).toString('hex') : read.problem;
}

/** On both sides of every length of length. */
const lengths = [0, 1, 0x7f, 0x80, 0xff, 0x100, 0xffff, 0x1_0000, 0x1_0001];
const octets = fc.oneof(
  fc.uint8Array({ maxLength: 300 }),
  fc.constantFrom(...lengths).map((length) => new Uint8Array(length).fill(0xa5)),
);

describe('what is written is what asn1js writes, and is DER to our reader', () => {
  test('octets and bits', () => {
    fc.assert(
      fc.property(octets, fc.integer({ min: 0, max: 7 }), (content, unusedBits) => {
        expect(written(write.octetString(content))).toBe(opinion(new asn1js.OctetString({ valueHex: content })));
        expect(written(write.bitString(content))).toBe(opinion(new asn1js.BitString({ valueHex: content })));
        if (content.length === 0) return;
        const bits = content.slice();
        bits[bits.length - 1] = (bits.at(-1) ?? 0) & (0xff << unusedBits);
        expect(written(write.bitString(bits, unusedBits))).toBe(
          opinion(new asn1js.BitString({ valueHex: bits, unusedBits })),
        );
      }),
    );
  });

  test('numbers', () => {
    const edges = [0, 1, 0x7f, 0x80, 0xff, 0x100, 0x7fff, 0x8000, 0xffff, 0x1_0000, 0x7f_ffff, 0x80_0000, 0x7fff_ffff];
    fc.assert(
      fc.property(fc.oneof(fc.nat(), fc.constantFrom(...edges)), (value) => {
        expect(written(write.integer(value))).toBe(opinion(new asn1js.Integer({ value })));
      }),
    );
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1, maxLength: 20 }), fc.integer({ min: 1, max: 255 }), (some, first) => {
        const serial = Uint8Array.from([first, ...some]);
        const valueHex = first < 0x80 ? serial : Uint8Array.from([0, ...serial]);
        expect(written(write.integer(serial))).toBe(opinion(new asn1js.Integer({ valueHex })));
      }),
    );
  });

  test('object identifiers', () => {
    const arc = fc.oneof(fc.integer({ min: 0, max: 0x7fff_ffff }), fc.constantFrom(0, 127, 128, 16_383, 16_384));
    const start = fc.oneof(
      fc.tuple(fc.constantFrom(0, 1), fc.integer({ min: 0, max: 39 })),
      fc.tuple(fc.constant(2), fc.integer({ min: 0, max: 5_000 })),
    );
    fc.assert(
      fc.property(start, fc.array(arc, { maxLength: 10 }), (first, arcs) => {
        const value = [...first, ...arcs].join('.');
        expect(written(write.objectIdentifier(value))).toBe(opinion(new asn1js.ObjectIdentifier({ value })));
      }),
    );
  });

  test('texts', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 200 }), (value) => {
        expect(written(write.utf8String(value))).toBe(opinion(new asn1js.Utf8String({ value })));
      }),
    );
    const printable = fc.constantFrom(...Array.from("abcXYZ019 '()+,-./:=?"));
    fc.assert(
      fc.property(fc.string({ unit: printable, maxLength: 200 }), (value) => {
        expect(written(write.printableString(value))).toBe(opinion(new asn1js.PrintableString({ value })));
      }),
    );
  });

  test('times', () => {
    const [first, form, last] = [Date.UTC(1950, 0), Date.UTC(2050, 0), Date.UTC(9999, 11, 31, 23, 59, 59, 999)];
    const edges = [first, Date.UTC(1999, 11, 31, 23, 59, 59), Date.UTC(2000, 0), form - 1, form, last];
    fc.assert(
      fc.property(fc.oneof(fc.integer({ min: first, max: last }), fc.constantFrom(...edges)), (instant) => {
        const valueDate = new Date(Math.floor(instant / 1000) * 1000);
        const Time = instant < form ? asn1js.UTCTime : asn1js.GeneralizedTime;
        expect(written(write.time(instant))).toBe(opinion(new Time({ valueDate })));
      }),
    );
  });

  test('what is made of other elements', () => {
    const parts = fc.array(octets.map(write.octetString), { maxLength: 4 });
    fc.assert(
      fc.property(parts, fc.integer({ min: 0, max: 30 }), octets, (members, tagNumber, content) => {
        const value = members.map((member) => asn1js.fromBER(member).result);
        expect(written(write.sequence(...members))).toBe(opinion(new asn1js.Sequence({ value })));
        const ascending = [...value].sort((a, b) => Buffer.compare(Buffer.from(a.toBER()), Buffer.from(b.toBER())));
        expect(written(write.setOf(...members))).toBe(opinion(new asn1js.Set({ value: ascending })));
        const idBlock = { tagClass: 3, tagNumber };
        expect(written(write.implicit(tagNumber, content))).toBe(
          opinion(new asn1js.Primitive({ idBlock, valueHex: content })),
        );
        const [only] = members;
        if (only === undefined) return;
        expect(written(write.explicit(tagNumber, only))).toBe(
          opinion(new asn1js.Constructed({ idBlock, value: value.slice(0, 1) })),
        );
      }),
    );
    expect(written(write.derNull)).toBe(opinion(new asn1js.Null()));
    expect(written(write.booleanTrue)).toBe(opinion(new asn1js.Boolean({ value: true })));
  });
});

describe('what has no encoding is not written', () => {
  test.each<[string, () => unknown]>([
    ['a number below 0', () => write.integer(-1)],
    ['a fraction', () => write.integer(1.5)],
    ['a count above 2147483647', () => write.integer(2 ** 31)],
    ['octets that begin with 0', () => write.integer(Uint8Array.of(0, 1))],
    ['a number of no octets', () => write.integer(new Uint8Array())],
    ['bits that are unused and set', () => write.bitString(Uint8Array.of(1), 1)],
    ['eight unused bits', () => write.bitString(Uint8Array.of(0), 8)],
    ['unused bits of nothing', () => write.bitString(new Uint8Array(), 1)],
    ['a tag number above 30', () => write.implicit(31, new Uint8Array())],
    ['half of a surrogate pair', () => write.utf8String('a\ud800')],
    ['an asterisk in a PrintableString', () => write.printableString('*.example')],
    ['a letter with an accent in a PrintableString', () => write.printableString('é')],
    ['a line feed behind a PrintableString', () => write.printableString('a\n')],
    ['the year 1949', () => write.time(Date.UTC(1950, 0) - 1)],
    ['the year 10000', () => write.time(Date.UTC(10_000, 0))],
    ['no time', () => write.time(Number.NaN)],
    ['an OID that begins with 3', () => write.objectIdentifier('3.1')],
    ['an OID of one arc', () => write.objectIdentifier('1')],
    ['an OID with an empty arc', () => write.objectIdentifier('1.2..3')],
    ['an OID with a zero in front', () => write.objectIdentifier('1.2.03')],
    ['an OID whose second arc is above 39', () => write.objectIdentifier('1.40')],
    ['an OID with an arc above 2147483647', () => write.objectIdentifier('1.2.2147483648')],
    ['16 MiB', () => write.octetString(new Uint8Array(0x100_0000))],
  ])('%s', (_, attempt) => {
    expect(attempt).toThrow(RangeError);
  });
});
