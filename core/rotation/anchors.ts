/** Whether the reader of a bundle of trusted certificates accepts what a CA issued. */
import { pemBlocks } from '../encoding/pem.ts';
import type { CaRecord } from '../ca/authority.ts';
import { certificateFacts, readCertificate } from '../x509/read-certificate.ts';

export type Issuer = Pick<CaRecord, 'certificate' | 'chain'>;

export interface Trust {
  /** The bundle has the CA's certificate or one above it: verifiers go up to any of them. */
  readonly trusted: boolean;
  /** It has one of these that no other CA needs: its own, or a root of which nothing else is below. */
  readonly own: boolean;
}

/** `others`: the other CAs of the cluster. A certificate counts by its subject and key, as for Go. */
export function trustOf(bundlePem: string, issuer: Issuer, others: readonly Issuer[]): Trust {
  const path = namesAndKeys(issuer);
  const needed = new Set(others.flatMap(namesAndKeys));
  const spki = Buffer.from(certificateFacts(issuer.certificate).spki);
  const anchors = new Set<string>();
  let unreadable = false;
  for (const der of certificatesIn(bundlePem)) {
    const read = readCertificate(der);
    if (read.ok) anchors.add(nameAndKey(read.value));
    // Another reader may accept it. So it is not gone.
    else unreadable ||= Buffer.from(der).includes(spki);
  }
  return {
    trusted: path.some((each) => anchors.has(each)),
    own: unreadable || path.some((each) => anchors.has(each) && !needed.has(each)),
  };
}

function namesAndKeys({ certificate, chain }: Issuer): readonly string[] {
  return [certificate, ...chain].map((der) => nameAndKey(certificateFacts(der)));
}

function nameAndKey({ subjectName, spki }: { readonly subjectName: Uint8Array; readonly spki: Uint8Array }): string {
  return `${Buffer.from(subjectName).toString('hex')} ${Buffer.from(spki).toString('hex')}`;
}

function certificatesIn(bundlePem: string): readonly Uint8Array[] {
  return pemBlocks(bundlePem, 'CERTIFICATE').map(
    (block) => new Uint8Array(Buffer.from(block.replaceAll(/-----[A-Z ]+-----|\s/g, ''), 'base64')),
  );
}
