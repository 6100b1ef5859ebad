// Written by `npm run api` from the schema of countersign.yaml. Do not edit.
import type { ProfileAttestation } from './attestation-props.ts';

/** Usages, in the words of the Kubernetes API. */
export type KeyUsage =
  | 'signing'
  | 'digital signature'
  | 'content commitment'
  | 'key encipherment'
  | 'data encipherment'
  | 'key agreement'
  | 'cert sign'
  | 'crl sign'
  | 'encipher only'
  | 'decipher only'
  | 'any'
  | 'server auth'
  | 'client auth'
  | 'code signing'
  | 'email protection'
  | 's/mime'
  | 'ipsec end system'
  | 'ipsec tunnel'
  | 'ipsec user'
  | 'timestamping'
  | 'ocsp signing'
  | 'microsoft sgc'
  | 'netscape sgc';

/** What one signer permits. */
export interface ProfileProps {
  /**
   * The CA that signs, by its name under `cas`. May be left out when there is only one.
   *
   * @default - the only CA
   */
  readonly ca?: string;

  /**
   * Longest lifetime, and the lifetime of a request that names none. At least 60s.
   *
   * @default - 30d
   */
  readonly maxTtl?: string;

  /**
   * Kinds of requester keys permitted. RSA means 2048 to 8192 bits, always.
   *
   * @default - RSA, P-256, P-384, P-521, Ed25519
   */
  readonly keys?: readonly ('RSA' | 'P-256' | 'P-384' | 'P-521' | 'Ed25519')[];

  /**
   * Who may ask: one matching user name or group is enough.
   *
   * @default - any requester whose request is approved; where attestation is enforced and under `cluster.x-k8s.io/`
   * the groups `system:bootstrappers` and `system:bootstrappers:*` for client certificates (with provider
   * `gce-vtpm` the user `kubelet-bootstrap`), and only the node itself for serving ones
   */
  readonly requester?: ProfileRequester;

  /**
   * The proof of the machine that a request needs. Kubelet signers only.
   *
   * @default - none
   */
  readonly attestation?: ProfileAttestation;

  /**
   * Whose blocks may follow the certificate request in `spec.request`. `gce-vtpm`: those of gke-exec-auth-plugin
   * and no others. They are read and must certify the requested key, but prove nothing here: the approver judges
   * them. Only for `kubernetes.io/kube-apiserver-client-kubelet` without `attestation`.
   *
   * @default - those of kubelet-authenticator
   */
  readonly requestBlocks?: 'gce-vtpm';

  /**
   * Whether a key that was certified before is refused, so that each certificate has a key of its own.
   *
   * @default - false
   */
  readonly freshKeys?: boolean;

  /**
   * The names that a certificate may hold.
   *
   * @default - the defaults of its properties
   */
  readonly subject?: ProfileSubject;

  /**
   * Key usages, in the words of the Kubernetes API. Own signers only, and required there.
   *
   * @default - none
   */
  readonly usages?: ProfileUsages;

  /**
   * Subject alternative names; a type without a list is not permitted. All but `allowReserved`: own signers only.
   *
   * @default - the defaults of its properties
   */
  readonly sans?: ProfileSans;
}

/** Who may ask for certificates of a signer. */
export interface ProfileRequester {
  /**
   * User names, `*` = any run of characters.
   *
   * @default - none
   */
  readonly users?: readonly string[];

  /**
   * Groups of which the requester must have one, `*` = any run of characters.
   *
   * @default - none
   */
  readonly groups?: readonly string[];

  /**
   * Whether the node itself may ask besides them: user `system:node:<name>` for that very name, in group
   * `system:nodes`. Kubelet signers only.
   *
   * @default - true where attestation is enforced and for `…-aws` signers, false elsewhere
   */
  readonly nodeItself?: boolean;
}

/** The names that a certificate may hold. */
export interface ProfileSubject {
  /**
   * Common names permitted, `*` = any run of characters; never reserved names. Not for the kubelet signers.
   *
   * @default - any that is not reserved, for own signers none
   */
  readonly commonNames?: readonly string[];

  /**
   * Organizations permitted, likewise.
   *
   * @default - as for `commonNames`
   */
  readonly organizations?: readonly string[];

  /**
   * Whether a request without a common name is refused. Own signers only.
   *
   * @default - false
   */
  readonly commonNameRequired?: boolean;

  /**
   * Exact reserved names that this signer may give as common name or organization; never node names. Not for the
   * kubelet signers.
   *
   * @default - none
   */
  readonly allowReserved?: readonly string[];
}

/** Key usages of a signer. */
export interface ProfileUsages {
  /**
   * Usages a request may ask for.
   */
  readonly allowed: readonly KeyUsage[];

  /**
   * Usages a request must ask for.
   *
   * @default - none
   */
  readonly required?: readonly KeyUsage[];
}

/** Subject alternative names of a signer. */
export interface ProfileSans {
  /**
   * DNS names permitted. `*` = any run of characters; a wildcard name only by the very same pattern.
   *
   * @default - none
   */
  readonly dns?: readonly string[];

  /**
   * Mail addresses permitted. `*` never covers an `@`.
   *
   * @default - none
   */
  readonly email?: readonly string[];

  /**
   * Addresses and CIDR blocks permitted.
   *
   * @default - none
   */
  readonly ip?: readonly string[];

  /**
   * URIs permitted. `*` never covers any of `/ ? # @ \ %`.
   *
   * @default - none
   */
  readonly uri?: readonly string[];

  /**
   * Whether a request without any subjectAltName is refused.
   *
   * @default - false
   */
  readonly required?: boolean;

  /**
   * Exact DNS names and addresses that kubelets may serve under although they are reserved or not host names.
   * Kubelet serving signers only.
   *
   * @default - none
   */
  readonly allowReserved?: readonly string[];
}
