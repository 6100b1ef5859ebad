/**
 * The endorsement key (EK) of a TPM: it decrypts and never signs, and it names the machine. Its SubjectPublicKeyInfo has one
 * accepted encoding (core/x509/public-key.ts), so that one key has one name.
 */
import type { KeyObject } from 'node:crypto';
import { sha256 } from '../../encoding/digest.ts';
import { failure, success } from '../../outcome/result.ts';
import type { Result } from '../../outcome/result.ts';
import { decodeSpki } from '../../x509/public-key.ts';
import { readCertificate } from '../../x509/read-certificate.ts';
import type { CertificateFacts } from '../../x509/read-certificate.ts';
import type { TpmEvidence } from './evidence.ts';

export interface EndorsementKey {
  readonly kind: EndorsementKeyKind;
  /** DER. */
  readonly spki: Uint8Array;
  /** SHA-256 of `spki`, lower-case hex: the name of the machine, and of the key on the operator's lists. */
  readonly hash: string;
  readonly key: KeyObject;
  /** Present if the evidence holds a certificate. Not verified (ek-certificate.ts does that). */
  readonly certificate?: { readonly der: Uint8Array; readonly facts: CertificateFacts };
}

/** The default templates L-1, L-2 and H-3 of TCG's EK Credential Profile. */
export type EndorsementKeyKind = 'RSA-2048' | 'P-256' | 'P-384';

/** The problem completes `the endorsement key …`. */
export function decodeEndorsementKey({ kind, der }: TpmEvidence['endorsementKey']): Result<EndorsementKey, string> {
  if (kind === 'spki') return keyOf(der);
  const read = readCertificate(der);
  if (!read.ok) return failure('has a certificate that is not X.509 v3 in DER');
  const key = keyOf(read.value.spki);
  return key.ok ? success({ ...key.value, certificate: { der, facts: read.value } }) : key;
}

function keyOf(spki: Uint8Array): Result<EndorsementKey, string> {
  const decoded = decodeSpki(spki);
  if (!decoded.ok) return failure('cannot be decoded');
  const { publicKey, keyObject } = decoded.value;
  // Only RSA keys have so many bits.
  const kind = publicKey.bits === 2048 ? 'RSA-2048' : publicKey.kind;
  if (kind !== 'RSA-2048' && kind !== 'P-256' && kind !== 'P-384')
    return failure('is not an RSA key of 2048 bits or on P-256 or P-384');
  return success({ kind, spki, hash: sha256(spki).toString('hex'), key: keyObject });
}
