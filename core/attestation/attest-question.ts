import type { ClusterAttestation } from '../configuration/model/attestation.ts';
import type { ProfileAttestation } from '../policy/profile.ts';
import type { CertificateRequest } from '../x509/model.ts';
import type { Instant } from '../ports/instant.ts';
import type { AttestContext } from '../ports/signing-endpoint.ts';

/** One request that needs attestation, and everything that the decision depends on. */
export interface AttestQuestion {
  readonly cluster: string;
  readonly settings: ClusterAttestation;
  readonly wanted: ProfileAttestation;
  readonly signerName: string;
  /** Whether it is for a serving certificate; its machine must be registered already. */
  readonly serving: boolean;
  readonly uid: string;
  readonly username: string;
  readonly request: CertificateRequest;
  /** Hex. */
  readonly requestSha256: string;
  readonly nodeName: string;
  /** Hex. */
  readonly spkiSha256: string;
  /** Not trusted: it can only restrict what is allowed. */
  readonly context: AttestContext;
  readonly now: Instant;
}
