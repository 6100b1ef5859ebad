/** Builds a CA certificate, has it signed, and has two readers check the result before it is used. */
import { X509Certificate } from 'node:crypto';
import type { Signer } from '../ports/signer.ts';
import { buildCaTbs, checkCaCertificate } from '../x509/ca-certificate.ts';
import type { CaTemplate } from '../x509/ca-certificate.ts';
import { assembleCertificate } from '../x509/leaf-certificate.ts';

/** `signer`: of the template's key, or of its issuer. Throws if it is of another key, or if a reader finds a difference to the template. */
export async function issueCaCertificate(template: Omit<CaTemplate, 'algorithm'>, signer: Signer): Promise<Uint8Array> {
  const tbs = buildCaTbs({ ...template, algorithm: signer.algorithm });
  const { bytes: signature } = await signer.sign(tbs);
  const certificate = assembleCertificate(tbs, signature, signer.algorithm);
  const faults = checkCaCertificate(certificate, template.spki);
  if (template.issuer !== undefined && !isSignedBy(certificate, template.issuer))
    faults.push('the signature of its issuer does not verify');
  if (faults.length === 0) {
    // Imported only here, because it takes longer to load than the rest of the command line.
    const { certificateDifferences } = await import('./second-reader.ts');
    faults.push(...(await certificateDifferences(certificate, template)));
  }
  if (faults.length > 0) throw new Error(`the new CA certificate is not usable: ${faults.join('; ')}`);
  return certificate;
}

function isSignedBy(certificate: Uint8Array, issuer: Uint8Array): boolean {
  return new X509Certificate(certificate).verify(new X509Certificate(issuer).publicKey);
}
