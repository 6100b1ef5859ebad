/**
 * Decides whether a node name may pass to another machine, or a machine may change its key. One answer of a platform does not
 * prove that the holder's machine is gone, or that a machine lost its key when it was stopped and started. Each needs two
 * observations, minutes apart. The first one is written into the machine's record; a use of the machine erases it.
 * docs/attestation.md has the tables.
 */
import type { IdentityRecord } from '../ports/attestation-store.ts';
import type { AttestQuestion } from './attest-question.ts';
import { later, refuse } from './declined.ts';
import type { Declined } from './declined.ts';
import type { AttestationProvider, Machine, MachineState } from './evidence/provider.ts';
import { registrarOf } from './evidence/registrar.ts';
import { nameTaken } from './first-use.ts';
import type { FirstUse } from './first-use.ts';
import { violation } from '../outcome/outcome.ts';
import type { Instant } from '../ports/instant.ts';

const minute = 60_000;
/** Time between the observations. Less than the life of evidence (5 minutes), so one request can lead to both. */
export const secondLookAfter = 2 * minute;
/** How long a first observation counts that the machine is terminated, or that its platform does not know it. */
export const firstLookLasts = 30 * minute;
/** If the platform has reported a machine as unknown for this long, it is treated as terminated (§6.4). */
const unknownForMilliseconds = 60 * minute;
/** How far the clock of a platform, or of another process, may be ahead of ours. */
export const clockLeeway = minute;

export interface HandOver {
  /** The delay, if the record alone shows that the second look is too early: then the platform is not asked. */
  readonly tooEarly: Declined | undefined;
  /** Why the change is refused or delayed; `undefined`: the platform confirms it. The caller writes an observation first. */
  check(machine: Machine): Promise<Declined | undefined>;
}

/** `undefined` if the node name and the key stay with the machine. */
export function handOverOf(
  firstUse: FirstUse,
  { spkiSha256, now }: AttestQuestion,
  { restartWindow: window = 0 }: AttestationProvider,
  providers: ReadonlyMap<string, AttestationProvider>,
): HandOver | undefined {
  switch (firstUse.kind) {
    case 'first':
    case 'repeat':
    case 'renewal':
      return undefined;
    case 'restart': {
      const { record } = firstUse;
      return {
        tooEarly: restartTooEarly(record, spkiSha256, now),
        check: async ({ startedAt }) => checkRestarted({ record, spkiSha256, startedAt, window, now }),
      };
    }
    case 'takeover': {
      const { holder } = firstUse;
      return {
        tooEarly: holderTooEarly(holder, now),
        async check() {
          const provider = providers.get(registrarOf(holder));
          // If the holder's provider is not configured any more, no platform can confirm that its machine is gone.
          const state = provider === undefined ? stopped : await provider.describe(holder.identity, now);
          return checkHolderGone(holder, state, now);
        },
      };
    }
  }
}

const stopped = { kind: 'stopped' } as const;

/** Why the name of `holder` must not pass to another machine; `undefined` if it may. */
export function checkHolderGone(holder: IdentityRecord, state: MachineState, now: Instant): Declined | undefined {
  switch (state.kind) {
    // A terminated machine never returns. A platform whose state is out of date would report `running`, not `gone`.
    case 'gone':
      return undefined;
    case 'running':
    case 'stopped': {
      const { unknownSince, ...unmarked } = holder;
      const refused = refuse(nameTaken(holder));
      // The record of a retired machine does not change any more.
      if (unknownSince === undefined || holder.state === 'retired') return refused;
      return { ...refused, observed: nextRevision(unmarked) };
    }
    case 'unknown': {
      // A retired machine was reported as terminated at two looks. Since then its platform forgot it.
      if (holder.state === 'retired') return undefined;
      // Platforms forget terminated machines after about an hour, and know new ones only after a while.
      if (now - holder.lastSeen <= unknownForMilliseconds) return refuse(nameTaken(holder));
      const early = holderTooEarly(holder, now);
      if (early !== undefined) return early;
      if (firstLookCounts(holder.unknownSince, now)) return undefined;
      const message = 'its platform does not know the machine that has this name; it is asked a second time';
      return { ...secondLook(message), observed: nextRevision({ ...holder, unknownSince: now }) };
    }
  }
}

/** A delay if the first observation is too recent, so that the platform is not asked. */
export function holderTooEarly({ unknownSince }: IdentityRecord, now: Instant): Declined | undefined {
  return firstLookCounts(unknownSince, now) ? tooEarly(unknownSince, now) : undefined;
}

/** Whether a first observation is recent enough for a second one to decide. */
export function firstLookCounts(mark: Instant | undefined, now: Instant): mark is Instant {
  return mark !== undefined && now - mark <= firstLookLasts && mark - now <= clockLeeway;
}

/** A machine that is registered with one key and requests another after a stop and start. */
export interface RestartQuestion {
  readonly record: IdentityRecord;
  /** The requested key. */
  readonly spkiSha256: string;
  /** The current start of the machine, as its platform reports it. */
  readonly startedAt: Instant | undefined;
  /** For so many milliseconds after its start a machine may request another key. */
  readonly window: number;
  readonly now: Instant;
}

/** Why the new key must not replace the recorded one; `undefined` if it may. A machine that only rebooted still has its key. */
export function checkRestarted({ record, spkiSha256, startedAt, window, now }: RestartQuestion): Declined | undefined {
  // Each use of the machine updates the recorded start, so after this start the machine still used its old key.
  if (startedAt === undefined || record.startedAt === undefined || !(startedAt > record.startedAt))
    return reuse('was not started again since it was last seen with that one');
  if (!(startedAt - now <= clockLeeway)) return reuse('has a start time in the future');
  if (!(now - startedAt <= window)) return reuse(`was started more than ${window / minute} minutes ago`);
  const { restart } = record;
  if (restart === undefined || restart.startedAt !== startedAt) {
    const message = 'a machine that was started again requests another key; it is looked at a second time';
    const first = { startedAt, since: now, spkiSha256, contested: false };
    return { ...secondLook(message), observed: nextRevision({ ...record, restart: first }) };
  }
  // One of the two keys does not belong to the machine, and no record shows which.
  if (restart.contested) return contested;
  if (restart.spkiSha256 !== spkiSha256)
    return { ...contested, observed: nextRevision({ ...record, restart: { ...restart, contested: true } }) };
  return tooEarly(restart.since, now);
}

/** A delay if this key was first requested too recently, so that the platform is not asked. */
export function restartTooEarly({ restart }: IdentityRecord, spkiSha256: string, now: Instant): Declined | undefined {
  if (restart === undefined || restart.contested || restart.spkiSha256 !== spkiSha256) return undefined;
  return tooEarly(restart.since, now);
}

function tooEarly(since: Instant, now: Instant): Declined | undefined {
  const wait = since + secondLookAfter - now;
  if (wait <= 0) return undefined;
  return secondLook('it is too early for the second look', wait);
}

function secondLook(message: string, wait = secondLookAfter): Declined {
  return later('SecondLook', message, wait);
}

function reuse(why: string): Declined {
  const message = `this machine is registered with another key and ${why}; only the node itself can renew it, or an operator reset it`;
  return refuse(violation('TofuReuse', message));
}

const contested = reuse('two other keys asked for its name since it was started');

/** An observation changes the record, so decisions that were based on the old one must be made again. */
export function nextRevision(record: IdentityRecord): IdentityRecord {
  return { ...record, rev: record.rev + 1 };
}
