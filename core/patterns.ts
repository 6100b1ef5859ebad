/**
 * The patterns an operator writes in a profile, matched against what a requester asks for. Anchored at both ends;
 * `*` is a run of characters, possibly empty; everything else stands for itself. No regular expressions: a pattern
 * must read the same to everybody, and matching must take the same time whatever the requester sends.
 */

/** Common names, organizations, user and group names: `*` is any run. Compared exactly, as Kubernetes does. */
export function nameMatches(pattern: string, value: string): boolean {
  return globMatches(pattern, value, '');
}

/**
 * DNS names, without regard to case (RFC 4343). The value must be a host name first, or `*` in `*.example.com` would
 * match `evil.net\0.example.com`. A wildcard name stands for many names: only the very same pattern permits it.
 */
export function dnsMatches(pattern: string, value: string): boolean {
  const name = value.toLowerCase();
  if (name.startsWith('*.')) return name === pattern.toLowerCase();
  return isHostName(name) && globMatches(pattern.toLowerCase(), name, '');
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

/** What Kubernetes calls a DNS-1123 subdomain: the form of every Node's name. */
export function isSubdomain(name: string): boolean {
  return name.length <= 253 && name.split('.').every((label) => /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/.test(label));
}

/** `star` must not cover any of the characters in `never`. Time is pattern × value at worst. */
function globMatches(pattern: string, value: string, never: string): boolean {
  const [head = '', ...parts] = pattern.split('*');
  const tail = parts.pop();
  if (tail === undefined) return value === head;
  if (!value.startsWith(head) || value.length < head.length + tail.length || !value.endsWith(tail)) return false;
  const end = value.length - tail.length;
  let at = head.length;
  // The leftmost place for each part is as good as any: what a later place would let `*` skip, an earlier one can too.
  for (const part of parts) {
    const found = value.indexOf(part, at);
    if (found < 0 || found + part.length > end || covers(value, at, found, never)) return false;
    at = found + part.length;
  }
  return !covers(value, at, end, never);
}

function covers(value: string, from: number, to: number, never: string): boolean {
  for (let at = from; at < to; at += 1) if (never.includes(value.charAt(at))) return true;
  return false;
}

/** A block of addresses. An IPv4 address is never inside an IPv6 block, mapped (`::ffff:…`) or not. */
export interface AddressRange {
  readonly bits: 32 | 128;
  readonly base: bigint;
  readonly prefix: number;
}

/** `10.0.0.0/8`, `2001:db8::/32`, or one address. Undefined when it is neither, or has bits set beyond its prefix. */
export function parseRange(text: string): AddressRange | undefined {
  const [, addressText, prefixText] = /^([^/]+)(?:\/(0|[1-9][0-9]{0,2}))?$/.exec(text) ?? [];
  const address = parseAddress(addressText ?? '');
  if (address === undefined) return undefined;
  const prefix = prefixText === undefined ? address.bits : Number(prefixText);
  if (prefix > address.bits) return undefined;
  const host = BigInt(address.bits - prefix);
  return (address.value >> host) << host === address.value
    ? { bits: address.bits, base: address.value, prefix }
    : undefined;
}

export function rangeHolds(range: AddressRange, addressText: string): boolean {
  const address = parseAddress(addressText);
  if (address === undefined || address.bits !== range.bits) return false;
  const host = BigInt(range.bits - range.prefix);
  return address.value >> host === range.base >> host;
}

function parseAddress(text: string): { bits: 32 | 128; value: bigint } | undefined {
  if (!text.includes(':')) {
    const value = parseIpv4(text);
    return value === undefined ? undefined : { bits: 32, value };
  }
  const groups = ipv6Groups(text);
  if (groups?.length !== 8) return undefined;
  return { bits: 128, value: groups.reduce((sum, group) => (sum << 16n) | BigInt(group), 0n) };
}

/** Four decimal numbers without leading zeros (some readers take those for octal). */
function parseIpv4(text: string): bigint | undefined {
  const octets = text.split('.');
  if (octets.length !== 4 || !octets.every((octet) => /^(0|[1-9][0-9]{0,2})$/.test(octet) && Number(octet) <= 255))
    return undefined;
  return octets.reduce((sum, octet) => (sum << 8n) | BigInt(octet), 0n);
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

function groupsOf(half: string, ends: boolean): readonly number[] | undefined {
  if (half === '') return [];
  const texts = half.split(':');
  const ipv4 = ends ? parseIpv4(texts.at(-1) ?? '') : undefined;
  const hexTexts = ipv4 === undefined ? texts : texts.slice(0, -1);
  if (!hexTexts.every((text) => /^[0-9A-Fa-f]{1,4}$/.test(text))) return undefined;
  const groups = hexTexts.map((text) => Number.parseInt(text, 16));
  return ipv4 === undefined ? groups : [...groups, Number(ipv4 >> 16n), Number(ipv4 & 0xffffn)];
}
