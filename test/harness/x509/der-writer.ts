/**
 * Writes DER for tests, and, because every piece is plain bytes, also what is not DER: wrong tags, lengths and orders.
 * Nothing of the product uses it: what the tests write must not come from the code they test.
 */

export type Bytes = Uint8Array;

export function concat(...parts: readonly Bytes[]): Buffer {
  return Buffer.concat(parts);
}

/** X.690 §8.1.3, definite and minimal. */
export function length(size: number): Buffer {
  if (size < 0x80) return Buffer.from([size]);
  const octets: number[] = [];
  for (let rest = size; rest > 0; rest = Math.floor(rest / 256)) octets.unshift(rest % 256);
  return Buffer.from([0x80 | octets.length, ...octets]);
}

export function tlv(tag: number, ...content: readonly Bytes[]): Buffer {
  const body = concat(...content);
  return concat(Buffer.from([tag]), length(body.length), body);
}

export const sequence = (...items: readonly Bytes[]): Buffer => tlv(0x30, ...items);
/** DER order (X.690 §11.6). */
export const setOf = (...items: readonly Bytes[]): Buffer =>
  tlv(0x31, ...[...items].sort((a, b) => Buffer.compare(a, b)));
/** In the order given. */
export const set = (...items: readonly Bytes[]): Buffer => tlv(0x31, ...items);
export const octets = (...content: readonly Bytes[]): Buffer => tlv(0x04, ...content);
export const bits = (content: Bytes, unused = 0): Buffer => tlv(0x03, Buffer.from([unused]), content);
export const boolean = (value: boolean): Buffer => tlv(0x01, Buffer.from([value ? 0xff : 0]));
export const nothing = (): Buffer => tlv(0x05);
export const utf8 = (text: string): Buffer => tlv(0x0c, Buffer.from(text, 'utf8'));
export const printable = (text: string): Buffer => tlv(0x13, Buffer.from(text, 'latin1'));
export const ia5 = (text: string): Buffer => tlv(0x16, Buffer.from(text, 'latin1'));
export const t61 = (text: string): Buffer => tlv(0x14, Buffer.from(text, 'latin1'));
export const bmp = (text: string): Buffer => tlv(0x1e, Buffer.from(text, 'utf16le').swap16());
export const universal = (text: string): Buffer =>
  tlv(0x1c, ...Array.from(text, (character) => Buffer.from([0, ...uint24(character.codePointAt(0) ?? 0)])));
/** Context-specific: `[n]` holding other elements. */
export const constructed = (number: number, ...items: readonly Bytes[]): Buffer => tlv(0xa0 | number, ...items);
/** Context-specific: `[n]` in place of a primitive tag. */
export const primitive = (number: number, ...content: readonly Bytes[]): Buffer => tlv(0x80 | number, ...content);

/** Shortest form; of negative values those down to -128. */
export function integer(value: number | bigint): Buffer {
  if (value < 0) return tlv(0x02, Buffer.of(256 + Number(value)));
  let hex = BigInt(value).toString(16);
  if (hex.length % 2 === 1) hex = `0${hex}`;
  const magnitude = Buffer.from(hex, 'hex');
  return tlv(0x02, (magnitude[0] ?? 0) >= 0x80 ? concat(Buffer.from([0]), magnitude) : magnitude);
}

export function oid(dotted: string): Buffer {
  const [first = 0n, second = 0n, ...rest] = dotted.split('.').map(BigInt);
  return tlv(0x06, ...[first * 40n + second, ...rest].map(base128));
}

function base128(value: bigint): Buffer {
  const septets = [Number(value & 0x7fn)];
  for (let rest = value >> 7n; rest > 0n; rest >>= 7n) septets.unshift(Number(rest & 0x7fn) | 0x80);
  return Buffer.from(septets);
}

function uint24(value: number): number[] {
  return [(value >> 16) & 0xff, (value >> 8) & 0xff, value & 0xff];
}
