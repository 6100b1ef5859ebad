/** What each cause of a retry calls for, and which of them need a person. */
import type { Clock } from '../runtime/clock.ts';
import type { RetryCause } from './result.ts';

/**
 * `alarm`: somebody has to mend something, as the `first` one shows or only those that keep coming.
 * `others`: what it says of other requests. `crowded`: too many are under way for it, of us or of others who share its
 * quotas. `failing`: they may fail likewise, but there is no crowd to make room for: a right that is missing or a CA that
 * cannot sign is one signer's trouble, and the other signers' requests must not wait for it.
 */
export const causes: Readonly<
  Record<
    RetryCause,
    { readonly alarm: 'never' | 'first' | 'lasting'; readonly others: 'nothing' | 'crowded' | 'failing' }
  >
> = {
  EndpointBusy: { alarm: 'never', others: 'crowded' },
  EndpointFailing: { alarm: 'never', others: 'failing' },
  EndpointUnreachable: { alarm: 'never', others: 'failing' },
  EndpointUnauthorized: { alarm: 'first', others: 'failing' },
  EndpointUnexpected: { alarm: 'first', others: 'failing' },
  CertificateUnusable: { alarm: 'first', others: 'nothing' },
  InProgress: { alarm: 'never', others: 'nothing' },
  // Of one machine or requester, and answered without asking anybody else.
  SecondLook: { alarm: 'never', others: 'nothing' },
  Limited: { alarm: 'never', others: 'nothing' },
  // As configured: the cluster's authorization says no, and may say yes tomorrow.
  NotPermitted: { alarm: 'never', others: 'nothing' },
  ApiBusy: { alarm: 'never', others: 'crowded' },
  ApiUnreachable: { alarm: 'never', others: 'failing' },
  // An API server that has just started knows no roles and no accounts yet, and until it has read them it answers 403
  // and 401 to everybody (its RBAC authorizer looks into its cache and does not wait for it).
  ApiForbidden: { alarm: 'lasting', others: 'failing' },
  ApiRejected: { alarm: 'first', others: 'nothing' },
  // The requester made it so, and only for this one.
  ObjectTooLarge: { alarm: 'never', others: 'nothing' },
  ApiConflict: { alarm: 'never', others: 'nothing' },
  Internal: { alarm: 'first', others: 'nothing' },
};

/** From the first denial on. An API server reads its roles within seconds of its start. */
export const lastingMilliseconds = 30_000;
/** Denials further apart are two stories: a request comes back within 30 s and its try takes as long at most. */
const apartMilliseconds = 120_000;

export interface Attention {
  /** A try ended so: does somebody have to mend something? */
  needed(right: string, cause: RetryCause): boolean;
  /** The API server let us write what this right is for. */
  allowed(right: string): void;
}

/** By signer and by what is written, since the right to write is given for each. */
export function createAttention(clock: Clock): Attention {
  const denials = new Map<string, { readonly since: number; readonly last: number }>();

  function lasts(right: string): boolean {
    const now = clock.monotonic();
    const known = denials.get(right);
    const since = known === undefined || now - known.last > apartMilliseconds ? now : known.since;
    denials.set(right, { since, last: now });
    return now - since >= lastingMilliseconds;
  }

  return {
    needed(right, cause) {
      // The API server went away: what it says when it is back is a new beginning.
      if (cause === 'ApiUnreachable') denials.delete(right);
      const { alarm } = causes[cause];
      return alarm === 'lasting' ? lasts(right) : alarm === 'first';
    },
    allowed: (right) => void denials.delete(right),
  };
}
