import type { KeyKind } from './csr.ts';

/** The rule sets a signer can follow; the four in-tree ones are fixed by Kubernetes, `custom` by the operator. */
export type ProfileKind =
  'kube-apiserver-client' | 'kube-apiserver-client-kubelet' | 'kubelet-serving' | 'legacy-unknown' | 'custom';

/** What one signer permits, resolved: every default filled in, every pattern checked. Made by core/configuration.ts. */
export interface Profile {
  readonly signerName: string;
  readonly kind: ProfileKind;
  /** The CA's name in the same cluster. */
  readonly ca: string;
  /** At least 60. */
  readonly maxTtlSeconds: number;
  readonly keys: readonly KeyKind[];
  /** `system:` common names and organizations this profile may give; never node names. Empty unless configured. */
  readonly systemNames: readonly string[];
  /** Empty = anybody whom the approver let through. Globs, anchored. */
  readonly requester: { readonly users: readonly string[]; readonly groups: readonly string[] };
  /** Only for `custom`. */
  readonly custom?: CustomRules;
}

/** Anchored globs (`*` = any run of characters); an absent list permits none of that kind. */
export interface CustomRules {
  readonly usages: { readonly allowed: readonly string[]; readonly required: readonly string[] };
  readonly subject: {
    readonly commonNames: readonly string[];
    readonly organizations: readonly string[];
    readonly commonNameRequired: boolean;
  };
  readonly sans: {
    readonly dns: readonly string[];
    readonly email: readonly string[];
    readonly ip: readonly string[];
    readonly uri: readonly string[];
    readonly required: boolean;
  };
}
