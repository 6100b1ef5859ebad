import { derNull, explicit, integer, objectIdentifier, sequence } from '../encoding/der-writer.ts';
import type { PemBlock } from '../encoding/pem.ts';
import type { SignatureAlgorithm } from '../ports/signer.ts';

export type KeyKind = 'RSA' | 'P-256' | 'P-384' | 'P-521' | 'Ed25519';

export interface PublicKey {
  /** `undefined` for P-224, which is read and verified but never certified. */
  readonly kind: KeyKind | undefined;
  /** For messages: `RSA 2048`, `ECDSA P-256`, `Ed25519`, `ECDSA P-224` … */
  readonly description: string;
  readonly bits: number;
  /** DER SubjectPublicKeyInfo exactly as in the request. */
  readonly spki: Uint8Array;
}

/** One attribute of the subject. A value that is not a string makes the request malformed. */
export interface SubjectAttribute {
  /** Dotted OID. */
  readonly type: string;
  readonly value: string;
}

export interface Subject {
  /** In the order of the request. */
  readonly attributes: readonly SubjectAttribute[];
  /** As in the certificate (Go's pkix.Name): the last CN, and all O in the order of the request. */
  readonly commonName: string;
  readonly organizations: readonly string[];
}

export interface SubjectAltNames {
  readonly dns: readonly string[];
  readonly email: readonly string[];
  /** Canonical text: `10.0.0.1`, `2001:db8::1` (RFC 5952); an IPv4-mapped IPv6 address is the IPv4 address. */
  readonly ip: readonly string[];
  readonly uri: readonly string[];
  /** The types of names that are never certified, named as in RFC 5280: `otherName`, `directoryName`, `registeredID` … */
  readonly unsupported: readonly string[];
}

export interface CertificateRequest {
  readonly der: Uint8Array;
  readonly subject: Subject;
  readonly sans: SubjectAltNames;
  readonly publicKey: PublicKey;
  /** The hash of the self-signature: `SHA-256`, `SHA-1` …; `undefined` for Ed25519. */
  readonly signatureHash: string | undefined;
  /** OIDs of the requested extensions, for `csr explain`. The certificate uses only SAN. */
  readonly requestedExtensions: readonly string[];
  /**
   * The node's providerID (Cluster API's proposal): extension 1.3.6.1.4.1.11129.2.1.21, a UTF8String. Absent if the extension
   * does not exist or cannot be read. Used only together with evidence.
   */
  readonly providerId?: string;
  /** PEM blocks after the request, in order: evidence for attest, ignored by sign. */
  readonly evidence: readonly PemBlock[];
}

/** OIDs; RFC 5280 §4.2.1. */
export const extensionType = {
  subjectKeyIdentifier: '2.5.29.14',
  keyUsage: '2.5.29.15',
  subjectAltName: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  crlDistributionPoints: '2.5.29.31',
  authorityKeyIdentifier: '2.5.29.35',
  extKeyUsage: '2.5.29.37',
} as const;

/** AlgorithmIdentifiers: ECDSA has no parameters (RFC 5758 §3.2), RSA has NULL, PSS has RSASSA-PSS-params (RFC 4055). */
export const algorithmIdentifiers: Readonly<Record<SignatureAlgorithm, Uint8Array>> = {
  ECDSA_SHA_256: sequence(objectIdentifier('1.2.840.10045.4.3.2')),
  ECDSA_SHA_384: sequence(objectIdentifier('1.2.840.10045.4.3.3')),
  ECDSA_SHA_512: sequence(objectIdentifier('1.2.840.10045.4.3.4')),
  RSASSA_PKCS1_V1_5_SHA_256: sequence(objectIdentifier('1.2.840.113549.1.1.11'), derNull),
  RSASSA_PKCS1_V1_5_SHA_384: sequence(objectIdentifier('1.2.840.113549.1.1.12'), derNull),
  RSASSA_PKCS1_V1_5_SHA_512: sequence(objectIdentifier('1.2.840.113549.1.1.13'), derNull),
  RSASSA_PSS_SHA_256: encodePss('2.16.840.1.101.3.4.2.1', 32),
  RSASSA_PSS_SHA_384: encodePss('2.16.840.1.101.3.4.2.2', 48),
  RSASSA_PSS_SHA_512: encodePss('2.16.840.1.101.3.4.2.3', 64),
};

/** RSASSA-PSS-params with this hash (SHA-256, SHA-384, SHA-512), the same in MGF1, and a salt as long as the hash. */
function encodePss(digestOid: string, saltLength: number): Uint8Array {
  const digest = sequence(objectIdentifier(digestOid), derNull);
  const maskGeneration = sequence(objectIdentifier('1.2.840.113549.1.1.8'), digest);
  const salt = integer(saltLength);
  const parameters = sequence(explicit(0, digest), explicit(1, maskGeneration), explicit(2, salt));
  return sequence(objectIdentifier('1.2.840.113549.1.1.10'), parameters);
}
