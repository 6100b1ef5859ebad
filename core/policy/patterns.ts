/**
 * Matches the patterns of a profile with the values of a request. A pattern must match the whole value; `*` matches zero or more
 * characters, every other character only itself. Patterns are not regular expressions, so that all readers understand them in
 * the same way, and a requester cannot make matching slow.
 */
import { ipText } from '../x509/subject-alt-names.ts';

/** Common names, organizations, user and group names. `*` matches every character; case matters, as in Kubernetes. */
export function nameMatches(pattern: string, value: string): boolean {
  return globMatches(pattern, value, '');
}

/**
 * DNS names, in upper or lower case (RFC 4343); one match is enough. The value must be a host name, otherwise `*.example.com`
 * would match `evil.net\0.example.com`. A wildcard name stands for many names, so only an equal pattern permits it.
 */
export function dnsMatchesAny(patterns: readonly string[], value: string): boolean {
  const name = value.toLowerCase();
  if (name.startsWith('*.')) return patterns.some((pattern) => name === pattern.toLowerCase());
  return isHostName(name) && patterns.some((pattern) => globMatches(pattern.toLowerCase(), name, ''));
}

/** Mail addresses: `*` never covers an `@`, so `*@example.com` does not match `a@evil.net@example.com`. */
export function emailMatches(pattern: string, value: string): boolean {
  return globMatches(pattern, value, '@');
}

/**
 * URIs: `*` stays inside one part of the URI, so `https://*.example.com/` matches neither
 * `https://evil.net/x.example.com/` nor `https://evil.net?.example.com/`.
 */
export function uriMatches(pattern: string, value: string): boolean {
  return globMatches(pattern, value, '/?#@\\%');
}

/** Labels of letters, digits, `-` and `_`, at most 63 each and 253 together (RFC 1035 §2.3.4). */
export function isHostName(name: string): boolean {
  return (
    name.length <= 253 &&
    name.split('.').every((label) => /^[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?$/.test(label))
  );
}

/** Whether it is a DNS-1123 subdomain, as the name of every Node must be. */
export function isSubdomain(name: string): boolean {
  return name.length <= 253 && name.split('.').every((label) => /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/.test(label));
}

/** `*` does not match the characters in `never`. The time is at most proportional to pattern × value. */
function globMatches(pattern: string, value: string, never: string): boolean {
  if (!pattern.includes('*')) return value === pattern;
  const [head = '', ...parts] = pattern.split('*');
  const tail = parts.pop() ?? '';
  if (!value.startsWith(head) || value.length < head.length + tail.length || !value.endsWith(tail)) return false;
  const end = value.length - tail.length;
  let at = head.length;
  // It is enough to try the leftmost place of each part: a later place makes one `*` longer and the next one shorter.
  for (const part of parts) {
    const found = value.indexOf(part, at);
    if (found < 0 || found + part.length > end || covers(value, at, found, never)) return false;
    at = found + part.length;
  }
  return !covers(value, at, end, never);
}

function covers(value: string, from: number, to: number, never: string): boolean {
  return Array.from(never).some((character) => value.slice(from, to).includes(character));
}

/**
 * An IP address as hex digits, 8 for IPv4 and 32 for IPv6. Addresses of the same length can be compared as text.
 */
export type AddressDigits = string;

/**
 * A block of addresses, including the first and last one. It holds only text, so that a bundle can contain it unchanged. An IPv4
 * address is never inside an IPv6 block, mapped (`::ffff:…`) or not.
 */
export interface AddressRange {
  /** As the operator wrote it. */
  readonly text: string;
  readonly first: AddressDigits;
  readonly last: AddressDigits;
}

/** Parses `10.0.0.0/8`, `2001:db8::/32` or one address. `undefined` for other text, or if bits after the prefix are set. */
export function parseRange(text: string): AddressRange | undefined {
  const [, addressText, prefixText] = /^([^/]+)(?:\/(0|[1-9][0-9]{0,2}))?$/.exec(text) ?? [];
  const first = parseAddress(addressText ?? '');
  if (first === undefined) return undefined;
  const bits = first.length * 4;
  const prefix = prefixText === undefined ? bits : Number(prefixText);
  if (prefix > bits) return undefined;
  const host = (1n << BigInt(bits - prefix)) - 1n;
  const base = BigInt(`0x${first}`);
  if ((base & host) !== 0n) return undefined;
  return { text, first, last: (base | host).toString(16).padStart(first.length, '0') };
}

export function rangeHolds({ first, last }: AddressRange, address: AddressDigits): boolean {
  return address.length === first.length && first <= address && address <= last;
}

/** Whether an address is in one of the blocks. Text that is not an address is in no block. */
export function isInRanges(ranges: readonly AddressRange[], text: string): boolean {
  const address = parseAddress(text);
  return address !== undefined && ranges.some((range) => rangeHolds(range, address));
}

/** `undefined` if it is not an IPv4 or IPv6 address. */
export function parseAddress(text: string): AddressDigits | undefined {
  if (!text.includes(':')) return parseIpv4(text);
  const groups = ipv6Groups(text);
  return groups?.length === 8 ? groups.map((group) => group.toString(16).padStart(4, '0')).join('') : undefined;
}

/** The address in the form of SubjectAltNames.ip; `undefined` if the text is not an address. */
export function canonicalAddress(text: string): string | undefined {
  const digits = parseAddress(text);
  return digits === undefined ? undefined : ipText(Buffer.from(digits, 'hex'));
}

/** Four decimal numbers. Leading zeros are refused, because some readers parse them as octal. */
function parseIpv4(text: string): AddressDigits | undefined {
  const octets = text.split('.');
  if (octets.length !== 4 || !octets.every((octet) => /^(0|[1-9][0-9]{0,2})$/.test(octet) && Number(octet) <= 255))
    return undefined;
  return octets.map((octet) => Number(octet).toString(16).padStart(2, '0')).join('');
}

/** RFC 4291 §2.2: eight groups, `::` at most once for one or more zero groups, dotted IPv4 at the end. */
function ipv6Groups(text: string): readonly number[] | undefined {
  const halves = text.split('::');
  if (halves.length > 2) return undefined;
  const [left, right] = halves.map((half, index) => groupsOf(half, index === halves.length - 1));
  if (left === undefined || (halves.length === 2 && right === undefined)) return undefined;
  if (right === undefined) return left;
  const zeros = 8 - left.length - right.length;
  return zeros < 1 ? undefined : [...left, ...Array<number>(zeros).fill(0), ...right];
}

function groupsOf(half: string, isLast: boolean): readonly number[] | undefined {
  if (half === '') return [];
  const texts = half.split(':');
  const ipv4 = isLast ? parseIpv4(texts.at(-1) ?? '') : undefined;
  const hexTexts = ipv4 === undefined ? texts : texts.slice(0, -1);
  if (!hexTexts.every((text) => /^[0-9A-Fa-f]{1,4}$/.test(text))) return undefined;
  const groups = hexTexts.map((text) => Number.parseInt(text, 16));
  if (ipv4 === undefined) return groups;
  return [...groups, Number.parseInt(ipv4.slice(0, 4), 16), Number.parseInt(ipv4.slice(4), 16)];
}

/** The pattern is for the ARN, or for the name, its last part. An instance without a profile matches no pattern, not even `*`. */
export function profileMatches(pattern: string, arn: string): boolean {
  const name = arn.slice(arn.lastIndexOf('/') + 1);
  return arn !== '' && nameMatches(pattern, pattern.startsWith('arn:') ? arn : name);
}
