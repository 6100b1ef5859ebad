import type { RequestApi, SigningEndpoint } from '../../core/ports.ts';
import type { SignerPolicy } from './approval.ts';
import type { Clock, Random } from './clock.ts';
import type { LeaseStore } from './leader.ts';
import type { Log } from './log.ts';

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
  readonly lease?: LeaseStore;
}
