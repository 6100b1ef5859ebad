/** What countersign.yaml says about attestation, resolved: defaults filled in, everything checked. */
import type { AddressRange } from '../../policy/patterns.ts';

/** Attestation of one cluster. */
export interface ClusterAttestation {
  /** Part of every binding digest and unique to one deployment. Default: `<account>/<region>/<cluster>`. */
  readonly audience: string;
  readonly aws?: AwsAttestation;
  /** CIDR blocks. An address in one of these belongs to the machine that asks for it first. */
  readonly addressRanges: readonly AddressRange[];
}

export interface AwsAttestation {
  /** By account id. AWS is asked about no other account. */
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
  /** The node names that an instance may have; one matching rule is enough. At least one. */
  readonly nodeName: readonly NodeNameRule[];
  /** The STS proof must be of the instance identity role, whose session name no principal can choose. Default true. */
  readonly requireIdentityRole: boolean;
  /** Whether `aws/v1` evidence is still accepted beside `aws/v2`. Default true, and always true without `requireIdentityRole`. */
  readonly acceptV1: boolean;
  /** `listed`: `countersign machines allow` must name the instance (as `aws#<instance id>`). */
  readonly machines: 'any' | 'listed';
  /** Whether an instance may return with a new key after a stop and start, without a renewal. Weak: a principal that can stop an instance can read its disk. */
  readonly allowRestart: boolean;
  /** How long after the start that EC2 reports a new key is accepted. */
  readonly restartWindowMinutes: number;
  readonly instance: {
    /** IMDSv2 only, or pods that reach IMDSv1 get the document and the role's credentials. */
    readonly httpTokensRequired: boolean;
    /** Largest HttpPutResponseHopLimit; absent = any. */
    readonly maxHopLimit?: number;
    /** Root volume attached at most that long after the first interface (a swapped disk); absent = not checked. */
    readonly maxAttachSkewSeconds?: number;
    /** Which addresses belong to the instance: the primary ones of the first interface, or all that EC2 lists. */
    readonly addresses: 'primary' | 'all';
  };
  /** PEM by region: certificates of the operator, in addition to those of the package. */
  readonly certificates: ReadonlyMap<string, readonly string[]>;
}

export type NodeNameRule =
  /** `ip-10-0-0-1.eu-central-1.compute.internal`, as the AWS cloud provider names nodes. */
  | { readonly kind: 'privateDnsName' }
  /** Its first label. */
  | { readonly kind: 'privateDnsLabel' }
  | { readonly kind: 'instanceId' }
  | { readonly kind: 'tag'; readonly key: string }
  /** Any name that matches the pattern; the first machine keeps it. */
  | { readonly kind: 'pattern'; readonly pattern: string };
