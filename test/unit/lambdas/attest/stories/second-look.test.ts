/** What needs two observations apart in time: the tables of docs/attestation.md, row by row. */
import { describe, expect, test } from 'vitest';
import type { IdentityRecord } from '../../../../../core/ports/attestation-store.ts';
import type { MachineState } from '../../../../../core/attestation/evidence/provider.ts';
import {
  checkHolderGone,
  checkRestarted,
  clockLeeway,
  firstLookLasts,
  holderTooEarly,
  restartTooEarly,
  secondLookAfter,
} from '../../../../../core/attestation/second-look.ts';
import type { Declined } from '../../../../../core/attestation/declined.ts';

const minute = 60_000;
const hour = 60 * minute;
const now = Date.UTC(2026, 0, 2);
const window = 15 * minute;

const recorded: IdentityRecord = {
  identity: 'aws#m1',
  nodeName: 'node-1',
  state: 'active',
  spkiSha256: 'old',
  previousSpkis: [],
  providerId: 'aws:///a/m1',
  startedAt: now - 10 * hour,
  addresses: [],
  firstSeen: now - 9 * hour,
  lastSeen: now - 2 * hour,
  renewals: 0,
  uses: 1,
  lastUid: 'u1',
  rev: 7,
};

/** The decision, and what of the record is written with it. */
function decisionOf(declined: Declined | undefined): readonly [string, ...unknown[]] {
  if (declined === undefined) return ['allowed'];
  const decision =
    declined.kind === 'later' ? ['later', declined.error.afterMilliseconds] : [declined.violations[0].code];
  return [...decision, ...(declined.observed === undefined ? [] : [seen(declined.observed)])] as [string, ...unknown[]];
}

function seen({ rev, unknownSince, restart, ...others }: IdentityRecord): object {
  const { rev: before, ...same } = recorded;
  expect(rev).toBe(before + 1);
  expect(others).toEqual({ ...same, lastSeen: others.lastSeen });
  return { unknownSince, restart };
}

describe('a name passes on from a machine', () => {
  const machine = {} as Extract<MachineState, { kind: 'running' }>['machine'];
  const running = { kind: 'running', machine, violations: [] } as const;
  const unknown = { kind: 'unknown' } as const;
  const erased = { unknownSince: undefined, restart: undefined };
  const marked = { unknownSince: now, restart: undefined };
  type Row = readonly [row: string, state: MachineState, record: Partial<IdentityRecord>, ...expected: unknown[]];
  const rows: readonly Row[] = [
    ['terminated: at once', { kind: 'gone' }, { lastSeen: now }, 'allowed'],
    ['running', running, {}, 'TofuNodeTaken'],
    ['stopped', { kind: 'stopped' }, {}, 'TofuNodeTaken'],
    ['running, with a first look: erased', running, { unknownSince: now - 3 * minute }, 'TofuNodeTaken', erased],
    ['stopped, likewise', { kind: 'stopped' }, { unknownSince: now - minute }, 'TofuNodeTaken', erased],
    ['unknown, used a minute ago', unknown, { lastSeen: now - minute }, 'TofuNodeTaken'],
    ['unknown, used an hour ago to the millisecond', unknown, { lastSeen: now - hour }, 'TofuNodeTaken'],
    ['unknown: the first look', unknown, {}, 'later', secondLookAfter, marked],
    ['unknown, a moment after the first look', unknown, { unknownSince: now - 1 }, 'later', secondLookAfter - 1],
    ['unknown, just before the second', unknown, { unknownSince: now - secondLookAfter + 1 }, 'later', 1],
    ['unknown: the second look', unknown, { unknownSince: now - secondLookAfter }, 'allowed'],
    ['unknown, as late as can be', unknown, { unknownSince: now - firstLookLasts }, 'allowed'],
    [
      'unknown, a first look that is too old counts for none',
      unknown,
      { unknownSince: now - firstLookLasts - 1 },
      'later',
      secondLookAfter,
      marked,
    ],
    [
      'unknown, a first look by a clock that was a little ahead',
      unknown,
      { unknownSince: now + 1_000 },
      'later',
      secondLookAfter + 1_000,
    ],
    [
      'unknown, a first look by a clock that was wrong',
      unknown,
      { unknownSince: now + clockLeeway + 1 },
      'later',
      secondLookAfter,
      marked,
    ],
  ];
  test.for(rows)('finding 14: %s', ([, state, record, ...expected]) => {
    expect(decisionOf(checkHolderGone({ ...recorded, ...record }, state, now))).toEqual(expected);
  });

  test.each([
    ['no first look', undefined, ['allowed']],
    ['a first look just now', now - 1, ['later', secondLookAfter - 1]],
    ['one of two minutes ago', now - secondLookAfter, ['allowed']],
    ['one that is too old', now - firstLookLasts - 1, ['allowed']],
    ['one by a clock that was wrong', now + clockLeeway + 1, ['allowed']],
  ])('finding 14: whether the platform need not be asked: %s', (_, unknownSince, expected) => {
    const record = unknownSince === undefined ? recorded : { ...recorded, unknownSince };
    expect(decisionOf(holderTooEarly(record, now))).toEqual(expected);
  });
});

describe('another key after a stop and start', () => {
  const started = now - 5 * minute;
  const first = (since: number, more: Partial<NonNullable<IdentityRecord['restart']>> = {}) => ({
    restart: { startedAt: started, since, spkiSha256: 'new', contested: false, ...more },
  });
  const looked = (since: number, more = {}) => ({ unknownSince: undefined, ...first(since, more) });
  type Row = readonly [
    row: string,
    startedAt: number | undefined,
    record: Partial<IdentityRecord>,
    ...expected: unknown[],
  ];
  const rows: readonly Row[] = [
    ['no start is told', undefined, {}, 'TofuReuse'],
    ['a start that is no time', Number.NaN, {}, 'TofuReuse'],
    ['the start on record: rebooted, or the old key was used since', recorded.startedAt, {}, 'TofuReuse'],
    ['a start before the one on record', (recorded.startedAt ?? 0) - 1, {}, 'TofuReuse'],
    ['no start on record', started, { startedAt: undefined } as object, 'TofuReuse'],
    [
      'a start in the future, within the leeway',
      now + clockLeeway,
      {},
      'later',
      secondLookAfter,
      looked(now, { startedAt: now + clockLeeway }),
    ],
    ['a start further in the future', now + clockLeeway + 1, {}, 'TofuReuse'],
    ['the first look', started, {}, 'later', secondLookAfter, looked(now)],
    [
      'the first look at the end of the window',
      now - window,
      {},
      'later',
      secondLookAfter,
      looked(now, { startedAt: now - window }),
    ],
    ['after the window', now - window - 1, {}, 'TofuReuse'],
    ['a moment after the first look', started, first(now - 1), 'later', secondLookAfter - 1],
    ['the second look', started, first(now - secondLookAfter), 'allowed'],
    [
      'the second look after the window',
      now - window - 1,
      first(now - 3 * minute, { startedAt: now - window - 1 }),
      'TofuReuse',
    ],
    [
      'a first look after an earlier start counts for none',
      started,
      first(now - 3 * minute, { startedAt: started - 1 }),
      'later',
      secondLookAfter,
      looked(now),
    ],
    [
      'another key since: neither',
      started,
      first(now - 3 * minute, { spkiSha256: 'third' }),
      'TofuReuse',
      looked(now - 3 * minute, { spkiSha256: 'third', contested: true }),
    ],
    ['the first key, once another asked too', started, first(now - 3 * minute, { contested: true }), 'TofuReuse'],
    [
      'a third key, once another asked too',
      started,
      first(now - 3 * minute, { spkiSha256: 'third', contested: true }),
      'TofuReuse',
    ],
    [
      'contested after an earlier start: begun anew',
      started,
      first(now - hour, { startedAt: started - hour, contested: true }),
      'later',
      secondLookAfter,
      looked(now),
    ],
    ['a first look by a clock a little ahead', started, first(now + 1_000), 'later', secondLookAfter + 1_000],
    [
      'a first look by a clock that was wrong: never, within the window',
      started,
      first(now + hour),
      'later',
      secondLookAfter + hour,
    ],
  ];
  test.for(rows)('finding 8: %s', ([, startedAt, record, ...expected]) => {
    const question = { record: { ...recorded, ...record }, spkiSha256: 'new', startedAt, window, now };
    expect(decisionOf(checkRestarted(question))).toEqual(expected);
  });

  test('finding 8: the window is the configured one', () => {
    const question = { record: recorded, spkiSha256: 'new', startedAt: now - 20 * minute, now };
    expect(decisionOf(checkRestarted({ ...question, window: 20 * minute }))[0]).toBe('later');
    expect(decisionOf(checkRestarted({ ...question, window: 19 * minute }))[0]).toBe('TofuReuse');
  });

  test.each([
    ['no first look', {}, ['allowed']],
    ['a first look of this key just now', first(now - 1), ['later', secondLookAfter - 1]],
    ['of another key', first(now - 1, { spkiSha256: 'third' }), ['allowed']],
    ['contested', first(now - 1, { contested: true }), ['allowed']],
    ['two minutes ago', first(now - secondLookAfter), ['allowed']],
  ])('finding 8: whether the platform need not be asked: %s', (_, record, expected) => {
    expect(decisionOf(restartTooEarly({ ...recorded, ...record }, 'new', now))).toEqual(expected);
  });
});
