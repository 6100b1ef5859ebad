// Written by `npm run api` from the schema of countersign.yaml. Do not edit.
import type { AwsAttestation } from './providers/aws.ts';
import type { TpmAttestation } from './providers/tpm.ts';
import type { X509Attestation } from './providers/x509.ts';
import type { GceAttestation } from './providers/gce.ts';
import type { GceVtpmAttestation } from './providers/gce-vtpm.ts';

/** The proof of the machine that a signer needs. */
export interface ProfileAttestation {
  /**
   * Whose evidence counts. Required; under `cluster.x-k8s.io/` the name of the signer says it. `insecure` has a
   * signer of its own.
   *
   * @default - none
   */
  readonly providers?: readonly ('aws' | 'aws-nitrotpm' | 'tpm' | 'x509' | 'gce' | 'gce-vtpm' | 'insecure')[];

  /**
   * Whether a request without evidence is refused. `false`: it is answered as if nothing were attested here.
   *
   * @default - true
   */
  readonly required?: boolean;

  /**
   * `audit`: failed evidence is recorded, but refuses and registers nothing; valid evidence is a first use. For
   * clusters that are being moved to attestation.
   *
   * @default - enforce
   */
  readonly mode?: 'enforce' | 'audit';

  /**
   * Values that the platform configuration registers of the TPM must have. Only for providers with a TPM.
   *
   * @default - none
   */
  readonly pcrs?: PcrPolicy;

  /**
   * Whether the relay, where it approves, also sends a SubjectAccessReview to the API server
   * (`countersign-nodeclient` …). Only with `approval: approve`.
   *
   * @default - false
   */
  readonly subjectAccessReview?: boolean;
}

/** What the platform configuration registers of a TPM must hold. */
export interface PcrPolicy {
  /**
   * The bank of the values.
   *
   * @default - sha256
   */
  readonly bank?: 'sha256';

  /**
   * The values that each PCR may have, by its index.
   *
   * @default - none
   */
  readonly values?: Readonly<Record<string, readonly string[]>>;

  /**
   * The events that lead to `values`, by the index of the PCR: for each recorded boot the list of its events, as
   * `countersign machines pcrs` prints them. They permit nothing: with them a refusal names the first event that
   * differs.
   *
   * @default - none
   */
  readonly events?: Readonly<Record<string, readonly (readonly string[])[]>>;
}

/** Which machines may join. */
export interface ClusterAttestation {
  /**
   * A name only this deployment has, part of every proof: evidence made for another deployment is refused.
   *
   * @default - `<account>/<region>/<cluster>` where `aws` names both, otherwise required
   */
  readonly audience?: string;

  /**
   * Which instances of EC2 may join. Required where a profile takes evidence of `aws` or `aws-nitrotpm`: one policy
   * for both.
   *
   * @default - none
   */
  readonly aws?: AwsAttestation;

  /**
   * Which machines with a TPM may join. Required where a profile takes evidence of `tpm`.
   *
   * @default - none
   */
  readonly tpm?: TpmAttestation;

  /**
   * Which machines with a certificate of a PKI of yours may join. Required where a profile takes evidence of
   * `x509`.
   *
   * @default - none
   */
  readonly x509?: X509Attestation;

  /**
   * Which VMs of Google may join. Required where a profile takes evidence of `gce`.
   *
   * @default - none
   */
  readonly gce?: GceAttestation;

  /**
   * Which Shielded VMs of Google may join. Required where a profile takes evidence of `gce-vtpm`.
   *
   * @default - none
   */
  readonly 'gce-vtpm'?: GceVtpmAttestation;

  /**
   * Whether attest retires machines that EC2 reports as terminated twice, every 10 minutes and when a caller
   * reports a removed node. A retired machine loses its node name after one hour, and gets no certificate from then
   * on.
   *
   * @default - true
   */
  readonly retireTerminated?: boolean;

  /**
   * Objects that must stand behind each machine, besides its evidence. `clusterApi`: a Machine or MachinePool of
   * Cluster API, which the relay looks up. See docs/cluster-api.md.
   *
   * @default - none
   */
  readonly machines?: 'clusterApi';

  /**
   * The Cluster object whose Machines may join. With `machines: clusterApi` only.
   *
   * @default - the defaults of its properties
   */
  readonly clusterApi?: ClusterApiReference;

  /**
   * Addresses that no platform knows of (VIPs, secondary networks): CIDR blocks. Each belongs to the machine that
   * asks first.
   *
   * @default - none
   */
  readonly addressRanges?: readonly string[];
}

/** The Cluster object of Cluster API whose Machines may join. */
export interface ClusterApiReference {
  /**
   * Name of the Cluster object.
   *
   * @default - the name of this cluster
   */
  readonly cluster?: string;

  /**
   * Namespace of the Cluster object and its Machines.
   *
   * @default - default
   */
  readonly namespace?: string;
}
