import type { PemBlock } from '../encoding/pem.ts';

export type KeyKind = 'RSA' | 'P-256' | 'P-384' | 'P-521' | 'Ed25519';

export interface PublicKey {
  /** `undefined` for a kind that is read and verified but never certified: P-224. */
  readonly kind: KeyKind | undefined;
  /** For people: `RSA 2048`, `ECDSA P-256`, `Ed25519`, `ECDSA P-224` … */
  readonly description: string;
  readonly bits: number;
  /** DER SubjectPublicKeyInfo exactly as in the request. */
  readonly spki: Uint8Array;
}

/** One subject attribute in the order sent. Only string values; anything else is refused as undecodable. */
export interface SubjectAttribute {
  /** Dotted OID. */
  readonly type: string;
  readonly value: string;
}

export interface Subject {
  readonly attributes: readonly SubjectAttribute[];
  /** As the certificate will carry them (Go's pkix.Name): the last CN, all O in order. */
  readonly commonName: string;
  readonly organizations: readonly string[];
}

export interface SubjectAltNames {
  readonly dns: readonly string[];
  readonly email: readonly string[];
  /** Canonical text: `10.0.0.1`, `2001:db8::1` (RFC 5952); an IPv4-mapped IPv6 address is the IPv4 address. */
  readonly ip: readonly string[];
  readonly uri: readonly string[];
  /** Types of names that are never certified, by their RFC 5280 name: `otherName`, `directoryName`, `registeredID` … */
  readonly unsupported: readonly string[];
}

export interface CertificateRequest {
  readonly der: Uint8Array;
  readonly subject: Subject;
  readonly sans: SubjectAltNames;
  readonly publicKey: PublicKey;
  /** Of the self-signature: `SHA-256`, `SHA-1` …; `undefined` for Ed25519. */
  readonly signatureHash: string | undefined;
  /** Requested extensions by OID, for `csr explain`; none but SAN reaches the certificate. */
  readonly requestedExtensions: readonly string[];
  /**
   * The node's providerID (Cluster API's proposal): extension 1.3.6.1.4.1.11129.2.1.21, a UTF8String. Absent if it does not
   * exist or cannot be read. It only counts together with evidence.
   */
  readonly providerId?: string;
  /** PEM blocks after the request, in order: evidence for attest, ignored by sign. */
  readonly evidence: readonly PemBlock[];
}
