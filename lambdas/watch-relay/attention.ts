/** What each cause of a retry calls for, and which of them need a person. */
import type { Clock } from './clock.ts';
import type { RetryCause } from './result.ts';

/**
 * `alarm`: somebody has to mend something, as the `first` one shows or only those that keep coming.
 * `congestion`: there are too many of us at once, or nobody is there.
 */
export const causes: Readonly<
  Record<RetryCause, { readonly alarm: 'never' | 'first' | 'lasting'; readonly congestion: boolean }>
> = {
  EndpointBusy: { alarm: 'never', congestion: true },
  EndpointUnreachable: { alarm: 'never', congestion: true },
  EndpointUnauthorized: { alarm: 'first', congestion: true },
  EndpointUnexpected: { alarm: 'first', congestion: true },
  CertificateUnusable: { alarm: 'first', congestion: false },
  // As configured: the cluster's authorization says no, and may say yes tomorrow.
  NotPermitted: { alarm: 'never', congestion: false },
  ApiBusy: { alarm: 'never', congestion: true },
  ApiUnreachable: { alarm: 'never', congestion: true },
  // An API server that has just started knows no roles and no accounts yet, and until it has read them it answers 403
  // and 401 to everybody (its RBAC authorizer looks into its cache and does not wait for it).
  ApiForbidden: { alarm: 'lasting', congestion: true },
  ApiRejected: { alarm: 'first', congestion: false },
  ApiConflict: { alarm: 'never', congestion: false },
  Internal: { alarm: 'first', congestion: false },
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
