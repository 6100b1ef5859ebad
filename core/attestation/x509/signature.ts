/**
 * The signature in x509 evidence: by the key of the machine's certificate, over the binding digest. The bytes before the digest make
 * it useless to every other protocol that signs with this key (TLS, JWT, CMS).
 */
import { constants, createHash, verify } from 'node:crypto';
import type { KeyKind } from '../../x509/model.ts';
import type { CertificateKey } from '../../x509/chain/chain-certificate.ts';

/** One algorithm for each kind of key, so that a signature can be read in one way only. The names are those of KMS. */
export const algorithmsByKey = {
  RSA: 'RSASSA_PSS_SHA_256',
  'P-256': 'ECDSA_SHA_256',
  'P-384': 'ECDSA_SHA_384',
  'P-521': 'ECDSA_SHA_512',
  Ed25519: 'ED25519',
} as const satisfies Readonly<Record<KeyKind, string>>;

type ProofAlgorithm = (typeof algorithmsByKey)[KeyKind];

/** node:crypto's digests; Ed25519 has its own. */
const digests: Readonly<Record<ProofAlgorithm, string | undefined>> = {
  RSASSA_PSS_SHA_256: 'sha256',
  ECDSA_SHA_256: 'sha256',
  ECDSA_SHA_384: 'sha384',
  ECDSA_SHA_512: 'sha512',
  ED25519: undefined,
};

/** `binding`: B in hex (binding-digest.ts). */
export function signedContent(binding: string): Buffer {
  return Buffer.concat([Buffer.from('csr-attest/x509/v1\0', 'latin1'), Buffer.from(binding, 'hex')]);
}

/** The arguments of node:crypto's `sign` and `verify`. ECDSA signatures are DER; the salt of PSS is as long as the digest. */
export function signatureParameters<Key>(algorithm: ProofAlgorithm, key: Key) {
  const pss = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 32 };
  return { digest: digests[algorithm], key: { key, ...(algorithm === 'RSASSA_PSS_SHA_256' ? pss : {}) } };
}

export function isSigned(content: Uint8Array, { kind, keyObject }: CertificateKey, signature: Uint8Array): boolean {
  const { digest, key } = signatureParameters(algorithmsByKey[kind], keyObject);
  try {
    return verify(digest, content, key, signature);
  } catch {
    // OpenSSL throws for some damaged signatures.
    return false;
  }
}

/**
 * Identifies a proof: what was signed, and the key. The bytes of the signature do not, because a signature can be changed into
 * another valid one. With the key, another machine that signs the same content cannot spend this machine's proof.
 */
export function proofId(content: Uint8Array, { spki }: CertificateKey): string {
  return createHash('sha256').update(content).update(spki).digest('hex');
}
