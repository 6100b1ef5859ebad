/** What `status.certificate` of a request holds. The issuer's name is compared, not a signature: the ledger alone knows more. */
import { encodeCaSubject } from '../../core/x509/ca-certificate.ts';
import { certificateFacts, CertificateUnreadableError } from '../../core/x509/read-certificate.ts';
import type { CaConfiguration } from '../../core/configuration/model/cluster.ts';
import { decodePem } from '../../core/encoding/pem.ts';

export interface GivenCertificate {
  /** `unknown`: it cannot be read, or no countersign.yaml says what the cluster's CA is called. */
  readonly issuedBy: 'this CA' | 'another CA' | 'unknown';
  /** Of a certificate that can be read. */
  readonly facts?: {
    readonly issuer: string;
    readonly serial: string;
    /** RFC 3339. */
    readonly notBefore: string;
    readonly notAfter: string;
  };
}

/** `encoded` as in the object: base64 of PEM, the leaf first. `ca`: the one that the signer's profile names. */
export function givenCertificate(encoded: string, ca: CaConfiguration | undefined): GivenCertificate {
  const blocks = decodePem(Buffer.from(encoded, 'base64'), ['CERTIFICATE']);
  const [leaf] = 'problem' in blocks ? [] : blocks;
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
