/**
 * How much one machine and one requester may have attest do in a while. What is over a limit is answered `busy`
 * (`Limited`) before STS or EC2 is asked, and never refused for it. docs/attestation.md, Limits.
 */
import type { RecentUses, RefusalCount, IdentityRecord } from '../ports/attestation-store.ts';
import type { Instant } from '../ports/instant.ts';

const minute = 60_000;

/**
 * Certificates of one machine. A node needs two, and a few more where its addresses change. Only uses that were proved
 * and let in count: a claim to be the machine cannot use up what is the machine's. The machine's own bytes, sent again under
 * other UIDs while their evidence is fresh, do count.
 */
export const mostUses = { uses: 30, milliseconds: 10 * minute } as const;

/**
 * Requests of one requester that were judged and refused. Approvals do not count: a pool that joins with one token is
 * not slowed down. Two a second is a tenth of what EC2 answers to one account (DescribeInstances by id, 20 a second).
 */
export const mostRefusals = { refusals: 120, milliseconds: minute } as const;

export function countUse(recent: RecentUses | undefined, now: Instant): RecentUses {
  return isCurrent(recent, now) ? { ...recent, uses: recent.uses + 1 } : { since: now, uses: 1 };
}

/** Milliseconds until the machine may be let in again; `undefined` = it may now. */
export function usedUp({ recent }: Pick<IdentityRecord, 'recent'>, now: Instant): number | undefined {
  if (!isCurrent(recent, now) || recent.uses < mostUses.uses) return undefined;
  return Math.min(mostUses.milliseconds, recent.since + mostUses.milliseconds - now);
}

function isCurrent(recent: RecentUses | undefined, now: Instant): recent is RecentUses {
  // Before `since` by more than a window the clock was wrong then: that count would hold the machine up for good.
  return recent !== undefined && Math.abs(now - recent.since) < mostUses.milliseconds;
}

export function refusalCountOf(requester: string, now: Instant): RefusalCount {
  return { requester, from: now - (now % mostRefusals.milliseconds) };
}

/** Milliseconds until this requester's requests are judged again; `undefined` = they are now. */
export function refusedTooOften(refusals: number, { from }: RefusalCount, now: Instant): number | undefined {
  return refusals < mostRefusals.refusals ? undefined : from + mostRefusals.milliseconds - now;
}
