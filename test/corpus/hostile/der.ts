/**
 * Encodings: what a BER reader takes and a DER reader must not, at every level of a request. Where the signature covers
 * the place, the request is signed after it was spoilt: only the reader stands between it and a certificate.
 */
import * as der from '../../harness/x509/der-writer.ts';
import type { Ending, HostileCase } from './case.ts';
import { editCase, type Edit } from './request.ts';
import { append, bodyOf, raw, refill, relength, retag, type Path } from './tlv-tree.ts';

const places: Readonly<Record<string, { readonly path: Path; readonly primitive?: true }>> = {
  request: { path: [] },
  info: { path: [0] },
  version: { path: [0, 0], primitive: true },
  subject: { path: [0, 1] },
  rdn: { path: [0, 1, 1] },
  pair: { path: [0, 1, 1, 0] },
  'attribute-type': { path: [0, 1, 1, 0, 0], primitive: true },
  'attribute-value': { path: [0, 1, 1, 0, 1], primitive: true },
  spki: { path: [0, 2] },
  'key-algorithm': { path: [0, 2, 0] },
  curve: { path: [0, 2, 0, 1], primitive: true },
  point: { path: [0, 2, 1], primitive: true },
  attributes: { path: [0, 3] },
  attribute: { path: [0, 3, 0] },
  'attribute-values': { path: [0, 3, 0, 1] },
  extensions: { path: [0, 3, 0, 1, 0] },
  extension: { path: [0, 3, 0, 1, 0, 0] },
  'extension-value': { path: [0, 3, 0, 1, 0, 0, 1], primitive: true },
  'general-names': { path: [0, 3, 0, 1, 0, 0, 1, 0] },
  'dns-name': { path: [0, 3, 0, 1, 0, 0, 1, 0, 0], primitive: true },
  'signature-algorithm': { path: [1] },
  'signature-oid': { path: [1, 0], primitive: true },
  signature: { path: [2], primitive: true },
  'ecdsa-value': { path: [2, 1] },
  'ecdsa-r': { path: [2, 1, 0], primitive: true },
};

const octets = (size: number, count: number): number[] =>
  Array.from({ length: count }, (_, i) => Math.floor(size / 256 ** (count - 1 - i)) % 256);
const sized =
  (lengthOf: (size: number) => readonly number[]): Edit =>
  (node) =>
    relength(...lengthOf(bodyOf(node).length))(node);

/** Every one makes the element it is applied to unreadable as DER. */
const spoilt: Readonly<Record<string, Edit>> = {
  'length-indefinite': (node) => [
    { ...node, length: Buffer.from([0x80]), content: Buffer.concat([bodyOf(node), Buffer.alloc(2)]) },
  ],
  'length-indefinite-unterminated': relength(0x80),
  'length-padded': sized((size) => (size < 0x80 ? [0x81, size] : [0x83, ...octets(size, 3)])),
  'length-of-4-octets': sized((size) => [0x84, ...octets(size, 4)]),
  'length-of-5-octets': sized((size) => [0x85, ...octets(size, 5)]),
  'length-of-126-octets': sized((size) => [0xfe, ...octets(0, 122), ...octets(size, 4)]),
  'length-reserved': relength(0xff),
  'length-one-more': sized((size) => shortest(size + 1)),
  'length-one-less': sized((size) => shortest(size - 1)),
  'length-2-gib': relength(0x84, 0x7f, 0xff, 0xff, 0xff),
  'length-4-gib': relength(0x84, 0xff, 0xff, 0xff, 0xff),
  'length-2-to-64': relength(0x88, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff),
  // In 32 bits these wrap around to a small number.
  'length-wraps-32-bits': sized((size) => [0x85, 1, ...octets(size, 4)]),
  'length-wraps-64-bits': sized((size) => [0x89, 1, ...octets(size, 8)]),
  'tag-high-form': (node) => retag((node.identifier[0] ?? 0) | 0x1f, (node.identifier[0] ?? 0) & 0x1f)(node),
  'tag-high-form-padded': (node) => retag((node.identifier[0] ?? 0) | 0x1f, 0x80, 0x80, 0x10)(node),
  'tag-endless': (node) =>
    retag((node.identifier[0] ?? 0) | 0x1f, ...Array.from({ length: 200 }, () => 0xff), 0x7f)(node),
  'tag-zero': retag(0),
  'tag-class-application': (node) => retag((node.identifier[0] ?? 0) ^ 0x40)(node),
  'tag-class-private': (node) => retag((node.identifier[0] ?? 0) ^ 0xc0)(node),
  'tag-form': (node) => retag((node.identifier[0] ?? 0) ^ 0x20)(node),
  'end-of-contents-behind': (node) => [node, raw(Buffer.from([0, 0]))],
};

function shortest(size: number): number[] {
  return [...der.length(Math.max(size, 0))];
}

/** Change the structure and leave it DER: what comes of it depends on the place. */
const reshaped: Readonly<Record<string, Edit>> = {
  empty: refill(Buffer.alloc(0)),
  gone: () => [],
  twice: (node) => [node, node],
  wrapped: (node) => [{ identifier: Buffer.from([0x30]), content: [node] }],
  'null-instead': () => [raw(Buffer.from([5, 0]))],
};
const reshapedInside: Readonly<Record<string, Edit>> = {
  'byte-behind-last-child': append(0),
  'null-behind-last-child': append(5, 0),
  'sequence-behind-last-child': append(0x30, 0),
};

const refusals: readonly Ending[] = ['RequestMalformed', 'SignatureInvalid', 'KeyNotPermitted'];

/**
 * Reviewed: what may be issued although it was reshaped, since it is well-formed and can be read in one way only. Go's
 * reader takes these too.
 */
const readable: ReadonlySet<string> = new Set([
  'subject/empty',
  'rdn/gone',
  'rdn/twice',
  'pair/gone',
  'pair/twice',
  'attributes/empty',
  'attribute/gone',
  'extensions/empty',
  'extension/gone',
  'general-names/empty',
  'dns-name/gone',
  'dns-name/twice',
  // NULL where the RFCs want nothing: writers of ECDSA requests do that.
  'signature-algorithm/null-behind-last-child',
]);

export const derCases: readonly HostileCase[] = Object.entries(places).flatMap(([place, { path, primitive }]) => {
  // Inside the signature value only the verifier looks.
  const unreadable: readonly Ending[] =
    path[0] === 2 && path.length > 1 ? ['RequestMalformed', 'SignatureInvalid'] : ['RequestMalformed'];
  const edits = { ...reshaped, ...(primitive === true ? {} : reshapedInside) };
  return [
    ...Object.entries(spoilt).map(([id, edit]) => editCase(`der/${place}/${id}`, unreadable, path, edit)),
    ...Object.entries(edits).map(([id, edit]) => {
      const expected = readable.has(`${place}/${id}`) ? 'issued' : refusals;
      return editCase(`der/${place}/${id}`, expected, path, edit);
    }),
  ];
});
