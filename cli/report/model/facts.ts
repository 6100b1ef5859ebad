/** What the report is made of. Each part is read on its own: a part that was not read says why, and the others are shown. */
import type { Consumer } from '../../../core/rotation/consumers.ts';
import type { Deployment } from '../../../core/rotation/deployment.ts';
import type { IdentityRecord, MachineEntry, Verdict } from '../../../core/ports/attestation-store.ts';
import type { Instant } from '../../../core/ports/instant.ts';
import type { Lock } from '../../../core/ports/locks.ts';
import type { RequestView } from '../../requests/request-view.ts';
import type { HeldCertificate } from './certificates.ts';

/** `notAsked`: no flag names its source. `failed`: it was asked for, and there was no answer. */
export type Part<T> =
  | { readonly state: 'read'; readonly value: T; readonly note?: string }
  | { readonly state: 'notAsked' | 'failed'; readonly why: string };

export interface Records {
  /** Of the last 25 hours. */
  readonly verdicts: readonly Verdict[];
  readonly identities: readonly IdentityRecord[];
  /** The list of machines that may join; empty if the cluster has no such list. */
  readonly machines: readonly MachineEntry[];
  readonly locks: readonly Lock[];
}

export interface Facts {
  readonly at: Instant;
  /** Of this program. */
  readonly version: string;
  readonly cluster: string;
  readonly records: Part<Records>;
  readonly certificates: Part<readonly HeldCertificate[]>;
  readonly cas: Part<Deployment>;
  readonly requests: Part<readonly RequestView[]>;
  /** The names of the Node objects. */
  readonly nodes: Part<readonly string[]>;
  /** What the cluster trusts. */
  readonly trust: Part<readonly Consumer[]>;
}

export type PartName = Exclude<keyof Facts, 'at' | 'version' | 'cluster'>;

export function valueOf<T>(part: Part<T>): T | undefined {
  return part.state === 'read' ? part.value : undefined;
}
