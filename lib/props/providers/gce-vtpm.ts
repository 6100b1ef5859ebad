// Written by `npm run api` from the schema of countersign.yaml. Do not edit.

/** Which Shielded VMs of Google may join. */
export interface GceVtpmAttestation {
  /**
   * Projects whose VMs may join: the id of each by its number, in quotes. Google is asked about no other project.
   */
  readonly projects: Readonly<Record<string, string>>;

  /**
   * How the attest function logs in to Google, which then describes each VM.
   *
   * @default - only the VMs of `instances` may join
   */
  readonly federation?: GoogleFederation;

  /**
   * Labels the VM must have, all of them; value `*` = any. A principal that may label VMs decides which VMs join. A
   * project alone admits every Shielded VM in it, so with `federation` one of `labels`, `serviceAccounts` and
   * `machines: listed` is required.
   *
   * @default - none
   */
  readonly labels?: Readonly<Record<string, string>>;

  /**
   * Service accounts, by mail address, of which the VM must run as one.
   *
   * @default - none
   */
  readonly serviceAccounts?: readonly string[];

  /**
   * `listed`: only VMs that `countersign machines allow` names, as `gce-vtpm#<project number>/<zone>/<instance
   * id>`.
   *
   * @default - any
   */
  readonly machines?: 'any' | 'listed';

  /**
   * VMs whose signing keys the operator vouches for. Google is not asked about them.
   *
   * @default - none
   */
  readonly instances?: readonly PinnedVm[];

  /**
   * Root certificates (PEM) under which an attestation certificate must be, where a request has one. Without roots
   * its key must be that of the VM, and who issued it does not matter.
   *
   * @default - none
   */
  readonly roots?: readonly string[];

  /**
   * Intermediate CA certificates (PEM) between attestation certificates and `roots`.
   *
   * @default - none
   */
  readonly intermediates?: readonly string[];

  /**
   * Whether a VM on record may come with another key. `refused`: only after `countersign tofu reset`, because a
   * request proves no time. `attested`: if its vTPM certified the key later than the last one, by the clock of the
   * vTPM. gke-exec-auth-plugin makes a new key every ten days.
   *
   * @default - refused
   */
  readonly newKeys?: 'refused' | 'attested';
}

/** How the attest function logs in to Google. */
export interface GoogleFederation {
  /**
   * The AWS provider of a workload identity pool that admits the role of the attest function.
   */
  readonly provider: string;

  /**
   * The service account that then reads the VMs.
   *
   * @default - the identity of the pool reads them itself
   */
  readonly serviceAccount?: string;
}

/** A VM whose signing key the operator vouches for. */
export interface PinnedVm {
  /**
   * Number of the project, in quotes.
   */
  readonly project: string;

  /**
   * Zone of the VM.
   */
  readonly zone: string;

  /**
   * Instance id, in quotes.
   */
  readonly id: string;

  /**
   * Name of the VM, which is the name of its node.
   */
  readonly name: string;

  /**
   * The key with which its vTPM signs: `signingKey.ekPub` of its Shielded Instance Identity (PEM).
   */
  readonly signingKey: string;

  /**
   * Addresses that a serving certificate of the node may hold.
   *
   * @default - none
   */
  readonly addresses?: readonly string[];

  /**
   * DNS names that a serving certificate may hold besides the name of the node. In lower case.
   *
   * @default - none
   */
  readonly dnsNames?: readonly string[];
}
