/** Who on the cluster trusts which CA of a rotation. */
import type { ProfileKind } from '../policy/profile.ts';
import { trustOf } from './anchors.ts';
import type { Issuer } from './anchors.ts';
import type { RotatingProfile } from './deployment.ts';

/** A part of the cluster that verifies certificates. */
export interface Consumer {
  /** The program and its setting: `kube-apiserver --client-ca-file`. */
  readonly name: string;
  /** An object of the cluster, or a file, which the API does not show. */
  readonly place: string;
  /** PEM. */
  readonly bundle?: string;
  /** Why an object was not read. */
  readonly unread?: string;
  readonly concern: Concern;
  /** How to change what it trusts, and what has to be restarted then. */
  readonly change: string;
}

/** When a consumer has to trust the CAs of a rotation, whatever it trusts now. Every consumer that trusts the old CA has to. */
export type Concern =
  | { readonly kinds: readonly ProfileKind[] }
  | { readonly signerName: string }
  /** If the API server's own certificate is of the old CA, as ConfigMap kube-root-ca.crt tells. */
  | 'apiServer'
  | 'none';

export interface JudgedConsumer extends Consumer {
  /** Absent: the API does not show it. */
  readonly trusts?: {
    readonly old: boolean;
    readonly new: boolean;
    /** It holds a certificate that only the old CA needs. */
    readonly keepsOld: boolean;
  };
  /** Whether it has to accept certificates of both CAs while both are in use. */
  readonly needed: boolean;
}

export interface Involved {
  readonly old?: Issuer;
  readonly next?: Issuer;
  /** The other CAs that issue certificates, and `next`. */
  readonly others: readonly Issuer[];
  /** Whose certificates the two issue. */
  readonly profiles: readonly RotatingProfile[];
}

/** Those that concern the rotation, or may. */
export function judgeAll(consumers: readonly Consumer[], involved: Involved): readonly JudgedConsumer[] {
  const trusted = consumers.map((consumer) => ({ ...consumer, ...trustIn(consumer, involved) }));
  const ofApiServer = trusted.some(({ concern, trusts }) => concern === 'apiServer' && trusts?.old === true);
  return trusted
    .map((consumer) => ({ ...consumer, needed: isNeeded(consumer, involved, ofApiServer) }))
    .filter(
      ({ needed, trusts, unread }) =>
        needed || trusts?.new === true || trusts?.keepsOld === true || unread !== undefined,
    );
}

function trustIn({ bundle }: Consumer, { old, next, others }: Involved): Pick<JudgedConsumer, 'trusts'> {
  if (bundle === undefined) return {};
  const ofOld = old === undefined ? undefined : trustOf(bundle, old, others);
  const ofNext = next === undefined ? undefined : trustOf(bundle, next, []);
  const trusts = {
    old: ofOld?.trusted === true,
    new: ofNext?.trusted === true,
    keepsOld: ofOld?.own === true,
  };
  return { trusts };
}

function isNeeded(
  { concern, trusts }: Omit<JudgedConsumer, 'needed'>,
  { profiles }: Involved,
  ofApiServer: boolean,
): boolean {
  if (trusts?.old === true) return true;
  if (concern === 'none') return false;
  if (concern === 'apiServer') return ofApiServer && trusts === undefined;
  return profiles.some(({ signerName, kind }) =>
    'kinds' in concern ? concern.kinds.includes(kind) : concern.signerName === signerName,
  );
}
