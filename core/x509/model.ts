import type { PemBlock } from '../encoding/pem.ts';

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
