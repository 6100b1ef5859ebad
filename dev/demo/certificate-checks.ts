/**
 * Checks whether the requester and a TLS peer would accept the issued certificate. @peculiar/x509 and WebCrypto make the checks,
 * since they share no code with the program that issued it.
 */
import 'reflect-metadata';
import { createPublicKey } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import {
  BasicConstraintsExtension,
  ExtendedKeyUsageExtension,
  SubjectAlternativeNameExtension,
  X509Certificate,
} from '@peculiar/x509';
import type { CertificateQuestion } from './kubelet.ts';

export interface CertificateCheck {
  readonly holds: boolean;
  readonly what: string;
}

const clientAuth = '1.3.6.1.5.5.7.3.2';

export async function checkIssued(
  pem: string,
  trustBundle: string,
  privateKey: KeyObject,
  { commonName, organization }: Pick<CertificateQuestion, 'commonName' | 'organization'>,
  now = Date.now(),
): Promise<readonly CertificateCheck[]> {
  const leaf = new X509Certificate(pem);
  const ca = new X509Certificate(trustBundle);
  const key = createPublicKey(privateKey).export({ type: 'spki', format: 'der' });
  const names = JSON.stringify([{ O: [organization] }, { CN: [commonName] }]);
  const hours = Math.round((leaf.notAfter.getTime() - now) / 360_000) / 10;
  return [
    {
      holds:
        leaf.issuer === ca.subject &&
        isCa(ca) &&
        (await leaf.verify({ publicKey: ca, signatureOnly: true })) &&
        (await ca.isSelfSigned()),
      what: `signed by ${ca.subject}, the CA of the trust bundle`,
    },
    { holds: key.equals(Buffer.from(leaf.publicKey.rawData)), what: 'for exactly the key that stayed on the node' },
    {
      holds:
        JSON.stringify(leaf.subjectName.toJSON()) === names &&
        leaf.getExtension(SubjectAlternativeNameExtension) === null,
      what: `names ${leaf.subject}, and no other name`,
    },
    {
      holds: leaf.notBefore.getTime() <= now && now < leaf.notAfter.getTime() && leaf.notAfter <= ca.notAfter,
      what: `valid now and for ${hours} h, serial ${leaf.serialNumber}`,
    },
    {
      holds: leaf.getExtension(ExtendedKeyUsageExtension)?.usages.join() === clientAuth && !isCa(leaf),
      what: 'for client authentication only, and not a CA',
    },
  ];
}

function isCa(certificate: X509Certificate): boolean {
  return certificate.getExtension(BasicConstraintsExtension)?.ca === true;
}
