/**
 * What one answer of a platform does not settle: whether the machine that has a node name is gone, and whether a machine
 * that was started anew lost its key. Each needs two observations apart in time. The first one is written into the
 * machine's record; a use of the machine in between erases it. docs/attestation.md has the tables.
 */
import type { IdentityRecord } from '../ports/attestation-store.ts';
import type { MachineState } from './evidence/provider.ts';
import { violation } from '../outcome/outcome.ts';
import type { Violation } from '../outcome/outcome.ts';
import type { Instant } from '../ports/instant.ts';
import { quoted } from '../outcome/printable-text.ts';

const minute = 60_000;
/** Between the two. Less than the life of evidence (5 minutes): the same request may be the first look and the second. */
export const secondLookAfter = 2 * minute;
/** An older first look at a machine that its platform does not know is no look at all. */
export const firstLookLasts = 30 * minute;
/** A platform that has not known a machine for that long after it was last seen will not know it again (§6.4). */
export const unknownForMilliseconds = 60 * minute;
/** How far ahead of ours the clock of a platform, or of another process, may be. */
export const clockLeeway = minute;

export type Change =
  | { readonly kind: 'allowed' }
  | { readonly kind: 'refused'; readonly violation: Violation; readonly observed?: IdentityRecord }
  /** Temporary. */
  | {
      readonly kind: 'later';
      readonly message: string;
      readonly afterMilliseconds: number;
      readonly observed?: IdentityRecord;
    };

const allowed: Change = { kind: 'allowed' };

/**
 * May the name of `holder` pass on? `observed` is to be written before anybody is answered. An error of the platform is
 * thrown by whoever asks it, and never gets here.
 */
export function checkHolderGone(holder: IdentityRecord, state: MachineState, now: Instant): Change {
  switch (state.kind) {
    // For good: no machine comes back from there, and a platform that lags behind would say `running`.
    case 'gone':
      return allowed;
    case 'running':
    case 'stopped': {
      const { unknownSince: mark, ...unmarked } = holder;
      const refused = { kind: 'refused', violation: nameTaken(holder) } as const;
      return mark === undefined ? refused : { ...refused, observed: next(unmarked) };
    }
    case 'unknown': {
      // Platforms forget terminated machines after about an hour, and know new ones only after a while.
      if (now - holder.lastSeen <= unknownForMilliseconds) return { kind: 'refused', violation: nameTaken(holder) };
      const early = holderTooEarly(holder, now);
      if (early !== undefined) return early;
      if (isStanding(holder.unknownSince, now)) return allowed;
      return {
        kind: 'later',
        message: 'its platform does not know the machine that has this name; it is asked a second time',
        afterMilliseconds: secondLookAfter,
        observed: next({ ...holder, unknownSince: now }),
      };
    }
  }
}

/** Known without asking the platform: the first look was just now. */
export function holderTooEarly({ unknownSince }: IdentityRecord, now: Instant): Change | undefined {
  return isStanding(unknownSince, now) ? tooEarly(unknownSince, now) : undefined;
}

function isStanding(mark: Instant | undefined, now: Instant): mark is Instant {
  return mark !== undefined && now - mark <= firstLookLasts && mark - now <= clockLeeway;
}

export function nameTaken({ nodeName, identity }: IdentityRecord): Violation {
  return violation('TofuNodeTaken', `node name ${quoted(nodeName)} belongs to another machine (${identity})`);
}

/** A machine that is registered with one key, and asks with another since it was stopped and started. */
export interface RestartQuestion {
  readonly record: IdentityRecord;
  /** Who asks now. */
  readonly spkiSha256: string;
  /** As its platform says today. */
  readonly startedAt: Instant | undefined;
  /** How long after its start a machine may come back with another key, milliseconds. */
  readonly window: number;
  readonly now: Instant;
}

/** May the new key take the place of the one on record? A machine that was only rebooted has its key still. */
export function checkRestarted({ record, spkiSha256, startedAt, window, now }: RestartQuestion): Change {
  // Each use of the machine moves the start on record, a serving certificate too: the old key was there after this one.
  if (startedAt === undefined || record.startedAt === undefined || !(startedAt > record.startedAt))
    return reuse('was not started anew since it was last seen with that one');
  if (!(startedAt - now <= clockLeeway)) return reuse('is said to be started in the future');
  if (!(now - startedAt <= window)) return reuse(`was started more than ${window / minute} minutes ago`);
  const { restart } = record;
  if (restart === undefined || restart.startedAt !== startedAt)
    return {
      kind: 'later',
      message: 'a machine that was started anew asks with another key; it is looked at a second time',
      afterMilliseconds: secondLookAfter,
      observed: next({ ...record, restart: { startedAt, since: now, spkiSha256, contested: false } }),
    };
  // One of them is not the machine, and nothing here tells which.
  if (restart.contested) return contested;
  if (restart.spkiSha256 !== spkiSha256)
    return { ...contested, observed: next({ ...record, restart: { ...restart, contested: true } }) };
  return tooEarly(restart.since, now) ?? allowed;
}

/** Known without asking the platform: this key was first seen just now. */
export function restartTooEarly({ restart }: IdentityRecord, spkiSha256: string, now: Instant): Change | undefined {
  if (restart === undefined || restart.contested || restart.spkiSha256 !== spkiSha256) return undefined;
  return tooEarly(restart.since, now);
}

function tooEarly(since: Instant, now: Instant): Change | undefined {
  const left = since + secondLookAfter - now;
  if (left <= 0) return undefined;
  return { kind: 'later', message: 'it is too early for the second look', afterMilliseconds: left };
}

function reuse(why: string): Change & { readonly kind: 'refused' } {
  const message = `this machine is registered with another key and ${why}; only the node itself can renew it, or an operator reset it`;
  return { kind: 'refused', violation: violation('TofuReuse', message) };
}

const contested = reuse('two other keys asked for its name since it was started');

/** An observation is a write like any other: whoever decided on the record before it has to look again. */
function next(record: IdentityRecord): IdentityRecord {
  return { ...record, rev: record.rev + 1 };
}
