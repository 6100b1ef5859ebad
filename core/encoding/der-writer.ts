/**
 * Writes DER (X.690). Each function returns one encoded element; callers pass elements as the content of larger ones. Inputs
 * that are already DER (a key, a name, a recorded TBS) are copied, because a new encoding could differ from what was checked.
 *
 * Throws a RangeError for a value that its type cannot hold. Such a value is a mistake in our own code and must not be signed.
 */
import { derTag } from './der-reader.ts';

const constructedBit = 0x20;
const contextSpecific = 0x80;

/** `tag` is the whole identifier octet, as in der-reader.ts. */
function element(tag: number, ...parts: readonly Uint8Array[]): Uint8Array {
  let length = 0;
  for (const part of parts) length += part.length;
  const lengthOctets = length < 0x80 ? 0 : length < 0x100 ? 1 : length < 0x1_0000 ? 2 : 3;
  if (length >= 0x100_0000) throw new RangeError('a DER element must be smaller than 16 MiB');
  const der = new Uint8Array(2 + lengthOctets + length);
  der[0] = tag;
  // X.690 §10.1: the definite form, in the fewest octets.
  der[1] = lengthOctets === 0 ? length : 0x80 | lengthOctets;
  for (let i = 0; i < lengthOctets; i++) der[2 + i] = length >> (8 * (lengthOctets - 1 - i));
  let offset = 2 + lengthOctets;
  for (const part of parts) {
    der.set(part, offset);
    offset += part.length;
  }
  return der;
}

export function sequence(...parts: readonly Uint8Array[]): Uint8Array {
  return element(derTag.sequence, ...parts);
}

/** SET OF. DER sorts the members by their encodings (X.690 §11.6). */
export function setOf(...parts: readonly Uint8Array[]): Uint8Array {
  return element(derTag.set, ...[...parts].sort((a, b) => Buffer.compare(a, b)));
}

/** `[n] EXPLICIT`: a tag around the whole element `part`. */
export function explicit(tagNumber: number, part: Uint8Array): Uint8Array {
  return element(contextSpecific | constructedBit | shortTag(tagNumber), part);
}

/** `[n] IMPLICIT`: a tag that replaces the tag of a primitive type. */
export function implicit(tagNumber: number, content: Uint8Array): Uint8Array {
  return element(contextSpecific | shortTag(tagNumber), content);
}

/** A number above 30 would need further octets (X.690 §8.1.2.4), which der-reader.ts refuses. */
function shortTag(tagNumber: number): number {
  if (!Number.isInteger(tagNumber) || tagNumber < 0 || tagNumber > 30)
    throw new RangeError('a tag number must be 0 to 30');
  return tagNumber;
}

export function octetString(content: Uint8Array): Uint8Array {
  return element(derTag.octetString, content);
}

/** The last `unusedBits` bits of `content` are not part of the value and must be zero (X.690 §11.2.1). */
export function bitString(content: Uint8Array, unusedBits = 0): Uint8Array {
  const last = content.at(-1);
  if (
    !Number.isInteger(unusedBits) ||
    unusedBits < 0 ||
    unusedBits > (last === undefined ? 0 : 7) ||
    ((last ?? 0) & ((1 << unusedBits) - 1)) !== 0
  )
    throw new RangeError('a BIT STRING has at most 7 unused bits, and all are zero');
  return element(derTag.bitString, Uint8Array.of(unusedBits), content);
}

/** A non-negative INTEGER, from a number up to 2147483647 or from big-endian octets without a leading zero octet. */
export function integer(value: number | Uint8Array): Uint8Array {
  const magnitude = typeof value === 'number' ? magnitudeOf(value) : value;
  const first = magnitude[0] ?? 0;
  if (first === 0 && typeof value !== 'number') throw new RangeError('an INTEGER must not begin with a zero octet');
  // The first bit is the sign (X.690 §8.3.3), so a zero octet goes before a first octet of 0x80 or more.
  return first < 0x80 ? element(derTag.integer, magnitude) : element(derTag.integer, Uint8Array.of(0), magnitude);
}

/** An ENUMERATED from 0 to 127: the reason codes of a CRL. */
export function enumerated(value: number): Uint8Array {
  if (!Number.isInteger(value) || value < 0 || value > 0x7f) throw new RangeError('an ENUMERATED must be 0 to 127');
  return element(derTag.enumerated, Uint8Array.of(value));
}

function magnitudeOf(value: number): Uint8Array {
  if (!Number.isInteger(value) || value < 0 || value > 0x7fff_ffff)
    throw new RangeError('a number must be 0 to 2147483647');
  const octets = [value >>> 24, (value >>> 16) & 0xff, (value >>> 8) & 0xff, value & 0xff];
  const leading = octets.findIndex((octet) => octet !== 0);
  return Uint8Array.from(leading === -1 ? [0] : octets.slice(leading));
}

/** There is no FALSE: it is the DEFAULT of every field that this project writes, and DER leaves it out (X.690 §11.5). */
export const booleanTrue = element(derTag.boolean, Uint8Array.of(0xff));

export const derNull = element(derTag.null);

export function utf8String(text: string): Uint8Array {
  if (!text.isWellFormed()) throw new RangeError('a UTF8String cannot hold a lone surrogate');
  return element(derTag.utf8String, Buffer.from(text, 'utf8'));
}

/** Whether a PrintableString can hold the text (X.680 §41.4). */
export function isPrintable(text: string): boolean {
  return /^[A-Za-z0-9 '()+,\-./:=?]*$/.test(text);
}

export function printableString(text: string): Uint8Array {
  if (!isPrintable(text)) throw new RangeError("a PrintableString holds letters, digits and '()+,-./:=? only");
  return element(derTag.printableString, Buffer.from(text, 'latin1'));
}

/** UTCTime from 1950 to 2049, GeneralizedTime from 2050 on (RFC 5280 §4.1.2.5). Milliseconds are cut off. */
export function time(instant: number): Uint8Array {
  const text = new Date(Math.floor(instant / 1000) * 1000).toISOString();
  const year = Number(text.slice(0, 4));
  // For years after 9999 toISOString writes a sign and six digits.
  if (text.length !== 24 || year < 1950) throw new RangeError('a time must be in the years 1950 to 9999');
  const digits = `${text.slice(0, 19).replaceAll(/[-T:]/g, '')}Z`;
  return year < 2050
    ? element(derTag.utcTime, Buffer.from(digits.slice(2), 'latin1'))
    : element(derTag.generalizedTime, Buffer.from(digits, 'latin1'));
}

const objectIdentifiers = new Map<string, Uint8Array>();

/** Each OID is encoded once, then read from `objectIdentifiers`. */
export function objectIdentifier(value: string): Uint8Array {
  const der = objectIdentifiers.get(value) ?? element(derTag.objectIdentifier, oidContent(value));
  objectIdentifiers.set(value, der);
  return der;
}

/** X.690 §8.19: base 128; one number holds the first two arcs. An arc is at most 2³¹−1, as in der-reader.ts. */
function oidContent(value: string): Uint8Array {
  if (!/^[0-2](\.(0|[1-9]\d{0,9}))+$/.test(value)) throw new RangeError('an OBJECT IDENTIFIER must be in dotted form');
  const [root = 0, second = 0, ...arcs] = value.split('.').map(Number);
  const numbers = [root * 40 + second, ...arcs];
  if ((root < 2 && second > 39) || numbers.some((arc) => arc > 0x7fff_ffff))
    throw new RangeError('an OBJECT IDENTIFIER has an arc that is too large');
  return Uint8Array.from(numbers.flatMap(base128));
}

function base128(number: number): number[] {
  const octets = [number & 0x7f];
  for (let rest = Math.floor(number / 128); rest > 0; rest = Math.floor(rest / 128))
    octets.unshift((rest & 0x7f) | 0x80);
  return octets;
}
