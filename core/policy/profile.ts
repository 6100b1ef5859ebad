import type { KeyKind } from '../x509/model.ts';
import type { AddressRange } from './patterns.ts';
import type { Reserved } from './reserved-names.ts';

/** Which rules apply to a signer. Kubernetes defines the rules of the first four kinds, the operator those of `custom`. */
export type ProfileKind =
  'kube-apiserver-client' | 'kube-apiserver-client-kubelet' | 'kubelet-serving' | 'legacy-unknown' | 'custom';

/** What one signer permits, with defaults filled in and patterns checked (core/configuration/parse.ts). */
export interface Profile {
  readonly signerName: string;
  readonly kind: ProfileKind;
  /** The CA's name in the same cluster. */
  readonly ca: string;
  /** At least 60. */
  readonly maxTtlSeconds: number;
  readonly keys: readonly KeyKind[];
  /** Reserved common names and organizations that this signer may issue; never node names. */
  readonly allowReserved: readonly string[];
  readonly reserved: Reserved;
  /** The permitted subjects. Not used by the kubelet signers, which have their own rules. */
  readonly subject: SubjectLimits;
  /**
   * Patterns of core/policy/patterns.ts; one match among users or groups is enough.
   * Both empty = every requester whose request is approved.
   */
  readonly requester: {
    readonly users: readonly string[];
    readonly groups: readonly string[];
    /** Also permits the node in the certificate: user `system:node:<CN>` with group `system:nodes`. */
    readonly nodeItself?: true;
  };
  readonly attestation?: ProfileAttestation;
  /**
   * Only for `kube-apiserver-client-kubelet` without attestation: the blocks of gke-exec-auth-plugin may follow the certificate
   * request, and are read but prove nothing.
   */
  readonly requestBlocks?: 'gce-vtpm';
  /** A key that was certified before is refused (`KeyReused`). */
  readonly freshKeys?: true;
  /** Only for `kubelet-serving`: reserved subjectAltNames that it may issue, without patterns; DNS names in lower case. */
  readonly allowReservedSans?: readonly string[];
  /** Only for `custom`. */
  readonly custom?: CustomRules;
}

/** Patterns of core/policy/patterns.ts. A pattern does not permit a reserved name. */
export interface SubjectLimits {
  /** Absent = any name that is not reserved. A custom signer always has both lists. */
  readonly commonNames?: readonly string[];
  readonly organizations?: readonly string[];
  readonly commonNameRequired?: true;
}

/** Patterns of core/policy/patterns.ts; an empty list permits nothing. */
export interface CustomRules {
  readonly usages: { readonly allowed: readonly string[]; readonly required: readonly string[] };
  readonly sans: {
    readonly dns: readonly string[];
    readonly email: readonly string[];
    readonly ip: readonly AddressRange[];
    readonly uri: readonly string[];
    /** Whether the request must have at least one name of any type. */
    readonly required: boolean;
  };
}

/** The attestation settings of a profile. Without them its requests are not attested. */
export interface ProfileAttestation {
  /** Names of the accepted providers. At least one. */
  readonly providers: readonly string[];
  /** `false`: a request without evidence needs no attestation. */
  readonly required: boolean;
  /** `audit`: failed attestation is recorded, but does not refuse the request. */
  readonly mode: 'enforce' | 'audit';
  /** The values that PCRs must have, for providers with a TPM. */
  readonly pcrs?: PcrPolicy;
  /** Whether the relay, as approver, also sends a SubjectAccessReview to the API server, with resource names of our own. */
  readonly subjectAccessReview: boolean;
}

/** TPM 2.0 Part 1, 17: platform configuration registers of one bank. */
export interface PcrPolicy {
  readonly bank: 'sha256';
  /** The permitted values (lower-case hex) by PCR index. */
  readonly values: Readonly<Record<string, readonly string[]>>;
  /**
   * Recorded boots by PCR index, each a list of its events, and each event its digest (lower-case hex), a blank and its name. Only for
   * the message of a refusal.
   */
  readonly events?: Readonly<Record<string, readonly (readonly string[])[]>>;
}
