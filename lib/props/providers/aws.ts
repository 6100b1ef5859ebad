// Written by `npm run api` from the schema of countersign.yaml. Do not edit.

/** Which instances of EC2 may join. */
export interface AwsAttestation {
  /**
   * Accounts, in quotes, whose instances may join. Nothing is asked of AWS about any other.
   */
  readonly accounts: Readonly<Record<string, AwsAccount>>;

  /**
   * Regions whose instances may join.
   */
  readonly regions: readonly string[];

  /**
   * VPCs, of which the instance must be in one.
   *
   * @default - none
   */
  readonly vpcs?: readonly string[];

  /**
   * Subnets, of which the instance must be in one.
   *
   * @default - none
   */
  readonly subnets?: readonly string[];

  /**
   * Tags the instance must have, all of them; value `*` = any. A principal that may tag instances decides which
   * instances join. An account alone admits every instance in it, so at least one of `tags`, `vpcs`, `subnets`,
   * `instanceProfiles` and `roles` is required.
   *
   * @default - none
   */
  readonly tags?: Readonly<Record<string, string>>;

  /**
   * Instance profiles, of which the instance must have one: names or ARNs, `*` = any run of characters.
   *
   * @default - none
   */
  readonly instanceProfiles?: readonly string[];

  /**
   * Node roles whose sessions count as proof. Only, and required, with `requireIdentityRole: false`.
   *
   * @default - none
   */
  readonly roles?: readonly string[];

  /**
   * What an instance may be called, any of them. `privateDnsName`, `privateDnsLabel` (its first label),
   * `instanceId`, `tag:<key>`: as EC2 says; `pattern:<name with *>`: any such name, first come, first served.
   */
  readonly nodeName: readonly string[];

  /**
   * Whether the node must prove itself with the instance identity role of EC2, whose session name no principal can
   * choose.
   *
   * @default - true
   */
  readonly requireIdentityRole?: boolean;

  /**
   * Whether nodes may still prove themselves with evidence `aws/v1`, which carries the signed identity document.
   * Set `false` when every node sends `aws/v2` (`countersign report` counts both). Without `requireIdentityRole`,
   * `aws/v1` is the only version.
   *
   * @default - true
   */
  readonly acceptV1?: boolean;

  /**
   * `listed`: only instances that `countersign machines allow` names.
   *
   * @default - any
   */
  readonly machines?: 'any' | 'listed';

  /**
   * Whether an instance that was stopped and started may come back with a new key. Weak: a principal that can stop
   * an instance can read its disk.
   *
   * @default - false
   */
  readonly allowRestart?: boolean;

  /**
   * With `allowRestart`: for how long after the launch time that EC2 reports the new key is taken. Two minutes of
   * it pass between the first look and the second.
   *
   * @default - 15
   */
  readonly restartWindowMinutes?: number;

  /**
   * Further properties that EC2 must report for the instance.
   *
   * @default - the defaults of its properties
   */
  readonly instance?: AwsInstance;

  /**
   * Certificates (PEM, RSA-2048) with which AWS signs identity documents, by region, besides those the project
   * knows.
   *
   * @default - none
   */
  readonly certificates?: Readonly<Record<string, readonly string[]>>;
}

/** An account whose instances may join. */
export interface AwsAccount {
  /**
   * The role to look at instances with. Required for another account than that of the stacks.
   *
   * @default - none
   */
  readonly assumeRole?: string;
}

/** Properties that EC2 must report for an instance. */
export interface AwsInstance {
  /**
   * Whether IMDSv1 must be off. With it on, whatever can make the node fetch a URL gets its identity document and
   * credentials.
   *
   * @default - true
   */
  readonly httpTokensRequired?: boolean;

  /**
   * Largest hop limit of the metadata service (HttpPutResponseHopLimit), or `any`. At 2 pods reach it too.
   *
   * @default - 1
   */
  readonly maxHopLimit?: number | 'any';

  /**
   * How long after the first network interface the root volume may have been attached, or `any`. Later, the disk
   * may have been swapped.
   *
   * @default - 60
   */
  readonly maxAttachSkewSeconds?: number | 'any';

  /**
   * Which addresses a serving certificate may hold. `primary`: the primary private address of the first interface,
   * its public address and its IPv6 address. `all`: every address of every interface; a CNI plugin’s node policy
   * can assign further ones.
   *
   * @default - primary
   */
  readonly addresses?: 'primary' | 'all';
}
