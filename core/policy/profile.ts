import type { KeyKind } from '../x509/model.ts';
import type { AddressRange } from './patterns.ts';
import type { Reserved } from './reserved-names.ts';

/** The rule sets a signer can follow; the four in-tree ones are fixed by Kubernetes, `custom` by the operator. */
export type ProfileKind =
  'kube-apiserver-client' | 'kube-apiserver-client-kubelet' | 'kubelet-serving' | 'legacy-unknown' | 'custom';

/** What one signer permits, resolved: every default filled in, every pattern checked. Made by core/configuration/parse.ts. */
export interface Profile {
  readonly signerName: string;
  readonly kind: ProfileKind;
  /** The CA's name in the same cluster. */
  readonly ca: string;
  /** At least 60. */
  readonly maxTtlSeconds: number;
  readonly keys: readonly KeyKind[];
  /** Reserved common names and organizations that this signer may give all the same; never node names. */
  readonly allowReserved: readonly string[];
  readonly reserved: Reserved;
  /** Whom the subject may name. Not for the kubelet signers, which have rules of their own. */
  readonly subject: SubjectLimits;
  /**
   * Patterns of core/policy/patterns.ts; one match among users or groups is enough.
   * Both empty = every requester whose request is approved.
   */
  readonly requester: {
    readonly users: readonly string[];
    readonly groups: readonly string[];
    /** Besides them exactly the node itself: user `system:node:<CN>` with group `system:nodes`. */
    readonly nodeItself?: true;
  };
  readonly attestation?: ProfileAttestation;
  /** A key that was certified before is refused (`KeyReused`). */
  readonly freshKeys?: true;
  /** Only for `kubelet-serving`: exact reserved subjectAltNames that it gives all the same; DNS names in lower case. */
  readonly allowReservedSans?: readonly string[];
  /** Only for `custom`. */
  readonly custom?: CustomRules;
}

/** Patterns of core/policy/patterns.ts. None of them ever permits a reserved name. */
export interface SubjectLimits {
  /** Absent = any name that is not reserved; an operator's own signer always has both lists. */
  readonly commonNames?: readonly string[];
  readonly organizations?: readonly string[];
  readonly commonNameRequired?: true;
}

/** Patterns of core/policy/patterns.ts; an empty list permits none of that kind. */
export interface CustomRules {
  readonly usages: { readonly allowed: readonly string[]; readonly required: readonly string[] };
  readonly sans: {
    readonly dns: readonly string[];
    readonly email: readonly string[];
    readonly ip: readonly AddressRange[];
    readonly uri: readonly string[];
    /** At least one name of any type. */
    readonly required: boolean;
  };
}

/** Of a profile. Absent = its requests are not attested. */
export interface ProfileAttestation {
  /** Names of providers whose evidence counts, as on the wire. At least one. */
  readonly providers: readonly string[];
  /** `false`: a request that brings no evidence is answered as one of an unattested profile. */
  readonly required: boolean;
  /** `audit`: evidence that fails is counted, and refuses nothing. */
  readonly mode: 'enforce' | 'audit';
  /** Whether the relay, as approver, also sends a SubjectAccessReview to the API server, with resource names of our own. */
  readonly subjectAccessReview: boolean;
}
