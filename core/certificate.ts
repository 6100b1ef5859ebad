import type { CertificateRequest } from './csr.ts';
import type { Instant, SignatureAlgorithm, Signer } from './ports.ts';

/** A CA that issues: its certificate, the certificates between it and the root (never the root), and its key. */
export interface Authority {
  /** Its name in countersign.yaml. */
  readonly name: string;
  /** DER. */
  readonly certificate: Uint8Array;
  /** DER, in the order they follow the leaf in `status.certificate`; empty for a self-signed CA. */
  readonly intermediates: readonly Uint8Array[];
  readonly signer: Signer;
}

/** Everything a leaf certificate says, decided before a byte of it is made. */
export interface LeafTemplate {
  readonly request: CertificateRequest;
  readonly usages: readonly string[];
  /** 1–20 octets, positive (RFC 5280 §4.1.2.2). */
  readonly serial: Uint8Array;
  readonly notBefore: Instant;
  readonly notAfter: Instant;
}

export type { SignatureAlgorithm };
