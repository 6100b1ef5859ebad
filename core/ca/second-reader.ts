/**
 * Reads a new CA certificate, or the request for one, with @peculiar/x509, which shares no code with the writer in core/x509, and compares every
 * field with the template. A mistake in our encoder would otherwise last as long as the CA: ten years by default.
 */
import 'reflect-metadata';
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  Pkcs10CertificateRequest,
  SubjectKeyIdentifierExtension,
  X509Certificate,
} from '@peculiar/x509';
import type { CaSubject, CaTemplate } from '../x509/ca-certificate.ts';
import type { CaRequestTemplate } from './ca-request.ts';
import { keyIdentifier } from '../x509/tbs-certificate.ts';

const caUsages: KeyUsageFlags = KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign;

/** The differences between the certificate, as the second reader reads it, and the template. */
export async function certificateDifferences(
  der: Uint8Array,
  template: Omit<CaTemplate, 'algorithm'>,
): Promise<readonly string[]> {
  try {
    return await compare(new X509Certificate(new Uint8Array(der)), template);
  } catch {
    return ['the second reader cannot read it'];
  }
}

async function compare(read: X509Certificate, template: Omit<CaTemplate, 'algorithm'>): Promise<string[]> {
  const { subject, spki, serial, notBefore, notAfter, pathLength } = template;
  const constraints = read.getExtension(BasicConstraintsExtension);
  const usages = read.getExtension(KeyUsagesExtension);
  const identifier = read.getExtension(SubjectKeyIdentifierExtension);
  const issuer = template.issuer === undefined ? undefined : new X509Certificate(new Uint8Array(template.issuer));
  const issuerKeyId = issuer?.getExtension(SubjectKeyIdentifierExtension)?.keyId;
  const name = nameOf(subject);
  const checks: readonly (readonly [agrees: boolean, field: string])[] = [
    [JSON.stringify(read.subjectName.toJSON()) === name, 'subject'],
    [
      JSON.stringify(read.issuerName.toJSON()) ===
        (issuer === undefined ? name : JSON.stringify(issuer.subjectName.toJSON())),
      'issuer',
    ],
    [read.serialNumber === Buffer.from(serial).toString('hex'), 'serial number'],
    [read.notBefore.getTime() === seconds(notBefore) && read.notAfter.getTime() === seconds(notAfter), 'validity'],
    [Buffer.from(read.publicKey.rawData).equals(spki), 'public key'],
    [constraints?.critical === true && constraints.ca && constraints.pathLength === pathLength, 'basicConstraints'],
    [usages?.critical === true && usages.usages === caUsages, 'keyUsage'],
    [identifier?.keyId === Buffer.from(keyIdentifier(spki)).toString('hex'), 'subjectKeyIdentifier'],
    [read.getExtension(AuthorityKeyIdentifierExtension)?.keyId === issuerKeyId, 'authorityKeyIdentifier'],
    [read.extensions.length === (issuerKeyId === undefined ? 3 : 4), 'number of extensions'],
    [await read.verify({ publicKey: issuer ?? read, signatureOnly: true }), 'signature'],
  ];
  return disagreements(checks);
}

/** The differences between the request for a CA certificate, as the second reader reads it, and the template. */
export async function requestDifferences(der: Uint8Array, template: CaRequestTemplate): Promise<readonly string[]> {
  try {
    const { subject, spki, pathLength } = template;
    const read = new Pkcs10CertificateRequest(new Uint8Array(der));
    const constraints = read.extensions.find((each) => each instanceof BasicConstraintsExtension);
    const usages = read.extensions.find((each) => each instanceof KeyUsagesExtension);
    const identifier = read.extensions.find((each) => each instanceof SubjectKeyIdentifierExtension);
    return disagreements([
      [JSON.stringify(read.subjectName.toJSON()) === nameOf(subject), 'subject'],
      [Buffer.from(read.publicKey.rawData).equals(spki), 'public key'],
      [constraints?.critical === true && constraints.ca && constraints.pathLength === pathLength, 'basicConstraints'],
      [usages?.critical === true && usages.usages === caUsages, 'keyUsage'],
      [identifier?.keyId === Buffer.from(keyIdentifier(spki)).toString('hex'), 'subjectKeyIdentifier'],
      [read.attributes.length === 1 && read.extensions.length === 3, 'number of extensions'],
      [await read.verify(), 'signature'],
    ]);
  } catch {
    return ['the second reader cannot read it'];
  }
}

function disagreements(checks: readonly (readonly [agrees: boolean, field: string])[]): string[] {
  return checks.flatMap(([agrees, field]) => (agrees ? [] : [`the second reader disagrees about its ${field}`]));
}

function nameOf({ country, organization, organizationalUnit, commonName }: CaSubject): string {
  return JSON.stringify([
    ...(country === undefined ? [] : [{ C: [country] }]),
    ...(organization === undefined ? [] : [{ O: [organization] }]),
    ...(organizationalUnit === undefined ? [] : [{ OU: [organizationalUnit] }]),
    { CN: [commonName] },
  ]);
}

/** Without the milliseconds, which a certificate cannot hold. */
function seconds(instant: number): number {
  return Math.floor(instant / 1000) * 1000;
}
