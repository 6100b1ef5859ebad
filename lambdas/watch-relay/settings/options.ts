import type { KubernetesLease } from '../../../adapters/kubernetes/api.ts';
import type { RequestApi } from '../../../core/ports/kubernetes-api.ts';
import type { Profile, ProfileKind } from '../../../core/policy/profile.ts';
import type { BlockPolicy } from '../../../core/read-and-check-request.ts';
import type { SigningEndpoint } from '../../../core/ports/signing-endpoint.ts';
import type { Clock, Random } from '../runtime/clock.ts';
import type { Log } from '../runtime/log.ts';
import type { ClusterApiOptions, ClusterApiPorts } from '../cluster-api/session.ts';
import type { TrustPorts } from '../trust/keep-trust.ts';
import type { KeptTrust } from '../trust/kept-objects.ts';

export interface RelayOptions {
  readonly signerNames: readonly string[];
  /** By signer name. For a signer without a policy another approver decides, and nothing is attested. */
  readonly policies: ReadonlyMap<string, SignerPolicy>;
  readonly inFlightPerRequester: number;
  /** Requests in flight at most; the limiters may admit fewer. */
  readonly concurrency: number;
  /** How long a drain waits for requests in flight. */
  readonly graceMilliseconds: number;
  /** Names this replica in the lease and in Events. */
  readonly identity: string;
  /** The objects with CA certificates that the relay keeps. */
  readonly trust?: KeptTrust;
  /** With `attestation.machines: clusterApi`. */
  readonly clusterApi?: ClusterApiOptions;
}

export interface RelayPorts {
  readonly api: RequestApi;
  readonly endpoint: SigningEndpoint;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** If set, only the holder of this lease works. */
  readonly lease?: KubernetesLease;
  /** Only with `RelayOptions.trust`. */
  readonly trust?: TrustPorts;
  /** Only with `RelayOptions.clusterApi`. */
  readonly clusterApi?: ClusterApiPorts;
}

/** The part of a signer's configuration that the relay uses. */
export interface SignerPolicy extends BlockPolicy {
  readonly approval: 'manual' | 'approve';
  readonly kind: ProfileKind;
  /** Set if the cluster has no attest function: the relay then checks pending requests by this profile itself. */
  readonly localProfile?: Profile;
}
