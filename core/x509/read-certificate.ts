/** Reads certificates strictly: CA certificates that operators provide, and new certificates before they are returned. */
import { hash } from 'node:crypto';
import {
  childrenOf,
  contentOf,
  derTag,
  elementIn,
  encodingOf,
  maxElements,
  oidOf,
  readDer,
} from '../encoding/der-reader.ts';
import type { DerElement } from '../encoding/der-reader.ts';
import { failure, success } from '../outcome/result.ts';
import type { Result } from '../outcome/result.ts';
import type { Instant } from '../ports/instant.ts';
import { decodeSubject, subjectText } from './distinguished-name.ts';
import { extensionType } from './model.ts';

export interface Extension {
  readonly critical: boolean;
  /** The content of the OCTET STRING. */
  readonly value: Uint8Array;
}

export interface CertificateFacts {
  /** Lower-case hex without the sign octet, as in the ledger. */
  readonly serial: string;
  /** The content octets of the INTEGER, unchanged. */
  readonly serialOctets: Uint8Array;
  readonly notBefore: Instant;
  readonly notAfter: Instant;
  /** Text for messages: `O=system:nodes, CN=system:node:n1`. */
  readonly subject: string;
  readonly issuer: string;
  /** DER Names. */
  readonly subjectName: Uint8Array;
  readonly issuerName: Uint8Array;
  readonly spki: Uint8Array;
  /** Lower-case hex. */
  readonly fingerprintSha256: string;
  readonly isCa: boolean;
  readonly subjectKeyIdentifier: Uint8Array | undefined;
  /** By OID, in the order of the certificate. */
  readonly extensions: ReadonlyMap<string, Extension>;
  readonly tbs: Uint8Array;
  /** DER AlgorithmIdentifiers: `signature` inside the TBS, and `signatureAlgorithm` outside. */
  readonly signedAlgorithm: Uint8Array;
  readonly outerAlgorithm: Uint8Array;
}

/** The bytes are not a certificate that this reader accepts. An operator must replace the configured certificate. */
export class CertificateUnreadableError extends Error {
  override readonly name = 'CertificateUnreadableError';
}

/** Of a certificate of ours or of the operator's. Throws CertificateUnreadableError where `readCertificate` has a problem. */
export function certificateFacts(der: Uint8Array): CertificateFacts {
  const read = readCertificate(der);
  if (!read.ok) throw new CertificateUnreadableError(read.problem);
  return read.value;
}

/** Of bytes that can be anything: one X.509 v3 certificate in DER, or the problem, `not a certificate: …`. */
export function readCertificate(der: Uint8Array): Result<CertificateFacts, string> {
  // A request with maxElements elements can lead to a larger certificate, which must be readable too.
  const root = readDer(der, 2 * maxElements);
  if (!root.ok) return unreadable(root.problem);
  const [tbs, outerAlgorithm, , ...beyond] = childrenOf(root.value, derTag.sequence) ?? [];
  const [version, serial, algorithm, issuer, validity, subject, spki, ...optional] =
    childrenOf(tbs, derTag.sequence) ?? [];
  if (tbs === undefined || outerAlgorithm === undefined || beyond.length > 0 || algorithm === undefined)
    return unreadable('it is no signed structure');
  // Versions before 3 have no extensions, so such a CA would have no constraints.
  if (version?.tag !== 0xa0 || serial?.tag !== derTag.integer) return unreadable('it is no X.509 v3 certificate');
  if (issuer === undefined || subject === undefined || spki === undefined) return unreadable('fields are missing');
  const [notBefore, notAfter] = (childrenOf(validity, derTag.sequence) ?? []).map(decodeTime);
  if (notBefore === undefined || notAfter === undefined) return unreadable('its validity cannot be read');
  const places = optional.map(({ tag }) => optionalTags.indexOf(tag));
  // Of two fields of extensions, or one in another place, another reader may read the one that this reader passes over.
  if (places.some((place, index) => place <= (places[index - 1] ?? -1)))
    return unreadable('its optional fields cannot be read');
  const decoded = decodeExtensions(optional.find(({ tag }) => tag === 0xa3));
  if (!decoded.ok) return decoded;
  const extensions = decoded.value;
  const serialOctets = contentOf(serial);
  return success({
    serial: Buffer.from(serialOctets[0] === 0 ? serialOctets.subarray(1) : serialOctets).toString('hex'),
    serialOctets,
    notBefore,
    notAfter,
    // Getters, because issuing a leaf does not need these texts.
    get subject() {
      return nameText(subject);
    },
    get issuer() {
      return nameText(issuer);
    },
    get fingerprintSha256() {
      return hash('sha256', der, 'hex');
    },
    subjectName: encodingOf(subject),
    issuerName: encodingOf(issuer),
    spki: encodingOf(spki),
    isCa: isCa(extensions.get(extensionType.basicConstraints)?.value),
    subjectKeyIdentifier: octetsIn(extensions.get(extensionType.subjectKeyIdentifier)?.value),
    extensions,
    tbs: encodingOf(tbs),
    signedAlgorithm: encodingOf(algorithm),
    outerAlgorithm: encodingOf(outerAlgorithm),
  });
}

/** RFC 5280 §4.1: issuerUniqueID, subjectUniqueID and extensions, each at most once, in this order. */
const optionalTags: readonly number[] = [0x81, 0x82, 0xa3];

function unreadable(why: string): Result<never, string> {
  return failure(`not a certificate: ${why}`);
}

function decodeExtensions(field: DerElement | undefined): Result<ReadonlyMap<string, Extension>, string> {
  const extensions = new Map<string, Extension>();
  if (field === undefined) return success(extensions);
  const [list, ...others] = childrenOf(field, 0xa3) ?? [];
  const listed = childrenOf(list, derTag.sequence);
  if (listed === undefined || others.length > 0) return unreadable('its extensions cannot be read');
  for (const extension of listed) {
    const [type, ...rest] = childrenOf(extension, derTag.sequence) ?? [];
    const oid = oidOf(type);
    const value = rest.at(-1);
    if (oid === undefined || value?.tag !== derTag.octetString || rest.length > 2)
      return unreadable('an extension cannot be read');
    if (extensions.has(oid)) return unreadable(`it has two extensions ${oid}`);
    const critical = rest.length === 2 && rest[0]?.tag === derTag.boolean && contentOf(rest[0])[0] === 0xff;
    extensions.set(oid, { critical, value: contentOf(value) });
  }
  return success(extensions);
}

/** RFC 5280 §4.1.2.5: UTC, in seconds. Two-digit years from 50 on are 19xx. */
function decodeTime(element: DerElement): Instant | undefined {
  const text = Buffer.from(contentOf(element)).toString('latin1');
  const pattern =
    element.tag === derTag.utcTime
      ? /^(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/
      : /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/;
  if (element.tag !== derTag.utcTime && element.tag !== derTag.generalizedTime) return undefined;
  const [year = NaN, month = NaN, day = NaN, hour, minute, second] = (pattern.exec(text) ?? []).slice(1).map(Number);
  const century = element.tag === derTag.generalizedTime ? 0 : year < 50 ? 2000 : 1900;
  const instant = Date.UTC(century + year, month - 1, day, hour, minute, second);
  return Number.isNaN(instant) ? undefined : instant;
}

/** Names of other CAs may have string types that decodeSubject refuses. Comparisons use the DER names, not this text. */
function nameText(name: DerElement): string {
  const subject = decodeSubject(name);
  return subject.ok ? subjectText(subject.value) : '(unreadable name)';
}

function isCa(basicConstraints: Uint8Array | undefined): boolean {
  const [ca] = childrenOf(elementIn(basicConstraints), derTag.sequence) ?? [];
  return ca?.tag === derTag.boolean && contentOf(ca)[0] === 0xff;
}

function octetsIn(value: Uint8Array | undefined): Uint8Array | undefined {
  const element = elementIn(value);
  return element?.tag === derTag.octetString ? contentOf(element) : undefined;
}
