/** Has a CRL signed, and checks the result as a relying party would. */
import { constants, verify } from 'node:crypto';
import { bitString, sequence } from '../encoding/der-writer.ts';
import { signatureDigests } from '../ports/signer.ts';
import type { Signature } from '../ports/signer.ts';
import { issuerOf } from '../x509/leaf-certificate.ts';
import type { Authority } from '../x509/leaf-certificate.ts';
import { algorithmIdentifiers, extensionType } from '../x509/model.ts';
import { buildCrlTbs } from './crl.ts';
import type { CrlTemplate } from './crl.ts';

export interface SignedCrl {
  /** DER CertificateList. */
  readonly der: Uint8Array;
  /** The KMS request that made the signature. Absent if the key is not in KMS. */
  readonly kmsRequestId?: string;
}

/** The CA must be one that may sign CRLs. Throws if the signature is not that of its key. */
export async function issueCrl(template: CrlTemplate, authority: Authority): Promise<SignedCrl> {
  const { signer } = authority;
  const tbs = buildCrlTbs(template, authority);
  const signature = await signer.sign(tbs);
  if (!verifies(tbs, signature, authority))
    throw new Error(`the signature of the CRL is not made with the key of CA ${authority.name}`);
  const der = sequence(tbs, algorithmIdentifiers[signer.algorithm], bitString(signature.bytes));
  return { der, ...(signature.requestId === undefined ? {} : { kmsRequestId: signature.requestId }) };
}

const crlSign = 6;

/** RFC 5280 §4.2.1.3: relying parties refuse the CRL of a CA whose keyUsage lacks cRLSign. Without keyUsage all uses are allowed. */
export function maySignCrls(authority: Authority): boolean {
  const keyUsage = issuerOf(authority).facts.extensions.get(extensionType.keyUsage)?.value;
  // DER of the BIT STRING: tag, length, unused bits, then the bits 0 to 7.
  return keyUsage === undefined || ((keyUsage[3] ?? 0) & (0x80 >> crlSign)) !== 0;
}

function verifies(tbs: Uint8Array, { bytes }: Signature, authority: Authority): boolean {
  const { algorithm } = authority.signer;
  const key = issuerOf(authority).certificate.publicKey;
  const padding = algorithm.startsWith('RSASSA_PSS')
    ? { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST }
    : {};
  return verify(signatureDigests[algorithm], tbs, { key, ...padding }, bytes);
}
