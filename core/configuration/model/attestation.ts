/** What countersign.yaml says about attestation, resolved: defaults filled in, everything checked. */
import type { AddressRange } from '../../policy/patterns.ts';

/** Of a cluster. */
export interface ClusterAttestation {
  /** Part of every binding digest: no two deployments may share it. `<account>/<region>/<cluster>` unless configured. */
  readonly audience: string;
  readonly aws?: AwsAttestation;
  /** CIDR blocks. An address in one of these belongs to the machine that asks for it first. */
  readonly addressRanges: readonly AddressRange[];
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
  /** Whether `aws/v1` is still taken beside `aws/v2`. Default true, and always true without `requireIdentityRole`. */
  readonly acceptV1: boolean;
  /** `listed`: `countersign machines allow` must name the instance (as `aws#<instance id>`). */
  readonly machines: 'any' | 'listed';
  /** After stop and start a new key is taken without renewing. Weak: whoever can stop an instance can read its disk. */
  readonly allowRestart: boolean;
  /** How long after its start, as EC2 reports it, that holds. */
  readonly restartWindowMinutes: number;
  readonly instance: {
    /** IMDSv2 only, or pods that reach IMDSv1 get the document and the role's credentials. */
    readonly httpTokensRequired: boolean;
    /** HttpPutResponseHopLimit at most; absent = any. */
    readonly maxHopLimit?: number;
    /** Root volume attached at most that long after the first interface (a swapped disk); absent = not checked. */
    readonly maxAttachSkewSeconds?: number;
    /** Which of its addresses are its own: of the first interface the primary ones, or every one that EC2 lists. */
    readonly addresses: 'primary' | 'all';
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
