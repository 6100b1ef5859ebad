/** What `status.certificate` of a request holds. It compares the issuer's name and verifies no signature; the ledger is the authority. */
import { encodeCaSubject } from '../../core/x509/ca-certificate.ts';
import { certificateFacts, CertificateUnreadableError } from '../../core/x509/read-certificate.ts';
import type { CaConfiguration } from '../../core/configuration/model/cluster.ts';
import { decodePem } from '../../core/encoding/pem.ts';

export interface GivenCertificate {
  /** `unknown`: the certificate is unreadable, or no countersign.yaml names the cluster's CA. */
  readonly issuedBy: 'this CA' | 'another CA' | 'unknown';
  /** Set if the certificate is readable. */
  readonly facts?: {
    readonly issuer: string;
    readonly serial: string;
    /** RFC 3339. */
    readonly notBefore: string;
    readonly notAfter: string;
  };
}

/** `encoded` as in the object: base64 of PEM, the leaf first. `ca`: the CA of the signer's profile. */
export function givenCertificate(encoded: string, ca: CaConfiguration | undefined): GivenCertificate {
  const blocks = decodePem(Buffer.from(encoded, 'base64'), ['CERTIFICATE']);
  const [leaf] = blocks.ok ? blocks.value : [];
  try {
    const facts = certificateFacts(leaf?.content ?? new Uint8Array());
    const ours = ca !== undefined && Buffer.from(encodeCaSubject(ca.subject)).equals(facts.issuerName);
    return {
      issuedBy: ca === undefined ? 'unknown' : ours ? 'this CA' : 'another CA',
      facts: {
        issuer: facts.issuer,
        serial: facts.serial,
        notBefore: new Date(facts.notBefore).toISOString(),
        notAfter: new Date(facts.notAfter).toISOString(),
      },
    };
  } catch (error) {
    if (error instanceof CertificateUnreadableError) return { issuedBy: 'unknown' };
    throw error;
  }
}
