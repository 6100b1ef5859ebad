/** Certificates of endorsement keys and of the CAs above them, right and wrong, made with @peculiar/x509. */
import 'reflect-metadata';
import * as x509 from '@peculiar/x509';
import { webcrypto } from 'node:crypto';

export const now = Date.parse('2026-08-30T12:00:30Z');
const year = 365 * 86_400_000;

const ecdsa = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

export interface Ca {
  readonly name: string;
  readonly keys: webcrypto.CryptoKeyPair;
  readonly certificate: x509.X509Certificate;
  readonly pem: string;
}

export interface CaOptions {
  readonly keys?: webcrypto.CryptoKeyPair;
  readonly notBefore?: number;
  readonly notAfter?: number;
  /** Instead of the usual ones of a CA. */
  readonly extensions?: readonly x509.Extension[];
  readonly isCa?: boolean;
  readonly pathLength?: number;
  readonly usage?: x509.KeyUsageFlags;
  readonly hash?: string;
}

export async function createCa(name: string, issuer?: Ca, options: CaOptions = {}): Promise<Ca> {
  const keys = options.keys ?? (await webcrypto.subtle.generateKey(ecdsa, true, ['sign', 'verify']));
  const { notBefore = now - year, notAfter = now + year, isCa = true, pathLength, hash = 'SHA-256' } = options;
  const { usage = x509.KeyUsageFlags.keyCertSign } = options;
  const certificate = await x509.X509CertificateGenerator.create({
    subject: `CN=${name}`,
    issuer: `CN=${issuer?.name ?? name}`,
    serialNumber: '01',
    notBefore: new Date(notBefore),
    notAfter: new Date(notAfter),
    signingAlgorithm: { ...ecdsa, hash },
    publicKey: keys.publicKey,
    signingKey: (issuer?.keys ?? keys).privateKey,
    extensions: [
      new x509.BasicConstraintsExtension(isCa, pathLength, true),
      new x509.KeyUsagesExtension(usage, true),
      ...(options.extensions ?? []),
    ],
  });
  return { name, keys, certificate, pem: certificate.toString('pem') };
}

export interface EkOptions {
  readonly notBefore?: number;
  readonly notAfter?: number;
  readonly purposes?: readonly string[];
  readonly usage?: x509.KeyUsageFlags | 'none';
  readonly isCa?: boolean;
  readonly hash?: string;
  readonly extensions?: readonly x509.Extension[];
}

export const ekPurpose = '2.23.133.8.1';

export async function ekCertificate(spki: Uint8Array, issuer: Ca, options: EkOptions = {}): Promise<Buffer> {
  const { notBefore = now - year, notAfter = now + year, purposes = [ekPurpose], isCa = false } = options;
  const { usage = x509.KeyUsageFlags.keyEncipherment, hash = 'SHA-256' } = options;
  const certificate = await x509.X509CertificateGenerator.create({
    issuer: `CN=${issuer.name}`,
    serialNumber: '02',
    notBefore: new Date(notBefore),
    notAfter: new Date(notAfter),
    signingAlgorithm: { ...ecdsa, hash },
    publicKey: new Uint8Array(spki),
    signingKey: issuer.keys.privateKey,
    extensions: [
      new x509.SubjectAlternativeNameExtension([{ type: 'dn', value: 'CN=id:00001014' }], true),
      new x509.BasicConstraintsExtension(isCa, undefined, true),
      ...(purposes.length === 0 ? [] : [new x509.ExtendedKeyUsageExtension([...purposes])]),
      ...(usage === 'none' ? [] : [new x509.KeyUsagesExtension(usage, true)]),
      ...(options.extensions ?? []),
    ],
  });
  return Buffer.from(certificate.rawData);
}
