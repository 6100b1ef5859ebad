/**
 * Values and shapes: the primitive types one by one, then depth, width, what stands behind, and a request cut off or
 * flipped at every place.
 */
import * as der from '../../harness/x509/der-writer.ts';
import { attribute, encodeSubject, makeRequest, type AttributeSpec } from '../../harness/x509/requests.ts';
import type { Ending, HostileCase } from './case.ts';
import { derCase, editCase, ordinary, specCase } from './request.ts';
import { bodyOf, raw, refill, toBytes, toTree, type Path } from './tlv-tree.ts';

const malformed = 'RequestMalformed';
const ones = (count: number, octet = 0xff) => Buffer.alloc(count, octet);

const version: Path = [0, 0];
const versions: readonly HostileCase[] = [
  ['one', [1]],
  ['two', [2]],
  ['minus-one', [0xff]],
  ['minus-128', [0x80]],
  ['256', [1, 0]],
  ['padded-zero', [0, 0]],
  ['padded-negative', [0xff, 0xff]],
  ['padded-positive', [0, 1]],
  ['none', []],
  ['2-to-64', [1, 0, 0, 0, 0, 0, 0, 0, 0]],
  ['10-kb', Array.from({ length: 10_000 }, () => 0x7f)],
].map(([id, content]) =>
  editCase(`value/integer/version-${String(id)}`, malformed, version, refill(Buffer.from(content as number[]))),
);

const versionTypes: readonly HostileCase[] = [
  specCase('value/integer/version-as-enumerated', malformed, () => ({
    ...ordinary,
    version: der.tlv(0x0a, Buffer.from([0])),
  })),
  specCase('value/integer/version-as-string', malformed, () => ({ ...ordinary, version: der.printable('0') })),
  specCase('value/integer/version-explicit', malformed, () => ({
    ...ordinary,
    version: der.constructed(0, der.integer(0)),
  })),
];

const bitStrings: readonly HostileCase[] = (
  [
    ['point', [0, 2, 1]],
    ['signature', [2]],
  ] as const
).flatMap(([place, path]) =>
  (
    [
      ['no-octets', () => []],
      ['only-unused', () => [0]],
      ['only-unused-7', () => [7]],
      ['unused-8', (bits: Buffer) => [8, ...bits]],
      ['unused-255', (bits: Buffer) => [255, ...bits]],
      ['unused-1-set', (bits: Buffer) => [1, ...bits.subarray(0, -1), 0xff]],
      ['unused-1-clear', (bits: Buffer) => [1, ...bits.subarray(0, -1), 0xfe]],
      ['unused-7-clear', (bits: Buffer) => [7, ...bits, 0x80]],
      ['one-octet-more', (bits: Buffer) => [0, ...bits, 0]],
      ['leading-zero', (bits: Buffer) => [0, 0, ...bits]],
    ] as const
  ).map(([id, content]) =>
    editCase(`value/bit-string/${place}-${id}`, [malformed, 'SignatureInvalid'], path, (node) => {
      const body = Buffer.from(
        node.content instanceof Uint8Array ? node.content : makeRequest(ordinary).der.subarray(-71),
      );
      return refill(Buffer.from(content(body.subarray(1))))(node);
    }),
  ),
);

const san = '2.5.29.17';
const critical = (...octet: readonly number[]) =>
  der.sequence(
    der.oid(san),
    der.tlv(0x01, Buffer.from(octet)),
    der.octets(der.sequence(der.primitive(2, Buffer.from('a.example')))),
  );
const withExtension = (extension: Uint8Array) =>
  makeRequest({ subject: { CN: 'hostile' }, attributes: [attribute('1.2.840.113549.1.9.14', der.sequence(extension))] })
    .der;

const booleans: readonly HostileCase[] = [
  derCase('value/boolean/true', 'issued', () => withExtension(critical(0xff))),
  // DER leaves a default out; Go takes it written out, and it means the same.
  derCase('value/boolean/false', ['issued', malformed], () => withExtension(critical(0))),
  ...[[1], [0x80], [0xfe], [], [0, 0], [0xff, 0xff], [0, 0xff]].map((octets) =>
    derCase(`value/boolean/${octets.join('-') || 'empty'}`, malformed, () => withExtension(critical(...octets))),
  ),
];

const text = der.utf8('x');
const subjectOf = (type: Uint8Array) => der.sequence(der.set(der.sequence(type, text)));
const arcs = (...content: readonly number[]) => der.tlv(0x06, Buffer.from(content));
const oidContents: readonly (readonly [id: string, expected: Ending | readonly Ending[], content: () => Uint8Array])[] =
  [
    ['empty', malformed, () => arcs()],
    ['leading-0x80', malformed, () => arcs(0x80, 0x01)],
    ['padded-arc', malformed, () => arcs(0x55, 0x04, 0x80, 0x03)],
    ['unterminated', malformed, () => arcs(0x55, 0x04, 0x83)],
    ['only-unterminated', malformed, () => arcs(0xff)],
    // 2.5.4.3 with 2^32 and 2^64 added to its last arc: a reader that wraps around sees commonName.
    ['cn-plus-2-to-32', malformed, () => der.oid(`2.5.4.${2n ** 32n + 3n}`)],
    ['cn-plus-2-to-64', malformed, () => der.oid(`2.5.4.${2n ** 64n + 3n}`)],
    ['cn-plus-2-to-128', malformed, () => der.oid(`2.5.4.${2n ** 128n + 3n}`)],
    ['arc-2-to-31', malformed, () => der.oid(`2.5.4.${2n ** 31n}`)],
    ['arc-2-to-31-less-one', ['issued', 'SubjectNotPermitted', malformed], () => der.oid(`2.5.4.${2n ** 31n - 1n}`)],
    ['first-arc-2-to-40', malformed, () => der.oid(`2.${2n ** 40n}`)],
    ['60-arcs', ['issued', 'SubjectNotPermitted', malformed], () => der.oid(`2.5${'.1'.repeat(58)}`)],
    ['90000-arcs', malformed, () => arcs(...Array.from({ length: 90_000 }, () => 1))],
    ['one-arc-of-60000-octets', malformed, () => arcs(...Array.from({ length: 60_000 }, () => 0xff), 0x7f)],
    ['relative', malformed, () => der.tlv(0x0d, Buffer.from([3]))],
  ];
const oids: readonly HostileCase[] = oidContents.flatMap(([id, expected, content]) => [
  specCase(`value/oid/attribute-type-${id}`, expected, () => ({ rawSubject: subjectOf(content()) })),
  derCase(`value/oid/extension-${id}`, expected, () =>
    withExtension(der.sequence(content(), der.octets(der.nothing()))),
  ),
  specCase(`value/oid/attribute-${id}`, expected, () => ({
    attributes: [der.sequence(content(), der.set(der.nothing()))],
  })),
]);

const nulls: readonly HostileCase[] = [
  editCase('value/null/curve-with-content', malformed, [0, 2, 0, 1], () => [raw(Buffer.from([5, 1, 0]))]),
  derCase(
    'value/null/content-in-attribute',
    malformed,
    () => makeRequest({ attributes: [attribute('1.2.3.4', Buffer.from([5, 2, 0, 0]))] }).der,
  ),
];

/** BER and worse in an attribute that our decoder ignores: refused all the same, since another decoder may read it. */
const unread: readonly HostileCase[] = (
  [
    ['integer-empty', [0x02, 0]],
    ['integer-padded', [0x02, 2, 0, 1]],
    ['integer-padded-negative', [0x02, 2, 0xff, 0x80]],
    ['bit-string-empty', [0x03, 0]],
    ['bit-string-unused-8', [0x03, 2, 8, 0]],
    ['bit-string-unused-of-nothing', [0x03, 1, 1]],
    ['bit-string-padding-set', [0x03, 2, 1, 1]],
    ['bit-string-constructed', [0x23, 4, 0x03, 2, 0, 1]],
    ['octet-string-constructed', [0x24, 3, 0x04, 1, 0]],
    ['utf8-constructed', [0x2c, 3, 0x0c, 1, 0x61]],
    ['sequence-primitive', [0x10, 0]],
    ['set-primitive', [0x11, 0]],
    ['boolean-one', [0x01, 1, 1]],
    ['null-of-one', [0x05, 1, 0]],
    ['oid-padded', [0x06, 3, 0x55, 0x80, 1]],
    ['tag-zero', [0, 0]],
    ['end-of-contents-constructed', [0x20, 0]],
    ['high-tag', [0x1f, 0x81, 0, 0]],
    ['length-padded', [0x04, 0x81, 1, 0]],
    ['length-indefinite', [0x30, 0x80, 0, 0]],
    ['length-beyond', [0x04, 5, 0]],
  ] as const
).map(([id, octets]) => derCase(`value/unread/${id}`, malformed, () => holding(Buffer.from(octets))));

/** `count` SEQUENCEs, one inside the other. Built from the outside, so that depth costs no copies. */
function nested(count: number, indefinite = false): Buffer {
  const headers: Buffer[] = [];
  for (let size = 0, i = 0; i < count; i++) {
    const header = indefinite ? Buffer.from([0x30, 0x80]) : Buffer.concat([Buffer.from([0x30]), der.length(size)]);
    headers.push(header);
    size += header.length;
  }
  return Buffer.concat(headers.toReversed());
}

/** An attribute that our decoder ignores, so that only the decoder's own limits can refuse it. */
const holding = (...values: readonly Uint8Array[]) =>
  makeRequest({ ...ordinary, attributes: [attribute('1.2.3.4', ...values)] }).der;

const depths: readonly HostileCase[] = [
  ...[1, 2, 4, 8, 16].map((depth) => derCase(`depth/${depth}`, 'issued', () => holding(nested(depth)))),
  ...[24, 28, 31, 32].map((depth) => derCase(`depth/${depth}`, ['issued', malformed], () => holding(nested(depth)))),
  ...[33, 64, 100, 1_000, 10_000, 20_000].map((depth) =>
    derCase(`depth/${depth}`, malformed, () => holding(nested(depth))),
  ),
  derCase('depth/100000', 'RequestTooLarge', () => holding(nested(100_000))),
  derCase('depth/45000-indefinite', malformed, () => nested(45_000, true)),
  derCase('depth/100000-indefinite', 'RequestTooLarge', () => nested(100_000, true)),
  derCase('depth/20000-bare', malformed, () => nested(20_000)),
  derCase('depth/explicit-tags', malformed, () =>
    Buffer.concat(Array.from({ length: 100 }, (_, i) => Buffer.from([0xa0 | (i % 31), 0x82, 0x10, 0]))),
  ),
  // The value of an extension is read by itself: there is no second purse of depth in it.
  derCase('depth/in-san', malformed, () => withExtension(der.sequence(der.oid(san), der.octets(nested(20_000))))),
  derCase('depth/octet-strings', 'issued', () =>
    holding(Array.from({ length: 1_000 }).reduce<Buffer>((inner) => der.octets(inner), Buffer.alloc(0))),
  ),
];

const empties = (count: number, element: readonly number[]) =>
  Buffer.from(Array.from({ length: count }, () => element).flat());
const widths: readonly HostileCase[] = [
  derCase('width/1000-empty-sequences', 'issued', () => holding(empties(1_000, [0x30, 0]))),
  derCase('width/9000-empty-sequences', 'issued', () => holding(empties(9_000, [0x30, 0]))),
  derCase('width/11000-empty-sequences', malformed, () => holding(empties(11_000, [0x30, 0]))),
  derCase('width/45000-empty-sequences', malformed, () => holding(empties(45_000, [0x30, 0]))),
  derCase('width/45000-nulls', malformed, () => holding(empties(45_000, [5, 0]))),
  derCase('width/45000-empty-sequences-bare', malformed, () => der.sequence(empties(45_000, [0x30, 0]))),
  derCase('width/1000000-empty-sequences', 'RequestTooLarge', () => holding(empties(1_000_000, [0x30, 0]))),
  derCase('width/45000-empty-general-names', malformed, () =>
    withExtension(der.sequence(der.oid(san), der.octets(der.sequence(empties(45_000, [0x82, 0]))))),
  ),
  specCase('width/2000-attributes', 'issued', () => ({
    attributes: Array.from({ length: 2_000 }, () => attribute('1.2.3.4', der.nothing())),
  })),
  specCase('width/6000-attributes', malformed, () => ({
    attributes: Array.from({ length: 6_000 }, () => attribute('1.2.3.4', der.nothing())),
  })),
  derCase('width/90-kb-octet-string', 'issued', () => holding(der.octets(ones(90_000)))),
];

const cn: AttributeSpec = ['CN', 'hostile'];
const order: readonly HostileCase[] = [
  specCase('order/set-ascending', 'issued', () => ({ subject: [[['C', 'DE'], cn]] })),
  // DER sorts a SET OF; Go does not look. Whichever is chosen, the certificate's own must be sorted.
  specCase('order/set-descending', ['issued', malformed], () => ({
    rawSubject: der.sequence(
      der.set(...[cn, ['C', 'DE'] as const, ['O', 'b'] as const, ['O', 'a'] as const].map(pairOf)),
    ),
  })),
  specCase('order/set-with-equal-members', ['issued', malformed], () => ({
    rawSubject: der.sequence(der.set(pairOf(cn), pairOf(cn))),
  })),
];

function pairOf(attributeOf: AttributeSpec): Buffer {
  // SEQUENCE { SET { pair } } → pair
  return encodeSubject([[attributeOf]]).subarray(4);
}

const whole = makeRequest({ subject: { CN: 'a' }, key: 'P-256' }).der;

const tails: readonly HostileCase[] = [
  ['one-zero', Buffer.alloc(1)],
  ['zeros', Buffer.alloc(1_000)],
  ['end-of-contents', Buffer.alloc(2)],
  ['null', Buffer.from([5, 0])],
  ['line-end', Buffer.from('\n')],
  ['itself', whole],
  ['60-kb', ones(60_000)],
].map(([id, tail]) => derCase(`tail/${String(id)}`, malformed, () => Buffer.concat([whole, tail as Buffer])));

/** Every beginning of a request. */
export function truncations(): readonly HostileCase[] {
  return Array.from({ length: whole.length }, (_, size) =>
    derCase(`cut/${size}-of-${whole.length}`, malformed, () => whole.subarray(0, size)),
  );
}

/**
 * Every request that differs from a valid one in one bit. The signature covers the first part; behind it a change may
 * at most leave the meaning as it was.
 */
export function bitFlips(): readonly HostileCase[] {
  const { content } = toTree(whole);
  const [info] = content instanceof Uint8Array ? [] : content;
  const signedStart = whole.length - bodyOf(toTree(whole)).length;
  const signedEnd = signedStart + (info === undefined ? 0 : toBytes(info).length);
  const refused: readonly Ending[] = [malformed, 'SignatureInvalid', 'KeyNotPermitted'];
  return Array.from({ length: whole.length * 8 }, (_, bit) => {
    const at = bit >> 3;
    const signed = at >= signedStart && at < signedEnd;
    return derCase(
      `flip/${signed ? 'signed' : 'around'}/${at}.${bit & 7}`,
      signed ? refused : [...refused, 'issued'],
      () => {
        const flipped = Buffer.from(whole);
        flipped[at] = (flipped[at] ?? 0) ^ (1 << (bit & 7));
        return flipped;
      },
    );
  });
}

export const valueCases: readonly HostileCase[] = [
  ...versions,
  ...versionTypes,
  ...bitStrings,
  ...booleans,
  ...oids,
  ...nulls,
  ...unread,
  ...depths,
  ...widths,
  ...order,
  ...tails,
];
