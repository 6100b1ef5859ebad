/** What countersign.yaml says about attestation, resolved: defaults filled in, everything checked. */
import type { AwsAttestationInput } from '../schema/attestation.ts';
import type { AddressRange } from '../../policy/patterns.ts';

/** Attestation of one cluster. */
export interface ClusterAttestation {
  /** Part of every binding digest and unique to one deployment. Default: `<account>/<region>/<cluster>`. */
  readonly audience: string;
  readonly aws?: AwsAttestation;
  /** CIDR blocks. An address in one of these belongs to the machine that asks for it first. */
  readonly addressRanges: readonly AddressRange[];
}

/** The keys of `attestation.aws`, described in the schema. A machine must match each list that is not empty. */
export interface AwsAttestation extends Readonly<
  Omit<AwsAttestationInput, 'accounts' | 'tags' | 'nodeName' | 'instance' | 'certificates'>
> {
  /** By account id. AWS is asked about no other account. */
  readonly accounts: ReadonlyMap<string, { readonly assumeRole?: string }>;
  /** Exact value by tag key, such as `kubernetes.io/cluster/<name>`; the value `*` means any. */
  readonly tags: ReadonlyMap<string, string>;
  /** The node names that an instance may have; one matching rule is enough. At least one. */
  readonly nodeName: readonly NodeNameRule[];
  readonly instance: {
    readonly httpTokensRequired: boolean;
    /** Absent = any. */
    readonly maxHopLimit?: number;
    /** Absent = not checked. */
    readonly maxAttachSkewSeconds?: number;
    readonly addresses: 'primary' | 'all';
  };
  /** PEM by region: certificates of the operator, in addition to those of the package. */
  readonly certificates: ReadonlyMap<string, readonly string[]>;
}

export type NodeNameRule =
  /** `ip-10-0-0-1.eu-central-1.compute.internal`, as the AWS cloud provider names nodes. */
  | { readonly kind: 'privateDnsName' }
  /** The first label of that name. */
  | { readonly kind: 'privateDnsLabel' }
  | { readonly kind: 'instanceId' }
  | { readonly kind: 'tag'; readonly key: string }
  /** Any name that matches the pattern; the first machine keeps it. */
  | { readonly kind: 'pattern'; readonly pattern: string };
