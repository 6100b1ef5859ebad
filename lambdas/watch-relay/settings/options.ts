import type { KubernetesLease } from '../../../adapters/kubernetes/api.ts';
import type { RequestApi } from '../../../core/ports/kubernetes-api.ts';
import type { ProfileAttestation, Profile, ProfileKind } from '../../../core/policy/profile.ts';
import type { SigningEndpoint } from '../../../core/ports/signing-endpoint.ts';
import type { Clock, Random } from '../runtime/clock.ts';
import type { Log } from '../runtime/log.ts';

export interface RelayOptions {
  readonly signerNames: readonly string[];
  /** By signer name; one that is not here is approved by somebody else and not attested. */
  readonly policies: ReadonlyMap<string, SignerPolicy>;
  /** How many requests of one requester at once. */
  readonly inFlightPerRequester: number;
  /** How many requests at once at most; the endpoint may bear less, which is found out. */
  readonly concurrency: number;
  /** How long a drain waits for requests under way. */
  readonly graceMilliseconds: number;
  /** Names this replica in the lease and in Events. */
  readonly identity: string;
}

export interface RelayPorts {
  readonly api: RequestApi;
  readonly endpoint: SigningEndpoint;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** With it only the holder of the lease works; without it this relay does. */
  readonly lease?: KubernetesLease;
}

/** What countersign.yaml says of a signer, as far as it is ours to know. */
export interface SignerPolicy {
  readonly approval: 'manual' | 'approve';
  readonly kind: ProfileKind;
  readonly attestation?: ProfileAttestation;
  /** Where the cluster attests nothing and so has no attest function: the rules to judge by here. */
  readonly judgedHere?: Profile;
}
