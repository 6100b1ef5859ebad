import 'reflect-metadata';
import * as x509 from '@peculiar/x509';
import { KeyObject, randomBytes, webcrypto } from 'node:crypto';

/*
 * Certificates for the test machinery itself: the API server's serving certificate, logins of test users, planted
 * bad certificates for the linters. Nothing here is under test, and no code under test may come through here.
 */
export interface KeyAndCertificate {
  certificatePem: string;
  /** PKCS #8. */
  keyPem: string;
}

export interface TestAuthority extends KeyAndCertificate {
  /** Issues a leaf for a new P-256 key, valid from an hour ago for a day. */
  issue(options: {
    subject: x509.JsonName;
    extensions?: x509.Extension[];
    serialNumber?: string;
  }): Promise<KeyAndCertificate>;
}

const P256 = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const HOUR_MS = 3_600_000;

/** `now`: the certificate is valid from an hour before it. */
export async function createTestAuthority(commonName: string, hours = 24, now = Date.now()): Promise<TestAuthority> {
  const keys = await generateKeys();
  const authority = await x509.X509CertificateGenerator.createSelfSigned({
    name: [{ CN: [commonName] }],
    serialNumber: randomSerial(),
    ...validity(hours, now),
    signingAlgorithm: P256,
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return {
    certificatePem: authority.toString('pem'),
    keyPem: privateKeyPem(keys),
    async issue({ subject, extensions = [], serialNumber = randomSerial() }) {
      const leafKeys = await generateKeys();
      const certificate = await x509.X509CertificateGenerator.create({
        subject,
        issuer: authority.subjectName,
        serialNumber,
        ...validity(),
        signingAlgorithm: P256,
        publicKey: leafKeys.publicKey,
        signingKey: keys.privateKey,
        extensions: [
          await x509.AuthorityKeyIdentifierExtension.create(keys.publicKey),
          await x509.SubjectKeyIdentifierExtension.create(leafKeys.publicKey),
          ...extensions,
        ],
      });
      return { certificatePem: certificate.toString('pem'), keyPem: privateKeyPem(leafKeys) };
    },
  };
}

/** Extensions of a certificate with which a TLS client logs in. */
export function clientExtensions(): x509.Extension[] {
  return [
    new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
    new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.clientAuth]),
  ];
}

/** Extensions of a TLS server reached at 127.0.0.1, and through a proxy by these names. */
export function loopbackServerExtensions(names: readonly string[] = []): x509.Extension[] {
  return [
    new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
    new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
    new x509.SubjectAlternativeNameExtension([
      { type: 'ip', value: '127.0.0.1' },
      { type: 'dns', value: 'localhost' },
      ...names.map((value) => ({ type: 'dns' as const, value })),
    ]),
  ];
}

function generateKeys(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(P256, true, ['sign', 'verify']);
}

function privateKeyPem(keys: webcrypto.CryptoKeyPair): string {
  return KeyObject.from(keys.privateKey).export({ type: 'pkcs8', format: 'pem' }).toString();
}

function validity(hours = 24, now = Date.now()): { notBefore: Date; notAfter: Date } {
  return { notBefore: new Date(now - HOUR_MS), notAfter: new Date(now + hours * HOUR_MS) };
}

/** Positive and never zero-padded, as RFC 5280 wants it: the first byte is between 0x40 and 0x7f. */
function randomSerial(): string {
  const bytes = randomBytes(16);
  bytes[0] = (bytes[0]! & 0x3f) | 0x40;
  return bytes.toString('hex');
}
