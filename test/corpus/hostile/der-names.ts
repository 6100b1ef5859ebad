/**
 * Subjects that two programs read differently. All of these are signed with the requester's own key, so that nothing
 * but the reader keeps such a name out of a certificate.
 */
import * as der from '../../harness/x509/der-writer.ts';
import type { RequestSpec } from '../../harness/x509/requests.ts';
import type { HostileCase } from './case.ts';
import { specCase } from './request.ts';

const malformed = 'RequestMalformed';
const latin1 = (text: string) => Buffer.from(text, 'latin1');

const cn = (value: Uint8Array | string): RequestSpec => ({ subject: [[['CN', value]]] });
const bytes = (tag: number, ...octets: readonly number[]) => der.tlv(tag, Buffer.from(octets));

const values: readonly HostileCase[] = (
  [
    ['utf8', 'issued', der.utf8('j\u00e4ne')],
    ['utf8-empty', malformed, der.utf8('')],
    ['utf8-nul', malformed, der.utf8('jane\0.evil')],
    ['utf8-line-end', malformed, der.utf8('jane\nGroups: system:masters')],
    ['utf8-escape', malformed, der.utf8('\u001b[31mjane')],
    ['utf8-delete', malformed, der.utf8('jane\u007f')],
    ['utf8-c1', malformed, der.utf8('jane\u009b31m')],
    // Names that look like others: the in-tree signer signs these.
    ['utf8-bidi-override', malformed, der.utf8('jane\u202egnp.exe')],
    ['utf8-zero-width', malformed, der.utf8('ja\u200bne')],
    ['utf8-bom', malformed, der.utf8('\ufeffjane')],
    ['utf8-line-separator', malformed, der.utf8('jane\u2028doe')],
    ['utf8-blank-before', malformed, der.utf8(' system:masters')],
    ['utf8-blank-behind', malformed, der.utf8('system:masters ')],
    ['utf8-no-break-space', malformed, der.utf8('jane\u00a0doe')],
    ['utf8-joiner', malformed, der.utf8('ja\u200dne')],
    ['utf8-homoglyph', 'issued', der.utf8('\u0455\u0443stem:masters')],
    ['utf8-full-width', 'NameReserved', der.utf8('\uff53ystem:masters')],
    ['utf8-decomposed', 'issued', der.utf8('ja\u0308ne')],
    ['utf8-noncharacter', malformed, der.utf8('jane\uffff')],
    ['utf8-astral', 'issued', der.utf8('\u{1f4a9}')],
    ['utf8-last-code-point', malformed, der.utf8('\u{10ffff}')],
    ['utf8-replacement', malformed, der.utf8('jane\ufffd')],
    ['utf8-quote-and-comma', 'issued', der.utf8('a",O=system:masters+CN=\\')],
    ['utf8-1-kb', ['issued', malformed], der.utf8('\u00e4'.repeat(500))],
    ['utf8-64-kb', ['issued', malformed], der.utf8('a'.repeat(65_536))],
    ['utf8-64-kb-of-combining-marks', ['issued', malformed], der.utf8(`a${'\u0301'.repeat(32_000)}`)],
    ['utf8-overlong-slash', malformed, bytes(0x0c, 0xc0, 0xaf)],
    ['utf8-overlong-nul', malformed, bytes(0x0c, 0xc0, 0x80)],
    ['utf8-surrogate', malformed, bytes(0x0c, 0xed, 0xa0, 0x80)],
    ['utf8-surrogate-pair', malformed, bytes(0x0c, 0xed, 0xa0, 0xbd, 0xed, 0xb2, 0xa9)],
    ['utf8-above-10ffff', malformed, bytes(0x0c, 0xf4, 0x90, 0x80, 0x80)],
    ['utf8-five-octets', malformed, bytes(0x0c, 0xf8, 0x88, 0x80, 0x80, 0x80)],
    ['utf8-truncated', malformed, bytes(0x0c, 0x61, 0xe2, 0x82)],
    ['utf8-lone-continuation', malformed, bytes(0x0c, 0x80)],
    ['utf8-fe-ff', malformed, bytes(0x0c, 0xfe, 0xff)],
    ['printable-underscore', malformed, der.printable('a_b')],
    ['printable-high', malformed, bytes(0x13, 0x61, 0xe9)],
    ['printable-nul', malformed, der.printable('jane\0')],
    ['printable-at', malformed, der.printable('a@b')],
    ['printable-star', 'issued', der.printable('*.example')],
    ['numeric', 'issued', der.tlv(0x12, latin1('12 34'))],
    ['numeric-letter', malformed, der.tlv(0x12, latin1('12a'))],
    ['ia5', 'issued', der.ia5('a@b_c')],
    ['ia5-high', malformed, bytes(0x16, 0x61, 0xff)],
    ['ia5-nul', malformed, der.ia5('a\0b')],
    ['t61', ['issued', malformed], der.t61('j\u00e4ne')],
    ['t61-c1', malformed, der.t61('jane\u009b')],
    ['bmp', ['issued', malformed], der.bmp('jane')],
    ['bmp-odd', malformed, bytes(0x1e, 0, 0x6a, 0)],
    ['bmp-surrogate', malformed, bytes(0x1e, 0xd8, 0x3d, 0xdc, 0xa9)],
    ['bmp-lone-surrogate', malformed, bytes(0x1e, 0xd8, 0x3d)],
    ['bmp-nul', malformed, bytes(0x1e, 0, 0x6a, 0, 0)],
    ['bmp-noncharacter', malformed, bytes(0x1e, 0xff, 0xfe)],
    ['universal', malformed, der.universal('jane')],
    ['universal-short', malformed, bytes(0x1c, 0, 0, 0)],
    ['universal-above-10ffff', malformed, bytes(0x1c, 0x7f, 0xff, 0xff, 0xff)],
    ['visible', malformed, der.tlv(0x1a, latin1('jane'))],
    ['general', malformed, der.tlv(0x1b, latin1('jane'))],
    ['graphic', malformed, der.tlv(0x19, latin1('jane'))],
    ['videotex', malformed, der.tlv(0x15, latin1('jane'))],
    ['octet-string', malformed, der.octets(latin1('jane'))],
    ['bit-string', malformed, der.bits(latin1('jane'))],
    ['integer', malformed, der.integer(7)],
    ['boolean', malformed, der.boolean(true)],
    ['null', malformed, der.nothing()],
    ['oid', malformed, der.oid('1.2.3')],
    ['utc-time', malformed, der.tlv(0x17, latin1('250101000000Z'))],
    ['sequence', malformed, der.sequence(der.utf8('jane'))],
    ['set', malformed, der.set(der.utf8('jane'))],
    ['context', malformed, der.primitive(0, latin1('jane'))],
    ['context-explicit', malformed, der.constructed(0, der.utf8('jane'))],
  ] as const
).map(([id, expected, value]) => specCase(`subject/value/${id}`, expected, () => cn(value)));

const pair = (type: string, value: Uint8Array) => der.sequence(der.oid(type), value);
const many = (count: number, of: (i: number) => Uint8Array) => Array.from({ length: count }, (_, i) => of(i));
const plain = der.utf8('x');
const unit = (i: number) => pair('2.5.4.11', der.utf8(`u${i}`));
const commonName = (value = 'hostile') => pair('2.5.4.3', der.utf8(value));

const subjects: readonly HostileCase[] = (
  [
    ['empty', ['issued', 'SubjectNotPermitted', malformed], der.sequence()],
    ['absent', malformed, Buffer.alloc(0)],
    ['null', malformed, der.nothing()],
    ['set-of-sets', malformed, der.set(der.set(commonName()))],
    ['rdn-empty', malformed, der.sequence(der.set())],
    ['rdn-empty-among-others', malformed, der.sequence(der.set(commonName()), der.set())],
    ['rdn-sequence', malformed, der.sequence(der.sequence(commonName()))],
    ['pair-empty', malformed, der.sequence(der.set(der.sequence()))],
    ['pair-without-value', malformed, der.sequence(der.set(der.sequence(der.oid('2.5.4.3'))))],
    ['pair-of-three', malformed, der.sequence(der.set(der.sequence(der.oid('2.5.4.3'), plain, plain)))],
    ['pair-reversed', malformed, der.sequence(der.set(der.sequence(plain, der.oid('2.5.4.3'))))],
    ['pair-is-set', malformed, der.sequence(der.set(der.set(der.oid('2.5.4.3'), plain)))],
    ['two-common-names', ['issued', malformed], der.sequence(der.set(commonName('a')), der.set(commonName('b')))],
    ['two-common-names-in-one-rdn', ['issued', malformed], der.sequence(der.set(commonName('a'), commonName('b')))],
    ['reserved-last', 'NameReserved', der.sequence(der.set(commonName('a')), der.set(commonName('system:admin')))],
    [
      'reserved-first',
      ['issued', 'NameReserved', malformed],
      der.sequence(der.set(commonName('system:admin')), der.set(commonName('a'))),
    ],
    ['reserved-in-bmp', ['NameReserved', malformed], der.sequence(der.set(pair('2.5.4.3', der.bmp('system:admin'))))],
    [
      'reserved-group-in-t61',
      ['NameReserved', malformed],
      der.sequence(der.set(pair('2.5.4.10', der.t61('system:masters')))),
    ],
    [
      'reserved-group-among-60',
      'NameReserved',
      der.sequence(der.setOf(...many(60, (i) => pair('2.5.4.10', der.utf8(i === 59 ? 'system:masters' : `g${i}`))))),
    ],
    [
      '500-groups',
      'RequestTooLarge',
      der.sequence(der.setOf(...many(500, (i) => pair('2.5.4.10', der.utf8(`g${i}`))))),
    ],
    ['10000-rdns', malformed, der.sequence(...many(8_000, () => der.set(commonName('a'))))],
    ['2000-rdns', 'RequestTooLarge', der.sequence(...many(2_000, (i) => der.set(unit(i))))],
    ['2000-in-one-rdn', 'RequestTooLarge', der.sequence(der.setOf(...many(2_000, unit)))],
    // Around the most elements that are read at all.
    ...[3_305, 3_315, 3_325, 3_328, 3_340].map(
      (count) =>
        [`${count}-in-one-rdn`, ['RequestTooLarge', malformed], der.sequence(der.setOf(...many(count, unit)))] as const,
    ),
    ['2000-unknown-types', 'RequestTooLarge', der.sequence(...many(2_000, (i) => der.set(pair(`1.2.3.${i}`, plain))))],
    [
      'only-dropped-types',
      ['issued', 'SubjectNotPermitted', malformed],
      der.sequence(der.set(pair('1.2.840.113549.1.9.1', der.ia5('a@b')))),
    ],
    [
      'country-of-one-letter',
      ['issued', malformed],
      der.sequence(der.set(pair('2.5.4.6', der.printable('D'))), der.set(commonName())),
    ],
    [
      'country-of-64-kb',
      ['issued', malformed],
      der.sequence(der.set(pair('2.5.4.6', der.printable('D'.repeat(65_536))))),
    ],
    ['serial-number-high', ['issued', malformed], der.sequence(der.set(pair('2.5.4.5', der.utf8('\u00e4'))))],
  ] as const
).map(([id, expected, rawSubject]) => specCase(`subject/shape/${id}`, expected, () => ({ rawSubject })));

const control: readonly HostileCase[] = [
  specCase('subject/control', 'issued', () => ({
    subject: { CN: 'hostile', O: ['a', 'b'] },
    sans: { dns: ['a.example'] },
  })),
];

export const nameCases: readonly HostileCase[] = [...control, ...values, ...subjects];
