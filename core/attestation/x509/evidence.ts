/** The DATA block of x509 evidence (docs/attestation/x509.md). */
import { readEvidence } from '../../encoding/strict-json.ts';
import { failure, success } from '../../outcome/result.ts';
import type { Result } from '../../outcome/result.ts';
import type { Instant } from '../../ports/instant.ts';
import { decodeCertificate } from '../../x509/chain/chain-certificate.ts';
import type { ChainCertificate } from '../../x509/chain/chain-certificate.ts';

/** What is known of the provider before it is loaded (providers.ts). */
export const x509Facts = { name: 'x509', versions: ['x509/v1'], secure: true } as const;

export interface X509Evidence {
  /** The certificate of the machine. */
  readonly leaf: ChainCertificate;
  /** CA certificates between it and a root, in any order. */
  readonly intermediates: readonly ChainCertificate[];
  readonly signature: Uint8Array;
  readonly algorithm: string;
  readonly nonce: string;
  /** When the node made the signature, as the nonce says. */
  readonly signedAt: Instant;
}

/** The certificate of the machine and five CAs. Each certificate costs a verification. */
export const mostCertificates = 6;
/** An RSA signature with a key of 8192 bits. */
const maxSignatureBytes = 1_024;

export const signatureLife = 5 * 60_000;
/** How far the clock of the node may be ahead. */
const aheadMilliseconds = 60_000;

/** The problem is a whole clause: `the attestation data has an unknown key`. */
export function readX509Evidence(data: Uint8Array, now: Instant): Result<X509Evidence, string> {
  const read = readEvidence(data, { required: ['v', 'chain', 'signature', 'algorithm', 'nonce'] });
  if (!read.ok) return wrongData(read.problem);
  const { v, chain, signature, algorithm, nonce } = read.value;
  if (v !== 1) return wrongData('is not of x509/v1');
  const signatureBytes = base64(signature);
  if (signatureBytes === undefined || signatureBytes.length > maxSignatureBytes)
    return wrongData('has a signature that is not base64');
  if (typeof algorithm !== 'string') return wrongData('has an algorithm that is not text');
  const [nonceText, milliseconds] =
    /^([1-9][0-9]{12})\.[A-Za-z0-9_-]{16,128}$/.exec(typeof nonce === 'string' ? nonce : '') ?? [];
  if (nonceText === undefined) return wrongData('has an invalid nonce');
  const signedAt = Number(milliseconds);
  if (now - signedAt >= signatureLife) return failure('the signature is older than 5 minutes');
  if (signedAt - now > aheadMilliseconds)
    return failure('the signature is more than a minute ahead of our clock: check the clock of the machine');
  if (!Array.isArray(chain)) return wrongData('has no chain of certificates');
  if (chain.length > mostCertificates) return wrongData(`has more than ${mostCertificates} certificates`);
  const certificates: ChainCertificate[] = [];
  for (const [index, text] of chain.entries()) {
    const der = base64(text);
    const decoded = der === undefined ? failure('is not base64') : decodeCertificate(der);
    if (!decoded.ok) return failure(`certificate ${index + 1} of the chain ${decoded.problem}`);
    certificates.push(decoded.value);
  }
  const [leaf, ...intermediates] = certificates;
  if (leaf === undefined) return wrongData('has no chain of certificates');
  return success({ leaf, intermediates, signature: signatureBytes, algorithm, nonce: nonceText, signedAt });
}

/** The one base64 text of some bytes; `undefined` for any other value. */
function base64(value: unknown): Uint8Array | undefined {
  if (typeof value !== 'string') return undefined;
  const bytes = Buffer.from(value, 'base64');
  return bytes.toString('base64') === value ? bytes : undefined;
}

function wrongData(problem: string): Result<never, string> {
  return failure(`the attestation data ${problem}`);
}
