/**
 * Writes DER (X.690). Each function returns finished bytes, and larger elements are made of smaller ones. Inputs that are
 * already DER (a key, a name, a recorded TBS) are copied byte by byte, because a re-encoding could differ from what was checked.
 *
 * A value without an encoding (a text outside its type, a time outside its range) throws: it is a mistake in our own code and
 * must not be signed.
 */
import { derTag } from './der-reader.ts';

const constructedBit = 0x20;
const contextSpecific = 0x80;

/** `tag` is the whole identifier octet, as in der-reader.ts. */
function element(tag: number, ...parts: readonly Uint8Array[]): Uint8Array {
  let length = 0;
  for (const part of parts) length += part.length;
  const lengthOctets = length < 0x80 ? 0 : length < 0x100 ? 1 : length < 0x1_0000 ? 2 : 3;
  if (length >= 0x100_0000) throw new RangeError('a DER element has less than 16 MiB');
  const der = new Uint8Array(2 + lengthOctets + length);
  der[0] = tag;
  // §10.1: the definite form, in the fewest octets.
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

/** SET OF: its members in ascending order of their encodings (X.690 §11.6). */
export function setOf(...parts: readonly Uint8Array[]): Uint8Array {
  return element(derTag.set, ...[...parts].sort((a, b) => Buffer.compare(a, b)));
}

/** `[n]` around another element. */
export function explicit(tagNumber: number, part: Uint8Array): Uint8Array {
  return element(contextSpecific | constructedBit | shortTag(tagNumber), part);
}

/** `[n]` in place of a primitive type's own tag. */
export function implicit(tagNumber: number, content: Uint8Array): Uint8Array {
  return element(contextSpecific | shortTag(tagNumber), content);
}

/** From 31 on a number takes octets of its own (§8.1.2.4), which nothing here needs and der-reader.ts does not read. */
function shortTag(tagNumber: number): number {
  if (!Number.isInteger(tagNumber) || tagNumber < 0 || tagNumber > 30)
    throw new RangeError('a tag number is 0 to 30 here');
  return tagNumber;
}

export function octetString(content: Uint8Array): Uint8Array {
  return element(derTag.octetString, content);
}

/** `unusedBits` of the last octet are not part of it, and zero (§11.2.1). */
export function bitString(content: Uint8Array, unusedBits = 0): Uint8Array {
  const last = content.at(-1);
  if (
    !Number.isInteger(unusedBits) ||
    unusedBits < 0 ||
    unusedBits > (last === undefined ? 0 : 7) ||
    ((last ?? 0) & ((1 << unusedBits) - 1)) !== 0
  )
    throw new RangeError('the unused bits of a BIT STRING are at most 7, and zero');
  return element(derTag.bitString, Uint8Array.of(unusedBits), content);
}

/** A number that is not negative: a count, or big-endian octets, the first of them not 0. */
export function integer(value: number | Uint8Array): Uint8Array {
  const magnitude = typeof value === 'number' ? magnitudeOf(value) : value;
  const first = magnitude[0] ?? 0;
  if (first === 0 && typeof value !== 'number') throw new RangeError('a number does not begin with 0');
  // §8.3.3: the first bit is the sign.
  return first < 0x80 ? element(derTag.integer, magnitude) : element(derTag.integer, Uint8Array.of(0), magnitude);
}

function magnitudeOf(value: number): Uint8Array {
  if (!Number.isInteger(value) || value < 0 || value > 0x7fff_ffff) throw new RangeError('a count is 0 to 2147483647');
  const octets = [value >>> 24, (value >>> 16) & 0xff, (value >>> 8) & 0xff, value & 0xff];
  const leading = octets.findIndex((octet) => octet !== 0);
  return Uint8Array.from(leading === -1 ? [0] : octets.slice(leading));
}

/** BOOLEAN TRUE; FALSE is nearly always a DEFAULT, which DER leaves out (§11.5). */
export const booleanTrue = element(derTag.boolean, Uint8Array.of(0xff));

export const derNull = element(derTag.null);

export function utf8String(text: string): Uint8Array {
  if (!text.isWellFormed()) throw new RangeError('a UTF8String holds Unicode');
  return element(derTag.utf8String, Buffer.from(text, 'utf8'));
}

/** X.680 §41.4. */
export function isPrintable(text: string): boolean {
  return /^[A-Za-z0-9 '()+,\-./:=?]*$/.test(text);
}

export function printableString(text: string): Uint8Array {
  if (!isPrintable(text)) throw new RangeError("a PrintableString holds letters, digits and '()+,-./:=? only");
  return element(derTag.printableString, Buffer.from(text, 'latin1'));
}

/** To the second, UTC: UTCTime from 1950 through 2049, GeneralizedTime from 2050 (RFC 5280 §4.1.2.5). Milliseconds. */
export function time(instant: number): Uint8Array {
  const text = new Date(Math.floor(instant / 1000) * 1000).toISOString();
  const year = Number(text.slice(0, 4));
  // Beyond, toISOString writes six digits and a sign.
  if (text.length !== 24 || year < 1950) throw new RangeError('a time is of the years 1950 to 9999');
  const digits = `${text.slice(0, 19).replaceAll(/[-T:]/g, '')}Z`;
  return year < 2050
    ? element(derTag.utcTime, Buffer.from(digits.slice(2), 'latin1'))
    : element(derTag.generalizedTime, Buffer.from(digits, 'latin1'));
}

const objectIdentifiers = new Map<string, Uint8Array>();

/** For the few OIDs we write ourselves: each is encoded once. */
export function objectIdentifier(value: string): Uint8Array {
  const der = objectIdentifiers.get(value) ?? element(derTag.objectIdentifier, oidContent(value));
  objectIdentifiers.set(value, der);
  return der;
}

/** §8.19: base 128, most significant first, the first two arcs in one number. Arcs end at 2³¹−1, as in der-reader.ts. */
function oidContent(value: string): Uint8Array {
  if (!/^[0-2](\.(0|[1-9]\d{0,9}))+$/.test(value))
    throw new RangeError('an OBJECT IDENTIFIER is written in dotted form');
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
