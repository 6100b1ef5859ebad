import { beforeEach, describe, expect, test } from 'vitest';
import {
  causes,
  createAttention,
  lastingMilliseconds,
} from '../../../../../lambdas/watch-relay/request/alarm-policy.ts';
import type { Attention } from '../../../../../lambdas/watch-relay/request/alarm-policy.ts';
import type { RetryCause } from '../../../../../lambdas/watch-relay/request/result.ts';
import { createVirtualClock } from '../../../../harness/determinism/virtual-time.ts';

let clock: ReturnType<typeof createVirtualClock>;
let attention: Attention;
beforeEach(() => {
  clock = createVirtualClock();
  attention = createAttention(clock);
});

const all = Object.keys(causes) as RetryCause[];
test.each(all.filter((cause) => cause !== 'ApiForbidden'))('%s is one at once or never', (cause) => {
  const expected = causes[cause].alarm === 'first';
  expect(attention.needed('a/b', cause)).toBe(expected);
  expect(attention.needed('a/b', cause)).toBe(expected);
});

describe('a denial by the API server', () => {
  /** Denials this far apart, until one is an alarm or that many were none. */
  async function alarmAfter(stepMilliseconds: number, between: () => void = () => {}): Promise<number | undefined> {
    for (let denials = 1; denials <= 20; denials += 1) {
      if (attention.needed('a/b', 'ApiForbidden')) return (denials - 1) * stepMilliseconds;
      between();
      await clock.advance(stepMilliseconds);
    }
    return undefined;
  }

  test('is an alarm once it has lasted, and stays one', async () => {
    expect(await alarmAfter(2_000)).toBe(lastingMilliseconds);
    expect(attention.needed('a/b', 'ApiForbidden')).toBe(true);
  });

  test('of a request that comes back as seldom as requests do is one too', async () => {
    expect(await alarmAfter(59_000)).toBe(59_000);
  });

  test('is none where a write goes through, or the server goes away, now and then', async () => {
    expect(await alarmAfter(10_000, () => attention.allowed('a/b'))).toBeUndefined();
    expect(await alarmAfter(10_000, () => void attention.needed('a/b', 'ApiUnreachable'))).toBeUndefined();
  });

  test('long after another one is a new beginning: a restart a day', async () => {
    expect(await alarmAfter(86_400_000)).toBeUndefined();
  });

  test('is not excused by other answers, nor by what another signer may', async () => {
    const others = (): void => {
      attention.allowed('other/signer');
      for (const cause of all)
        if (cause !== 'ApiForbidden' && cause !== 'ApiUnreachable') attention.needed('a/b', cause);
    };
    expect(await alarmAfter(10_000, others)).toBe(lastingMilliseconds);
    expect(attention.needed('other/signer', 'ApiForbidden')).toBe(false);
  });
});
