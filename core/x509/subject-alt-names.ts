/**
 * Subject alternative names (RFC 5280 §4.2.1.6): read from a request, and rebuilt for the certificate as the in-tree
 * signer does (Go's parseSANExtension and marshalSANs): DNS, email, IP, URI, in this order.
 */
import type { SubjectAltNames } from './model.ts';
import { implicit, sequence } from '../encoding/der-writer.ts';
import { childrenOf, contentOf, derTag, isAscii, readDer } from '../encoding/der-reader.ts';
import type { DerElement } from '../encoding/der-reader.ts';
import { malformed, violation } from '../outcome/outcome.ts';
import type { Violations } from '../outcome/outcome.ts';
import { failure, success } from '../outcome/result.ts';
import type { Result } from '../outcome/result.ts';
import { hasControl } from './distinguished-name.ts';

/**
 * Limit of the names of all types together, duplicates included. A certificate of a large web server has about a hundred names.
 * It bounds the cost of a request: each name is compared with each pattern of a profile.
 */
export const maxSubjectAltNames = 256;

/** Context tags of GeneralName. */
const emailTag = 1;
const dnsTag = 2;
const uriTag = 6;
const ipTag = 7;
/** The other types by identifier octet. */
const unsupportedNames: ReadonlyMap<number, string> = new Map([
  [0xa0, 'otherName'],
  [0xa3, 'x400Address'],
  [0xa4, 'directoryName'],
  [0xa5, 'ediPartyName'],
  [0x88, 'registeredID'],
]);

/** `value` is the content of the extension's OCTET STRING. */
export function decodeSubjectAltNames(value: Uint8Array): Result<SubjectAltNames, Violations> {
  const root = readDer(value);
  if (!root.ok) return undecodable(`is not DER: it ${root.problem}`);
  const names = childrenOf(root.value, derTag.sequence);
  if (names === undefined) return undecodable('is not a sequence of names');
  if (names.length > maxSubjectAltNames)
    return failure([
      violation(
        'RequestTooLarge',
        `the request has ${names.length} subjectAltNames, at most ${maxSubjectAltNames} are signed`,
      ),
    ]);
  const collected: Collected = { dns: [], email: [], ip: [], uri: [], unsupported: [] };
  for (const name of names) {
    const fault = decodeName(name, collected);
    if (fault !== undefined) return undecodable(fault);
  }
  return success(collected);
}

function undecodable(what: string): Result<never, Violations> {
  return malformed(`the subjectAltName extension ${what}`);
}

type Collected = { readonly [Kind in keyof SubjectAltNames]: string[] };

function decodeName(name: DerElement, into: Collected): string | undefined {
  const content = contentOf(name);
  switch (name.tag) {
    case 0x80 | dnsTag:
      return decodeIa5(content, 'DNS', into.dns) ?? checkDns(into.dns.at(-1) ?? '');
    case 0x80 | emailTag:
      return decodeIa5(content, 'email', into.email) ?? checkEmail(into.email.at(-1) ?? '');
    case 0x80 | uriTag:
      return decodeIa5(content, 'URI', into.uri) ?? checkUri(into.uri.at(-1) ?? '');
    case 0x80 | ipTag: {
      const text = ipText(content);
      if (text === undefined) return `has an IP address of ${content.length} octets`;
      into.ip.push(text);
      return undefined;
    }
    default: {
      const kind = unsupportedNames.get(name.tag);
      if (kind === undefined) return 'has a name of no known type';
      if (!into.unsupported.includes(kind)) into.unsupported.push(kind);
      return undefined;
    }
  }
}

function decodeIa5(content: Uint8Array, kind: string, into: string[]): string | undefined {
  if (!isAscii(content)) return `has ${kind} names outside ASCII`;
  const text = Buffer.from(content).toString('latin1');
  // `a.example\0.evil` is a different name for a reader that stops at the NUL.
  if (hasControl(text)) return `has a control character in ${kind} names`;
  into.push(text);
  return undefined;
}

/**
 * Letters, digits, `-`, `_`, `.` and `*`, which all verifiers compare in the same way. Other characters can mislead programs that
 * show or split names: `a,DNS:b` is one name, but looks like two. Like the in-tree signer, does not check length, labels or wildcards.
 */
function checkDns(name: string): string | undefined {
  if (name === '') return 'has a DNS name that is empty';
  return /^[A-Za-z0-9._*-]+$/.test(name) ? undefined : 'has a DNS name with characters that no host name has';
}

function checkEmail(address: string): string | undefined {
  if (address === '') return 'has an email address that is empty';
  return /[ ,]/.test(address) ? 'has an email address with a blank or a comma' : undefined;
}

/**
 * An absolute URI (RFC 5280 §4.2.1.6) with RFC 3986 characters only, and with a lower-case scheme and no empty port, query or
 * fragment. Go accepts every URI that this pattern accepts and leaves it unchanged. A URI that Go would change is refused,
 * because the in-tree signer puts the changed URI into the certificate.
 */
const uriPattern = (() => {
  const encoded = '%[0-9A-Fa-f]{2}';
  const unreserved = 'A-Za-z0-9\\-._~';
  const pchar = `(?:[${unreserved}!$&'()*+,;=:@]|${encoded})`;
  const label = "[A-Za-z0-9\\-_~!$&'()*+,;=]+";
  const host = `(?:\\[(?<ipv6>[0-9A-Fa-f:.]+)\\]|${label}(?:\\.${label})*)`;
  const authority = `//(?:[${unreserved}]+@)?${host}(?::[0-9]+)?(?:/(?:${pchar}|/)*)?`;
  // file:///path has an empty host.
  const path = `//(?:/(?:${pchar}|/)*)|/(?:${pchar}+(?:/(?:${pchar})*)*)?|${pchar}(?:${pchar}|/)*`;
  const tail = `(?:${pchar}|[/?])+`;
  return new RegExp(`^[a-z][a-z0-9+.\\-]*:(?:${authority}|${path})(?:\\?${tail})?(?:#${tail})?$`);
})();

function checkUri(uri: string): string | undefined {
  const match = uriPattern.exec(uri);
  const ipv6 = match?.groups?.['ipv6'];
  // Text in brackets must be an IPv6 address. The URL class decides.
  if (match !== null && (ipv6 === undefined || URL.canParse(`http://[${ipv6}]`))) return undefined;
  return 'has a URI name that is not an absolute URI in normal form (RFC 3986)';
}

/** DER value of the SubjectAltName extension; `undefined` if there is no name. */
export function encodeSubjectAltNames({
  dns,
  email,
  ip,
  uri,
}: Omit<SubjectAltNames, 'unsupported'>): Uint8Array | undefined {
  const text = (name: string): Buffer => Buffer.from(name, 'latin1');
  const names = [
    ...dns.map((name) => implicit(dnsTag, text(name))),
    ...email.map((name) => implicit(emailTag, text(name))),
    ...ip.map((address) => implicit(ipTag, ipOctets(address))),
    ...uri.map((name) => implicit(uriTag, text(name))),
  ];
  return names.length === 0 ? undefined : sequence(...names);
}

/** Canonical text of 4 or 16 octets; `undefined` for any other number. RFC 5952. */
export function ipText(octets: Uint8Array): string | undefined {
  if (octets.length === 4) return octets.join('.');
  if (octets.length !== 16) return undefined;
  // Go writes an IPv4-mapped address as its four IPv4 octets, so the rules see the IPv4 address too.
  if (octets.subarray(0, 10).every((octet) => octet === 0) && octets[10] === 0xff && octets[11] === 0xff)
    return octets.subarray(12).join('.');
  const groups = Array.from({ length: 8 }, (_, i) => (octets[2 * i] ?? 0) * 256 + (octets[2 * i + 1] ?? 0));
  // The URL class writes the canonical form.
  return new URL(`http://[${groups.map((group) => group.toString(16)).join(':')}]`).hostname.slice(1, -1);
}

/** The inverse of `ipText`. */
export function ipOctets(text: string): Uint8Array {
  if (!text.includes(':')) return Uint8Array.from(text.split('.'), Number);
  const [left = '', right] = text.split('::');
  const groups = (part: string): readonly number[] =>
    part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16));
  const before = groups(left);
  const after = groups(right ?? '');
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => 0);
  return Uint8Array.from([...before, ...zeros, ...after].flatMap((group) => [group >> 8, group & 0xff]));
}
