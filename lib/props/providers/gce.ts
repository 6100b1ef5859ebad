// Written by `npm run api` from the schema of countersign.yaml. Do not edit.

/** Which VMs of Google may join. */
export interface GceAttestation {
  /**
   * Projects whose VMs may join: the id of each by its number, in quotes. Google is asked about no other project.
   */
  readonly projects: Readonly<Record<string, string>>;

  /**
   * How the attest function logs in to Google, which then describes each VM.
   */
  readonly federation: GceFederation;

  /**
   * Labels the VM must have, all of them; value `*` = any. A principal that may label VMs decides which VMs join. A
   * project alone admits every VM in it, so one of `labels`, `serviceAccounts` and `machines: listed` is required.
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
   * `listed`: only VMs that `countersign machines allow` names, as `gce#<project number>/<zone>/<instance id>`.
   *
   * @default - any
   */
  readonly machines?: 'any' | 'listed';

  /**
   * What a VM may be called, any of them: a template of `{name}`, `{zone}` and `{project}` (its id), such as
   * `{name}.{zone}.c.{project}.internal`; or `pattern:<name with *>`: any such name, first come, first served.
   *
   * @default - {name}
   */
  readonly nodeName?: readonly string[];
}

/** How the attest function logs in to Google. */
export interface GceFederation {
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
