/** Would the one who asked, and a TLS peer, accept what came back? By node:crypto alone, not by code that made it. */
import { X509Certificate } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import type { CertificateQuestion } from './kubelet.ts';

export interface CertificateCheck {
  readonly holds: boolean;
  readonly what: string;
}

const clientAuth = '1.3.6.1.5.5.7.3.2';

export function checkIssued(
  pem: string,
  trustBundle: string,
  privateKey: KeyObject,
  { commonName, organization }: Pick<CertificateQuestion, 'commonName' | 'organization'>,
  now = Date.now(),
): readonly CertificateCheck[] {
  const leaf = new X509Certificate(pem);
  const ca = new X509Certificate(trustBundle);
  const hours = Math.round((leaf.validToDate.getTime() - now) / 360_000) / 10;
  return [
    {
      holds: leaf.verify(ca.publicKey) && leaf.checkIssued(ca) && ca.ca && ca.verify(ca.publicKey),
      what: `signed by ${ca.subject.replaceAll('\n', ', ')}, the CA of the trust bundle`,
    },
    { holds: leaf.checkPrivateKey(privateKey), what: 'for exactly the key that stayed on the node' },
    {
      holds: leaf.subject === `O=${organization}\nCN=${commonName}` && leaf.subjectAltName === undefined,
      what: `names ${leaf.subject.replaceAll('\n', ', ')}, and no other name`,
    },
    {
      holds:
        leaf.validFromDate.getTime() <= now && now < leaf.validToDate.getTime() && leaf.validToDate <= ca.validToDate,
      what: `valid now and for ${hours} h, serial ${leaf.serialNumber.toLowerCase()}`,
    },
    {
      holds: leaf.keyUsage?.join() === clientAuth && !leaf.ca,
      what: 'for client authentication only, and no CA itself',
    },
  ];
}
