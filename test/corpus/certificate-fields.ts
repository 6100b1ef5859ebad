/**
 * Compares two certificates field by field in their DER, with a reader of its own: thirty lines that know nothing of
 * the libraries and the code that made either of them.
 */
import { createHash, createPublicKey, verify } from 'node:crypto';
import type { KeyObject } from 'node:crypto';

interface Tlv {
  readonly tag: number;
  /** With tag and length. */
  readonly whole: Buffer;
  readonly content: Buffer;
}

export interface ExtensionField {
  readonly oid: string;
  readonly critical: boolean;
  readonly value: Buffer;
  /** The whole SEQUENCE. */
  readonly whole: Buffer;
}

/** Every field as it stands in the encoding. */
export interface CertificateFields {
  readonly tbs: Buffer;
  readonly version: Buffer;
  readonly serial: Buffer;
  readonly innerAlgorithm: Buffer;
  readonly issuer: Buffer;
  readonly notBefore: Buffer;
  readonly notAfter: Buffer;
  readonly subject: Buffer;
  readonly spki: Buffer;
  readonly extensions: readonly ExtensionField[];
  readonly outerAlgorithm: Buffer;
  readonly signature: Buffer;
}

export const subjectKeyIdentifierOid = '551d0e';
export const authorityKeyIdentifierOid = '551d23';

/** Throws for whatever is not exactly a certificate of version 3 in definite lengths. */
export function fieldsOf(certificate: Uint8Array): CertificateFields {
  const [whole, ...more] = elements(Buffer.from(certificate));
  const [tbs, outerAlgorithm, signature] = inside(whole, 0x30, 3);
  const [version, serial, innerAlgorithm, issuer, validity, subject, spki, extensionsTag] = inside(tbs, 0x30, 8);
  const [notBefore, notAfter] = inside(validity, 0x30, 2);
  const [list] = inside(extensionsTag, 0xa3, 1);
  if (more.length > 0) throw new Error('bytes behind the certificate');
  return {
    tbs: tbs!.whole,
    version: version!.whole,
    serial: serial!.content,
    innerAlgorithm: innerAlgorithm!.whole,
    issuer: issuer!.whole,
    notBefore: notBefore!.whole,
    notAfter: notAfter!.whole,
    subject: subject!.whole,
    spki: spki!.whole,
    extensions: inside(list, 0x30).map(extension),
    outerAlgorithm: outerAlgorithm!.whole,
    signature: signature!.content.subarray(1),
  };
}

function extension(element: Tlv): ExtensionField {
  const parts = inside(element, 0x30);
  const [type, second] = parts;
  const value = parts.at(-1);
  if (type?.tag !== 0x06 || value?.tag !== 0x04 || parts.length > 3) throw new Error('no extension');
  // DEFAULT FALSE is never written (X.690 §11.5), so a BOOLEAN says TRUE.
  const critical = parts.length === 3;
  if (critical && second?.whole.toString('hex') !== '0101ff') throw new Error('a criticality that is not TRUE');
  return { oid: type.content.toString('hex'), critical, value: value.content, whole: element.whole };
}

/** The elements inside one, of which there must be that many. */
function inside(element: Tlv | undefined, tag: number, count?: number): Tlv[] {
  if (element?.tag !== tag) throw new Error(`expected tag ${tag}, found ${element?.tag ?? 'nothing'}`);
  const found = elements(element.content);
  if (count !== undefined && found.length !== count)
    throw new Error(`expected ${count} elements, found ${found.length}`);
  return found;
}

function elements(bytes: Buffer): Tlv[] {
  const found: Tlv[] = [];
  for (let rest = bytes; rest.length > 0;) {
    const [tag, first] = [rest.readUInt8(0), rest.readUInt8(1)];
    const octets = first < 0x80 ? 0 : first - 0x80;
    const length = octets === 0 ? first : rest.readUIntBE(2, octets);
    const start = 2 + octets;
    if (octets > 4 || start + length > rest.length) throw new Error('a length beyond the end');
    found.push({ tag, whole: rest.subarray(0, start + length), content: rest.subarray(start, start + length) });
    rest = rest.subarray(start + length);
  }
  return found;
}

/** Seconds since 1970 of a UTCTime or GeneralizedTime. */
export function secondsOf(time: Buffer): number {
  const digits = time.subarray(2).toString('latin1');
  const century = time[0] === 0x17 ? (Number(digits.slice(0, 2)) < 50 ? '20' : '19') : '';
  const [, year, month, day, hour, minute, second] =
    /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/.exec(`${century}${digits}`) ?? [];
  return Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`) / 1000;
}

/**
 * What differs that may not: nothing is left out but the serial number and the signature, which are judged by
 * themselves, and the subject key identifier, which ours alone has (deviation 1).
 */
export function differences(reference: Uint8Array, ours: Uint8Array, ca: KeyObject): string[] {
  const theirs = fieldsOf(reference);
  const mine = fieldsOf(ours);
  const found: string[] = [];
  for (const field of [
    'version',
    'innerAlgorithm',
    'outerAlgorithm',
    'issuer',
    'notBefore',
    'notAfter',
    'subject',
    'spki',
  ] as const)
    if (!theirs[field].equals(mine[field]))
      found.push(`${field}: reference ${theirs[field].toString('hex')}, ours ${mine[field].toString('hex')}`);

  const shown = (list: readonly ExtensionField[]): string => list.map(({ whole }) => whole.toString('hex')).join(' ');
  const withoutAddition = mine.extensions.filter(({ oid }) => oid !== subjectKeyIdentifierOid);
  if (shown(theirs.extensions) !== shown(withoutAddition))
    found.push(`extensions: reference ${shown(theirs.extensions)}, ours ${shown(withoutAddition)}`);
  return [...found, ...faultsOf(mine, ca)];
}

/** What has no counterpart to be compared with: the addition, the serial number, the signature. */
function faultsOf(mine: CertificateFields, ca: KeyObject): string[] {
  const found: string[] = [];
  const [identifier, ...more] = mine.extensions.filter(({ oid }) => oid === subjectKeyIdentifierOid);
  // RFC 7093 §2, method 1: of SHA-256 over the key's BIT STRING, without its count of unused bits, the first 160 bits.
  const bits = inside(elements(mine.spki)[0], 0x30, 2)[1]!.content.subarray(1);
  const expected = `0414${createHash('sha256').update(bits).digest('hex').slice(0, 40)}`;
  if (more.length > 0 || identifier?.critical !== false || identifier.value.toString('hex') !== expected)
    found.push('ours has no, or a wrong, subject key identifier');

  // RFC 5280 §4.1.2.2: positive, at most 20 octets; a CA/Browser rule worth having: 64 random bits.
  const { serial } = mine;
  if (serial.length < 8 || serial.length > 20 || serial[0]! >= 0x80) found.push(`serial ${serial.toString('hex')}`);

  const hash = hashOf(mine.outerAlgorithm);
  if (hash === undefined || !verify(hash, mine.tbs, createPublicKey(ca), mine.signature))
    found.push('the signature does not verify');
  return found;
}

/** Go's choice for each of the CA keys used here. */
function hashOf(algorithm: Buffer): string | undefined {
  return {
    '300a06082a8648ce3d040302': 'sha256',
    '300a06082a8648ce3d040303': 'sha384',
    '300a06082a8648ce3d040304': 'sha512',
    '300d06092a864886f70d01010b0500': 'sha256',
  }[algorithm.toString('hex')];
}

/** Hex of the object identifiers, in order. */
export function extensionOids(certificate: Uint8Array): string[] {
  return fieldsOf(certificate).extensions.map(({ oid }) => oid);
}
