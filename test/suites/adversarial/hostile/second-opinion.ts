/**
 * What a certificate issued to a hostile request must be. The request is read a second time by another reader
 * (@peculiar/asn1-*, which the decoder under test does not use), the certificate by OpenSSL in node:crypto and by that
 * reader: all must see the same names and the same key.
 */
import { X509Certificate } from 'node:crypto';
import { isIPv4, isIPv6, SocketAddress } from 'node:net';
import 'reflect-metadata';
import { CertificationRequest } from '@peculiar/asn1-csr';
import { AsnConvert } from '@peculiar/asn1-schema';
import { Certificate, Extensions, SubjectAlternativeName, type Name } from '@peculiar/asn1-x509';
import { decodeRequest } from '../../../../core/x509/certificate-request.ts';
import type { CertificateRequest } from '../../../../core/x509/model.ts';

interface Names {
  readonly subject: readonly (readonly [type: string, value: string])[];
  /** `dns:a`, `ip:::1` … in the order written; unsigned types by their name alone. */
  readonly sans: readonly string[];
}

const sanType = '2.5.29.17';
const extensionRequestType = '1.2.840.113549.1.9.14';
/** Everything a leaf carries, in this order (signers.md): KU, EKU, basicConstraints, SKI, AKI, SAN. */
const leafExtensions = ['2.5.29.15', '2.5.29.37', '2.5.29.19', '2.5.29.14', '2.5.29.35', sanType];
/** C, ST, L, street, postalCode, O, OU, one RDN each; then the last CN and serialNumber. */
const kept = ['2.5.4.6', '2.5.4.8', '2.5.4.7', '2.5.4.9', '2.5.4.17', '2.5.4.10', '2.5.4.11'];
const lastOnly = ['2.5.4.3', '2.5.4.5'];

/** Everything wrong with the certificate that was issued to this request text; empty when it is what was asked for. */
export function objections(
  requestText: Uint8Array,
  certificatePem: string,
  caCertificatePem: string,
): readonly string[] {
  const decoded = decodeRequest(requestText);
  if (!decoded.ok) return ['issued, but the request does not decode'];
  try {
    return compare(decoded.value, new X509Certificate(certificatePem), new X509Certificate(caCertificatePem));
  } catch (error) {
    return [`issued, but another reader cannot read it: ${String(error)}`];
  }
}

function compare(
  { der, subject, sans, publicKey }: CertificateRequest,
  certificate: X509Certificate,
  authority: X509Certificate,
): readonly string[] {
  const wrong: string[] = [];
  const seen = readRequest(der);
  const attributes = subject.attributes.map(({ type, value }) => [type, value] as const);
  differ(wrong, 'request subject', attributes, seen.subject);
  differ(wrong, 'request names', sorted([...sansOf(sans), ...sans.unsupported]), sorted(distinctUnsigned(seen.sans)));
  if (!Buffer.from(publicKey.spki).equals(seen.spki)) wrong.push('the readers differ over the key');

  if (certificate.ca) wrong.push('a CA certificate was issued');
  if (!certificate.verify(authority.publicKey)) wrong.push('the CA did not sign it');
  if (!certificate.checkIssued(authority)) wrong.push('OpenSSL does not see the CA as its issuer');
  const { tbsCertificate } = parse(certificate.raw, Certificate);
  const extensions = tbsCertificate.extensions ?? new Extensions();
  differ(wrong, 'certificate subject', readName(tbsCertificate.subject), rebuilt(seen.subject));
  differ(wrong, 'certificate names', readSans(extensions), inOrder(seen.sans));
  if (!certificate.publicKey.export({ type: 'spki', format: 'der' }).equals(seen.spki)) wrong.push('another key');
  const types = extensions.map(({ extnID }) => extnID);
  differ(
    wrong,
    'extensions',
    types,
    leafExtensions.filter((type) => types.includes(type)),
  );
  return wrong;
}

/** With room for the largest request there is; how much it takes is not what this reader is asked. */
function parse<T>(der: Uint8Array | ArrayBuffer, type: new () => T): T {
  return AsnConvert.parse(der, type, { berOptions: { maxNodes: 100_000 } });
}

function differ(wrong: string[], what: string, seen: unknown, expected: unknown): void {
  const [a, b] = [JSON.stringify(seen), JSON.stringify(expected)];
  if (a !== b) wrong.push(`${what}: ${a.slice(0, 300)} is not ${b.slice(0, 300)}`);
}

function readRequest(der: Uint8Array): Names & { readonly spki: Buffer } {
  const { certificationRequestInfo } = parse(der, CertificationRequest);
  const { subject, subjectPKInfo, attributes } = certificationRequestInfo;
  const requested = attributes.filter(({ type }) => type === extensionRequestType).flatMap(({ values }) => values);
  return {
    subject: readName(subject),
    sans: requested.flatMap((value) => readSans(parse(value, Extensions))),
    spki: Buffer.from(AsnConvert.serialize(subjectPKInfo)),
  };
}

function readName(name: Name): Names['subject'] {
  return name.flatMap((rdn) =>
    [...rdn].map(({ type, value }) => {
      const text =
        value.utf8String ??
        value.printableString ??
        value.bmpString ??
        value.teletexString ??
        value.ia5String ??
        (value.anyValue === undefined ? undefined : numericString(Buffer.from(value.anyValue)));
      if (text === undefined) throw new Error(`no text in ${type}`);
      return [type, text] as const;
    }),
  );
}

/** NumericString is the one string type that the schema leaves undecoded. */
function numericString(der: Buffer): string | undefined {
  return der[0] === 0x12 ? der.subarray(der.length - contentLength(der)).toString('latin1') : undefined;
}

function contentLength(der: Buffer): number {
  const first = der[1] ?? 0;
  return first < 0x80 ? first : der.readUIntBE(2, first - 0x80);
}

function readSans(extensions: Extensions): readonly string[] {
  return extensions
    .filter(({ extnID }) => extnID === sanType)
    .flatMap(({ extnValue }) => [...parse(extnValue.buffer, SubjectAlternativeName)])
    .map((name) => {
      if (name.dNSName !== undefined) return `dns:${name.dNSName}`;
      if (name.rfc822Name !== undefined) return `email:${name.rfc822Name}`;
      if (name.iPAddress !== undefined) return `ip:${canonicalAddress(name.iPAddress)}`;
      if (name.uniformResourceIdentifier !== undefined) return `uri:${name.uniformResourceIdentifier}`;
      return Object.keys(name).find((key) => name[key as keyof typeof name] !== undefined) ?? 'unknown';
    });
}

/** libuv's text; an IPv4-mapped address is the IPv4 one. */
function canonicalAddress(address: string): string {
  if (isIPv4(address)) return address;
  if (!isIPv6(address)) return `no address ${address}`;
  const text = new SocketAddress({ address, family: 'ipv6' }).address;
  return text.replace(/^::ffff:(?=\d+\.)/, '');
}

function sansOf({
  dns,
  email,
  ip,
  uri,
}: Readonly<Record<'dns' | 'email' | 'ip' | 'uri', readonly string[]>>): string[] {
  return [
    ...dns.map((name) => `dns:${name}`),
    ...email.map((name) => `email:${name}`),
    ...ip.map((address) => `ip:${canonicalAddress(address)}`),
    ...uri.map((name) => `uri:${name}`),
  ];
}

/** As the certificate has them: by type, within a type as asked. */
function inOrder(sans: readonly string[]): readonly string[] {
  return ['dns:', 'email:', 'ip:', 'uri:'].flatMap((type) => sans.filter((name) => name.startsWith(type)));
}

function distinctUnsigned(sans: readonly string[]): readonly string[] {
  return [...sans.filter((name) => name.includes(':')), ...new Set(sans.filter((name) => !name.includes(':')))];
}

function sorted(values: readonly string[]): readonly string[] {
  return values.toSorted();
}

/** The subject as the in-tree signer rebuilds it; a SET OF is sorted by encoding, so values are compared as sets. */
function rebuilt(attributes: Names['subject']): Names['subject'] {
  const values = (type: string) => attributes.filter(([other]) => other === type);
  const single = lastOnly.flatMap((type) => values(type).slice(-1)).filter(([, value]) => value !== '');
  return [...kept.flatMap((type) => inSetOrder(values(type))), ...single];
}

function inSetOrder(pairs: Names['subject']): Names['subject'] {
  return pairs.length < 2 ? pairs : pairs.toSorted(([, a], [, b]) => Buffer.compare(encodedValue(a), encodedValue(b)));
}

/** Shorter encodings first is what DER order comes to within one type: the length octets come before the text. */
function encodedValue(value: string): Buffer {
  const printable = /^[A-Za-z0-9 '()+,\-./:=?]*$/.test(value);
  const text = Buffer.from(value, 'utf8');
  const length = Buffer.alloc(4);
  length.writeUInt32BE(text.length);
  return Buffer.concat([length, Buffer.from([printable ? 0x13 : 0x0c]), text]);
}
