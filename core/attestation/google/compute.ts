/** The calls of the providers `gce` and `gce-vtpm` to the Compute API. The rules about the answers are in vm.ts. */
import type { VmPlace } from './place.ts';

/**
 * Reads one VM by its instance id, which Google never gives to another VM; a VM that is created anew under the same name must not
 * answer for the first one. Throws unless Google describes the VM or answers that it does not exist; also if a permission is missing.
 */
export interface ComputeEndpoint {
  /** instances.get */
  describeInstance(place: VmPlace): Promise<VmDescription | 'notFound'>;
  /** instances.getShieldedInstanceIdentity: `signingKey.ekPub` in PEM. `noKey`: the VM is no Shielded VM. */
  signingKey(place: VmPlace): Promise<SigningKeyAnswer>;
}

export type SigningKeyAnswer = { readonly kind: 'key'; readonly pem: string } | { readonly kind: 'noKey' | 'notFound' };

/** https://cloud.google.com/compute/docs/reference/rest/v1/instances */
export interface VmDescription {
  /** Decimal. */
  readonly instanceId: string;
  readonly name: string;
  /** The last part of the zone's URL. */
  readonly zone: string;
  /** `RUNNING`, `STAGING`, `TERMINATED` … */
  readonly status: string;
  /** Whether the VM has a vTPM. */
  readonly vtpm: boolean;
  readonly labels: ReadonlyMap<string, string>;
  /** Mail addresses. */
  readonly serviceAccounts: readonly string[];
  /** Of the first network interface, as Google writes them: its own IPv4 and IPv6 address and the public ones. */
  readonly addresses: readonly string[];
}
