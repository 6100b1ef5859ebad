/** What countersign.yaml says about attestation, resolved: defaults filled in, everything checked. */

/** As on the wire and in signer names. */
export const providerNames = ['aws', 'insecure'] as const;
export type ProviderName = (typeof providerNames)[number];

/** Of a profile. Absent = its requests are not attested. */
export interface ProfileAttestation {
  /** Names of providers whose evidence counts, as on the wire. At least one. */
  readonly providers: readonly string[];
  /** `false`: a request that brings no evidence is answered as one of an unattested profile. */
  readonly required: boolean;
  /** `audit`: evidence that fails is counted, and refuses nothing. */
  readonly mode: 'enforce' | 'audit';
  /** Whether the relay, as approver, also asks the API server for leave (SubjectAccessReview, names of our own). */
  readonly subjectAccessReview: boolean;
}

/** Of a cluster. */
export interface ClusterAttestation {
  /** Part of every binding digest: no two deployments may share it. `<account>/<region>/<cluster>` unless configured. */
  readonly audience: string;
  readonly aws?: AwsAttestation;
  readonly serving: ServingNames;
}

/** Whose names a serving certificate may hold besides those the platform tells. CIDRs and patterns of core/patterns.ts. */
export interface ServingNames {
  /** An address in one of these belongs to whichever machine asks for it first. */
  readonly addressRanges: readonly string[];
  /** Never anybody's: service addresses, the shared control-plane endpoint. */
  readonly reservedAddresses: readonly string[];
  /** Likewise; the names of Kubernetes' own services are always among them. */
  readonly reservedNames: readonly string[];
}

export interface AwsAttestation {
  /** By account id; nothing is asked of AWS about an account that is not here. */
  readonly accounts: ReadonlyMap<string, { readonly assumeRole?: string }>;
  readonly regions: readonly string[];
  /** A machine must match each list that is not empty; synth insists on one. */
  readonly vpcs: readonly string[];
  readonly subnets: readonly string[];
  /** Exact values, or `*` for any. Tag keys: `kubernetes.io/cluster/<name>` … */
  readonly tags: ReadonlyMap<string, string>;
  /** Names or patterns of the instance profile's ARN. */
  readonly instanceProfiles: readonly string[];
  /** ARNs of node roles whose sessions count; only without `requireIdentityRole`. */
  readonly roles: readonly string[];
  /** What an instance may be called; any of them. At least one. */
  readonly nodeName: readonly NodeNameRule[];
  /** The STS proof must be of the instance identity role, whose session name nobody can choose. Default true. */
  readonly requireIdentityRole: boolean;
  /** `listed`: `countersign machines allow` must name the instance (as `aws#<instance id>`). */
  readonly machines: 'any' | 'listed';
  /** After stop and start a new key is taken without renewing. Weak: whoever can stop an instance can read its disk. */
  readonly allowRestart: boolean;
  readonly instance: {
    /** IMDSv2 only, or pods that reach IMDSv1 get the document and the role's credentials. */
    readonly httpTokensRequired: boolean;
    /** HttpPutResponseHopLimit at most; absent = any. */
    readonly maxHopLimit?: number;
    /** Root volume attached at most that long after the first interface (a swapped disk); absent = not checked. */
    readonly maxAttachSkewSeconds?: number;
  };
  /** By region, PEM: the operator's, beside those of the package. */
  readonly certificates: ReadonlyMap<string, readonly string[]>;
}

export type NodeNameRule =
  /** `ip-10-0-0-1.eu-central-1.compute.internal`, as the AWS cloud provider names nodes. */
  | { readonly kind: 'privateDnsName' }
  /** Its first label. */
  | { readonly kind: 'privateDnsLabel' }
  | { readonly kind: 'instanceId' }
  | { readonly kind: 'tag'; readonly key: string }
  /** Any name of that pattern, first come, first served. */
  | { readonly kind: 'pattern'; readonly pattern: string };
