/**
 * Reads a new CA certificate with @peculiar/x509, which shares no code with the writer in core/x509, and compares every
 * field with the template. A mistake in our encoder would otherwise last as long as the CA: ten years by default.
 */
import 'reflect-metadata';
import {
  BasicConstraintsExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectKeyIdentifierExtension,
  X509Certificate,
} from '@peculiar/x509';
import type { CaTemplate } from '../x509/ca-certificate.ts';
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
  const name = JSON.stringify([
    ...(subject.country === undefined ? [] : [{ C: [subject.country] }]),
    ...(subject.organization === undefined ? [] : [{ O: [subject.organization] }]),
    ...(subject.organizationalUnit === undefined ? [] : [{ OU: [subject.organizationalUnit] }]),
    { CN: [subject.commonName] },
  ]);
  const checks: readonly (readonly [agrees: boolean, field: string])[] = [
    [JSON.stringify(read.subjectName.toJSON()) === name, 'subject'],
    [JSON.stringify(read.issuerName.toJSON()) === name, 'issuer'],
    [read.serialNumber === Buffer.from(serial).toString('hex'), 'serial number'],
    [read.notBefore.getTime() === seconds(notBefore) && read.notAfter.getTime() === seconds(notAfter), 'validity'],
    [Buffer.from(read.publicKey.rawData).equals(spki), 'public key'],
    [constraints?.critical === true && constraints.ca && constraints.pathLength === pathLength, 'basicConstraints'],
    [usages?.critical === true && usages.usages === caUsages, 'keyUsage'],
    [identifier?.keyId === Buffer.from(keyIdentifier(spki)).toString('hex'), 'subjectKeyIdentifier'],
    [read.extensions.length === 3, 'number of extensions'],
    [await read.verify({ signatureOnly: true }), 'signature'],
  ];
  return checks.flatMap(([agrees, field]) => (agrees ? [] : [`the second reader disagrees about its ${field}`]));
}

/** Without the milliseconds, which a certificate cannot hold. */
function seconds(instant: number): number {
  return Math.floor(instant / 1000) * 1000;
}
