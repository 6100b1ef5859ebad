/**
 * How many requests of one machine, and of one requester, attest works on in a time window. A request over a limit is answered
 * `busy` (`Limited`) before STS or EC2 is asked; it is not refused. docs/attestation.md, Limits.
 */
import type { RecentUses, RefusalWindow, IdentityRecord } from '../../ports/attestation-store.ts';
import type { Instant } from '../../ports/instant.ts';

const minute = 60_000;

/**
 * Certificates of one machine. A node needs two, and a few more if its addresses change. Only admitted requests count, so that
 * an attacker who claims to be the machine cannot use up its limit. The same request bytes under another UID do count while
 * their evidence is fresh.
 */
export const mostUses = { uses: 30, milliseconds: 10 * minute } as const;

/**
 * Refused requests of one requester. Approvals do not count, so many nodes can join with one token. Two refusals a second are a
 * tenth of EC2's limit for one account (DescribeInstances by id, 20 a second).
 */
export const mostRefusals = { refusals: 120, milliseconds: minute } as const;

export function countUse(recent: RecentUses | undefined, now: Instant): RecentUses {
  return isCurrent(recent, now) ? { ...recent, uses: recent.uses + 1 } : { since: now, uses: 1 };
}

/** Milliseconds until the machine may be admitted again; `undefined` = it may now. */
export function usedUp({ recent }: Pick<IdentityRecord, 'recent'>, now: Instant): number | undefined {
  if (!isCurrent(recent, now) || recent.uses < mostUses.uses) return undefined;
  return Math.min(mostUses.milliseconds, recent.since + mostUses.milliseconds - now);
}

function isCurrent(recent: RecentUses | undefined, now: Instant): recent is RecentUses {
  // If `since` is far in the future, the clock was wrong then, and the count would block the machine for too long.
  return recent !== undefined && Math.abs(now - recent.since) < mostUses.milliseconds;
}

export function refusalWindowOf(requester: string, now: Instant): RefusalWindow {
  return { requester, from: now - (now % mostRefusals.milliseconds) };
}

/** Milliseconds until attest examines this requester's requests again; `undefined` = it does now. */
export function refusedTooOften(refusals: number, { from }: RefusalWindow, now: Instant): number | undefined {
  return refusals < mostRefusals.refusals ? undefined : from + mostRefusals.milliseconds - now;
}
