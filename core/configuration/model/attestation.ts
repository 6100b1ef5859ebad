/** What countersign.yaml says about attestation, resolved: defaults filled in, everything checked. */
import type { AwsAttestation } from '../providers/aws.ts';
import type { GceAttestation } from '../providers/gce.ts';
import type { GceVtpmAttestation } from '../providers/gce-vtpm.ts';
import type { TpmAttestation } from '../providers/tpm.ts';
import type { X509Attestation } from '../providers/x509.ts';
import type { AddressRange } from '../../policy/patterns.ts';

/** Attestation of one cluster. */
export interface ClusterAttestation {
  /** Part of every binding digest and unique to one deployment. Default: `<account>/<region>/<cluster>`. */
  readonly audience: string;
  readonly aws?: AwsAttestation;
  /** Whether a profile takes evidence of `aws-nitrotpm`. Its instances are those of `aws`, which is then present. */
  readonly awsNitroTpm?: true;
  readonly tpm?: TpmAttestation;
  readonly x509?: X509Attestation;
  readonly gce?: GceAttestation;
  readonly 'gce-vtpm'?: GceVtpmAttestation;
  /** Whether attest looks for terminated machines by itself: on its schedule, and when a caller names nodes that are gone. */
  readonly retireTerminated: boolean;
  /** Present with `machines: clusterApi`: the Cluster object whose Machines and MachinePools alone may join. */
  readonly clusterApi?: ClusterReference;
  /** CIDR blocks. An address in one of these belongs to the machine that asks for it first. */
  readonly addressRanges: readonly AddressRange[];
}

/** The name and the namespace of a Cluster object of Cluster API. */
export interface ClusterReference {
  readonly cluster: string;
  readonly namespace: string;
}
