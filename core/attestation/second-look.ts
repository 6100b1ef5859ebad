/**
 * Two questions that one answer of a platform does not settle: is the machine that has a node name gone, and did a
 * machine that was stopped and started lose its key? Each needs two observations, minutes apart. The first one is written
 * into the machine's record; a use of the machine in between erases it. docs/attestation.md has the tables.
 */
import type { IdentityRecord } from '../ports/attestation-store.ts';
import type { MachineState } from './evidence/provider.ts';
import { violation } from '../outcome/outcome.ts';
import type { Violation } from '../outcome/outcome.ts';
import type { Instant } from '../ports/instant.ts';
import { quoted } from '../outcome/printable-text.ts';

const minute = 60_000;
/** Time between the two. Less than the life of evidence (5 minutes), so that one request can bring both. */
export const secondLookAfter = 2 * minute;
/** An older first observation that a platform does not know a machine no longer counts. */
export const firstLookLasts = 30 * minute;
/** If the platform has reported a machine as unknown for this long, it is treated as terminated (§6.4). */
export const unknownForMilliseconds = 60 * minute;
/** How far the clock of a platform, or of another process, may be ahead of ours. */
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
 * May the name of `holder` pass to another machine? `observed` must be written before the answer. The caller throws if
 * the platform fails: an error is not a state.
 */
export function checkHolderGone(holder: IdentityRecord, state: MachineState, now: Instant): Change {
  switch (state.kind) {
    // Final: a terminated machine never returns, and a platform whose state lags would report `running`.
    case 'gone':
      return allowed;
    case 'running':
    case 'stopped': {
      const { unknownSince: mark, ...unmarked } = holder;
      const refused = { kind: 'refused', violation: nameTaken(holder) } as const;
      return mark === undefined ? refused : { ...refused, observed: nextRevision(unmarked) };
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
        observed: nextRevision({ ...holder, unknownSince: now }),
      };
    }
  }
}

/** Known without asking the platform: the first observation is too recent. */
export function holderTooEarly({ unknownSince }: IdentityRecord, now: Instant): Change | undefined {
  return isStanding(unknownSince, now) ? tooEarly(unknownSince, now) : undefined;
}

function isStanding(mark: Instant | undefined, now: Instant): mark is Instant {
  return mark !== undefined && now - mark <= firstLookLasts && mark - now <= clockLeeway;
}

export function nameTaken({ nodeName, identity }: IdentityRecord): Violation {
  return violation('TofuNodeTaken', `node name ${quoted(nodeName)} belongs to another machine (${identity})`);
}

/** A machine that is registered with one key and requests another after a stop and start. */
export interface RestartQuestion {
  readonly record: IdentityRecord;
  /** The requested key. */
  readonly spkiSha256: string;
  /** As its platform reports it today. */
  readonly startedAt: Instant | undefined;
  /** For so many milliseconds after its start a machine may request another key. */
  readonly window: number;
  readonly now: Instant;
}

/** May the new key replace the one on record? A machine that was only rebooted still has its key. */
export function checkRestarted({ record, spkiSha256, startedAt, window, now }: RestartQuestion): Change {
  // Each use of the machine updates the recorded start: at this start the machine still had its old key.
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
      observed: nextRevision({ ...record, restart: { startedAt, since: now, spkiSha256, contested: false } }),
    };
  // One of the two keys is not the machine's, and no record shows which.
  if (restart.contested) return contested;
  if (restart.spkiSha256 !== spkiSha256)
    return { ...contested, observed: nextRevision({ ...record, restart: { ...restart, contested: true } }) };
  return tooEarly(restart.since, now) ?? allowed;
}

/** Known without asking the platform: this key was first seen too recently. */
export function restartTooEarly({ restart }: IdentityRecord, spkiSha256: string, now: Instant): Change | undefined {
  if (restart === undefined || restart.contested || restart.spkiSha256 !== spkiSha256) return undefined;
  return tooEarly(restart.since, now);
}

function tooEarly(since: Instant, now: Instant): Change | undefined {
  const wait = since + secondLookAfter - now;
  if (wait <= 0) return undefined;
  return { kind: 'later', message: 'it is too early for the second look', afterMilliseconds: wait };
}

function reuse(why: string): Change & { readonly kind: 'refused' } {
  const message = `this machine is registered with another key and ${why}; only the node itself can renew it, or an operator reset it`;
  return { kind: 'refused', violation: violation('TofuReuse', message) };
}

const contested = reuse('two other keys asked for its name since it was started');

/** An observation is a write like any other: a decision on the record before it must be taken again. */
function nextRevision(record: IdentityRecord): IdentityRecord {
  return { ...record, rev: record.rev + 1 };
}
