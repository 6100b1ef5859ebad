/**
 * Reads DER (X.690) into a tree and refuses BER that is not DER.
 *
 * BER can encode one value in many ways, and readers disagree about the unusual ones, so the policy could see another request
 * than the signer. DER has one encoding per value. This reader accepts only DER at every level, in one pass without recursion.
 * All rules use its tree.
 */
import { failure, success } from '../outcome/result.ts';
import type { Result } from '../outcome/result.ts';

export interface DerElement {
  /** The identifier octet: class, constructed bit and number in one (X.690 §8.1.2). */
  readonly tag: number;
  readonly source: Uint8Array;
  /** Offset of the identifier octet in `source`. */
  readonly start: number;
  readonly contentStart: number;
  readonly end: number;
  /** Empty for a primitive element. */
  readonly children: readonly DerElement[];
}

/** Identifier octets by name. */
export const derTag = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  null: 0x05,
  objectIdentifier: 0x06,
  enumerated: 0x0a,
  utf8String: 0x0c,
  numericString: 0x12,
  printableString: 0x13,
  teletexString: 0x14,
  ia5String: 0x16,
  utcTime: 0x17,
  generalizedTime: 0x18,
  bmpString: 0x1e,
  sequence: 0x30,
  set: 0x31,
} as const;

/** A normal request is nested about ten levels deep. The limits bound the cost of a hostile request. */
const maxDepth = 32;
export const maxElements = 10_000;
/** The longest OIDs in use take about 20 octets. Go does not limit the number of arcs. */
const maxOidOctets = 64;

interface OpenElement {
  readonly children: DerElement[];
  readonly end: number;
}

/** The `children` of all primitive elements, shared to save memory. */
const none: readonly never[] = Object.freeze([]);

/** Reads exactly one element that fills `source`. A problem names the byte offset and never quotes content. */
export function readDer(source: Uint8Array, limit = maxElements): Result<DerElement, string> {
  const top: OpenElement = { children: [], end: source.length };
  const open: OpenElement[] = [top];
  let innermost = top;
  let offset = 0;
  for (let count = 0; ; count++) {
    if (count === limit) return failure(`has more than ${limit} elements`);
    const header = readHeader(source, offset, innermost.end);
    if (!header.ok) return header;
    const { tag, contentStart, end } = header.value;
    const children: DerElement[] | undefined = isConstructed(tag) ? [] : undefined;
    innermost.children.push({ tag, source, start: offset, contentStart, end, children: children ?? none });
    if (children === undefined) {
      offset = end;
    } else {
      if (open.length > maxDepth) return failure(`is nested more than ${maxDepth} deep`);
      innermost = { children, end };
      open.push(innermost);
      offset = contentStart;
    }
    while (open.length > 1 && offset === innermost.end) {
      open.pop();
      innermost = open.at(-1) ?? top;
    }
    if (open.length === 1) break;
  }
  // The signature does not cover trailing bytes, and only some readers see them.
  if (offset !== source.length) return failure(`has ${source.length - offset} trailing bytes`);
  const [root] = top.children;
  return root === undefined ? failure('is empty') : success(root);
}

type Header = Pick<DerElement, 'tag' | 'contentStart' | 'end'>;

/** Reads the header at `start` and checks the content of a primitive element. `limit` is the end of the parent. */
function readHeader(source: Uint8Array, start: number, limit: number): Result<Header, string> {
  const tag = source[start];
  const first = source[start + 1];
  if (tag === undefined || first === undefined || start + 2 > limit) return at(start, 'ends inside an element');
  const tagFault = checkTag(tag);
  if (tagFault !== undefined) return at(start, tagFault);
  let length = first;
  let contentStart = start + 2;
  if (first >= 0x80) {
    // X.690 §10.1: definite, and in the fewest octets. Three octets can express every length that callers accept.
    const octets = first - 0x80;
    if (octets === 0) return at(start, 'has an indefinite length');
    if (octets > 3) return at(start, 'has a length beyond its end');
    length = 0;
    for (const stop = contentStart + octets; contentStart < stop; contentStart++)
      length = length * 256 + (source[contentStart] ?? 0);
    if (length < 0x80 || length < 256 ** (octets - 1)) return at(start, 'has a length that is not minimal');
  }
  const end = contentStart + length;
  if (end > limit) return at(start, 'has a length beyond its end');
  const fault = checkPrimitive(tag, source, contentStart, end);
  return fault === undefined ? success({ tag, contentStart, end }) : at(start, fault);
}

function at(offset: number, fault: string): Result<never, string> {
  return failure(`${fault} (at byte ${offset})`);
}

function isConstructed(tag: number): boolean {
  return (tag & 0x20) !== 0;
}

/** Universal types that contain other elements: EXTERNAL, EMBEDDED PDV, SEQUENCE, SET. */
const constructedTypes: ReadonlySet<number> = new Set([8, 11, 16, 17]);

function checkTag(tag: number): string | undefined {
  const number = tag & 0x1f;
  // Tag numbers above 30 have more than one encoding in BER, and requests and certificates do not use them.
  if (number === 0x1f) return 'has a tag number above 30';
  if (tag >= 0x40) return undefined;
  if (number === 0) return 'has the reserved tag 0';
  // X.690 §10.2: DER does not allow strings in segments (the constructed form).
  if (constructedTypes.has(number) !== isConstructed(tag)) return 'has a tag of the wrong form';
  return undefined;
}

/** The primitive types for which BER has more than one encoding of a value. */
function checkPrimitive(tag: number, source: Uint8Array, start: number, end: number): string | undefined {
  const length = end - start;
  const first = source[start] ?? 0;
  const second = source[start + 1] ?? 0;
  switch (tag) {
    case derTag.boolean:
      return length === 1 && (first === 0 || first === 0xff) ? undefined : 'is no canonical BOOLEAN';
    case derTag.integer:
      if (length === 0) return 'is an empty INTEGER';
      // §8.3.2: the first nine bits are neither all zero nor all one.
      return length > 1 && ((first === 0 && second < 0x80) || (first === 0xff && second >= 0x80))
        ? 'is an INTEGER that is not minimal'
        : undefined;
    case derTag.bitString:
      return isBitString(source, start, end) ? undefined : 'is no canonical BIT STRING';
    case derTag.null:
      return length === 0 ? undefined : 'is a NULL with content';
    case derTag.objectIdentifier:
      return checkOid(source, start, end);
    default:
      return undefined;
  }
}

/** X.690 §8.6.2, §11.2.1: up to seven unused bits, all zero. */
function isBitString(source: Uint8Array, start: number, end: number): boolean {
  const unused = source[start];
  if (unused === undefined || start === end || unused > 7) return false;
  if (end - start === 1) return unused === 0;
  return ((source[end - 1] ?? 0) & ((1 << unused) - 1)) === 0;
}

/** X.690 §8.19: minimal arcs, the last one complete. At most 2³¹−1, as in Go: 32-bit readers would truncate a larger arc. */
function checkOid(source: Uint8Array, start: number, end: number): string | undefined {
  if (start === end) return 'is an empty OBJECT IDENTIFIER';
  if (end - start > maxOidOctets) return `is an OBJECT IDENTIFIER of more than ${maxOidOctets} octets`;
  let arc = 0;
  for (let i = start; i < end; i++) {
    const octet = source[i] ?? 0;
    if (arc === 0 && octet === 0x80) return 'is an OBJECT IDENTIFIER that is not minimal';
    arc = arc * 128 + (octet & 0x7f);
    if (arc > 0x7fff_ffff) return 'is an OBJECT IDENTIFIER with an arc above 2147483647';
    if (octet < 0x80) arc = 0;
  }
  return (source[end - 1] ?? 0) < 0x80 ? undefined : 'is a truncated OBJECT IDENTIFIER';
}

/** The element that the content of an OCTET STRING or BIT STRING encodes; `undefined` if it is absent or not DER. */
export function elementIn(bytes: Uint8Array | undefined): DerElement | undefined {
  const read = bytes === undefined ? undefined : readDer(bytes);
  return read?.ok === true ? read.value : undefined;
}

/** DER of an empty SEQUENCE, such as the basicConstraints of a leaf or an empty Name. */
export const emptySequence = Uint8Array.of(0x30, 0x00);

export function contentOf({ source, contentStart, end }: DerElement): Uint8Array {
  return source.subarray(contentStart, end);
}

/** The whole element: identifier, length and content. */
export function encodingOf({ source, start, end }: DerElement): Uint8Array {
  return source.subarray(start, end);
}

/** The children of an element with this tag; `undefined` for any other element. */
export function childrenOf(element: DerElement | undefined, tag: number): readonly DerElement[] | undefined {
  return element?.tag === tag ? element.children : undefined;
}

/** Dotted text of an OBJECT IDENTIFIER; `undefined` for any other element. */
export function oidOf(element: DerElement | undefined): string | undefined {
  if (element?.tag !== derTag.objectIdentifier) return undefined;
  const arcs: number[] = [];
  let arc = 0;
  for (const octet of contentOf(element)) {
    arc = arc * 128 + (octet & 0x7f);
    if (octet >= 0x80) continue;
    // X.690 §8.19.4: the first number holds two arcs; the second arc is below 40 unless the first is 2.
    if (arcs.length === 0) arcs.push(Math.min(Math.floor(arc / 40), 2), arc - 40 * Math.min(Math.floor(arc / 40), 2));
    else arcs.push(arc);
    arc = 0;
  }
  return arcs.join('.');
}

/** The octets of a BIT STRING without unused bits, as in keys and signatures. */
export function bitsOf(element: DerElement | undefined): Uint8Array | undefined {
  if (element?.tag !== derTag.bitString) return undefined;
  const content = contentOf(element);
  return content[0] === 0 ? content.subarray(1) : undefined;
}

export function isAscii(content: Uint8Array): boolean {
  return content.every((octet) => octet < 0x80);
}
