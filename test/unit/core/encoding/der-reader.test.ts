import { fc } from '../../../harness/determinism/properties.ts';
import { describe, expect, test } from 'vitest';
import { encodingOf, oidOf, readDer } from '../../../../core/encoding/der-reader.ts';
import type { DerElement } from '../../../../core/encoding/der-reader.ts';
import * as der from '../../../harness/x509/der-writer.ts';

function problemOf(bytes: Uint8Array): string | undefined {
  const read = readDer(bytes);
  return read.ok ? undefined : read.problem;
}

function hex(text: string): Buffer {
  return Buffer.from(text.replaceAll(' ', ''), 'hex');
}

function nested(depth: number): Buffer {
  // From the inside, so that no level copies what is in it.
  const parts = [der.nothing()];
  for (let [i, size] = [0, 2]; i < depth; i++) {
    const header = Buffer.concat([Buffer.of(0x30), der.length(size)]);
    parts.push(header);
    size += header.length;
  }
  return Buffer.concat(parts.toReversed());
}

describe('what is not DER is refused', () => {
  test.each([
    ['nothing', '', 'ends inside'],
    ['a tag alone', '30', 'ends inside'],
    ['a header cut short', '30 82 01', 'length'],
    ['an indefinite length', '30 80 05 00 00 00', 'indefinite'],
    ['the long form for a short length', '04 81 01 00', 'not minimal'],
    ['a length with a leading zero', `04 82 00 80 ${'00'.repeat(128)}`, 'not minimal'],
    ['a length of four octets', '04 84 00 00 00 01 00', 'beyond its end'],
    ['a length of 127 octets', '04 ff 00', 'beyond its end'],
    ['a length beyond the end', '04 02 00', 'beyond its end'],
    ['a child longer than its parent', '30 03 04 02 00 00', 'beyond its end'],
    ['a child header across the end of its parent', '30 01 04 00', 'ends inside'],
    ['a trailing byte', '05 00 00', '1 trailing bytes'],
    ['a trailing element', '30 00 05 00', '2 trailing bytes'],
    ['a long tag number', '1f 1f 00', 'tag number above 30'],
    ['a long context tag number', 'bf 81 00 00', 'tag number above 30'],
    ['end-of-contents', '00 00', 'reserved tag 0'],
    ['a primitive SEQUENCE', '10 00', 'wrong form'],
    ['a constructed string', '24 04 04 00 04 00', 'wrong form'],
    ['BOOLEAN 1', '01 01 01', 'BOOLEAN'],
    ['an empty BOOLEAN', '01 00', 'BOOLEAN'],
    ['an empty INTEGER', '02 00', 'empty INTEGER'],
    ['INTEGER with a spare 00', '02 02 00 7f', 'INTEGER that is not minimal'],
    ['INTEGER with a spare ff', '02 02 ff 80', 'INTEGER that is not minimal'],
    ['an empty BIT STRING', '03 00', 'BIT STRING'],
    ['eight unused bits', '03 02 08 00', 'BIT STRING'],
    ['unused bits of nothing', '03 01 01', 'BIT STRING'],
    ['unused bits that are used', '03 02 04 0f', 'BIT STRING'],
    ['NULL with content', '05 01 00', 'NULL'],
    ['an empty OBJECT IDENTIFIER', '06 00', 'empty OBJECT'],
    ['an arc with padding', '06 03 55 80 03', 'OBJECT IDENTIFIER that is not minimal'],
    ['an arc cut short', '06 02 55 84', 'truncated OBJECT'],
    ['an arc of 2³¹', '06 06 2a 88 80 80 80 00', 'arc above 2147483647'],
    ['a huge OBJECT IDENTIFIER', `06 41 ${'2a'.repeat(65)}`, 'more than 64 octets'],
  ])('%s', (_, text, problem) => {
    expect(problemOf(hex(text))).toContain(problem);
  });

  test('too deep, without recursion', () => {
    expect(problemOf(nested(20))).toBeUndefined();
    expect(problemOf(nested(40))).toContain('nested more than 32 deep');
    expect(problemOf(nested(20_000))).toContain('nested more than 32 deep');
  });

  test('too many elements', () => {
    const nothings = (count: number): Buffer => der.sequence(Buffer.alloc(2 * count, der.nothing()));
    expect(problemOf(nothings(9_999))).toBeUndefined();
    expect(problemOf(nothings(10_000))).toContain('more than 10000 elements');
  });
});

describe('what is DER is read', () => {
  test.each([
    ['INTEGER 0', '02 01 00'],
    ['INTEGER 128', '02 02 00 80'],
    ['INTEGER -128', '02 01 80'],
    ['an empty BIT STRING of no bits', '03 01 00'],
    ['one bit', '03 02 07 80'],
    ['a long length', `04 81 80 ${'00'.repeat(128)}`],
    ['the largest arc', '06 06 2a 87 ff ff ff 7f'],
    ['EXTERNAL', '28 00'],
  ])('%s', (_, text) => {
    expect(problemOf(hex(text))).toBeUndefined();
  });

  test.each(['0.9.2342.19200300.100.1.25', '1.2.840.113549.1.9.14', '1.39', '2.5.4.3', '2.999.1', '2.47.2147483647'])(
    'OID %s',
    (dotted) => {
      const read = readDer(der.oid(dotted));
      expect(read.ok ? oidOf(read.value) : read).toBe(dotted);
    },
  );

  const { tree } = fc.letrec<{ tree: Uint8Array }>((tie) => ({
    tree: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.uint8Array({ maxLength: 200 }).map((content) => der.octets(content)),
      fc.nat().map((value) => der.integer(value)),
      fc.array(tie('tree'), { maxLength: 4 }).map((parts) => der.sequence(...parts)),
      fc.array(tie('tree'), { maxLength: 4 }).map((parts) => der.constructed(0, ...parts)),
    ),
  }));

  test('any tree, giving back its bytes at every node', () => {
    fc.assert(
      fc.property(tree, (bytes) => {
        const read = readDer(bytes);
        if (!read.ok) throw new Error(read.problem);
        const check = (element: DerElement): void => {
          const parts = element.children.map((child) => encodingOf(child));
          const whole = Buffer.from(encodingOf(element));
          expect(parts.length === 0 || whole.equals(der.tlv(element.tag, ...parts))).toBe(true);
          element.children.forEach(check);
        };
        expect(Buffer.from(encodingOf(read.value))).toEqual(Buffer.from(bytes));
        check(read.value);
      }),
      { numRuns: 200 },
    );
  });

  test('any bytes, giving a tree or a problem', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        const read = readDer(bytes);
        expect(!read.ok || Buffer.from(encodingOf(read.value)).equals(bytes)).toBe(true);
      }),
      { numRuns: 1000 },
    );
  });
});
