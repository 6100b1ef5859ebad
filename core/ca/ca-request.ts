/**
 * The request for a CA certificate (PKCS#10, RFC 2986) that another CA signs. It asks for what checkImport demands of the
 * certificate: keyUsage, basicConstraints and subjectKeyIdentifier, as extensionRequest (RFC 2985 §5.4.2).
 */
import { explicit, integer, objectIdentifier, sequence, setOf } from '../encoding/der-writer.ts';
import { encodeCaSubject } from '../x509/ca-certificate.ts';
import type { CaSubject } from '../x509/ca-certificate.ts';
import { extensionRequestType } from '../x509/certificate-request.ts';
import { basicConstraintsExtension, caUsage, subjectKeyIdentifierExtension } from '../x509/tbs-certificate.ts';

export interface CaRequestTemplate {
  readonly subject: CaSubject;
  /** DER SubjectPublicKeyInfo of the CA key. */
  readonly spki: Uint8Array;
  readonly pathLength: number;
}

/** CertificationRequestInfo, which the CA key signs. */
export function buildCaRequest({ subject, spki, pathLength }: CaRequestTemplate): Uint8Array {
  const extensions = sequence(caUsage, basicConstraintsExtension({ pathLength }), subjectKeyIdentifierExtension(spki));
  const attribute = sequence(objectIdentifier(extensionRequestType), setOf(extensions));
  // attributes [0] IMPLICIT SET OF Attribute: with one attribute it has the bytes of an explicit tag.
  return sequence(integer(0), encodeCaSubject(subject), spki, explicit(0, attribute));
}
