import { expect, test } from 'vitest';
import { keepFresh } from '../../../../adapters/aws/sigv4-freshness.ts';
import type { RoleCredentials } from '../../../../adapters/aws/sigv4-freshness.ts';

/** STS whose answers come when the test says, an hour's each, on a clock that the test sets. */
function world() {
  let time = 0;
  const waiting: { give: () => void; fail: (error: Error) => void }[] = [];
  let given = 0;
  const get = keepFresh(
    () =>
      new Promise<RoleCredentials>((resolve, reject) => {
        waiting.push({
          give: () =>
            resolve({ accessKeyId: `k${++given}`, secretAccessKey: 's', expiration: new Date(time + 3_600_000) }),
          fail: reject,
        });
      }),
    () => time,
  );
  return {
    asked: () => waiting.length,
    at: (seconds: number) => (time = seconds * 1_000),
    ask: () => get().then(({ accessKeyId }) => accessKeyId),
    answer: () => waiting.at(-1)?.give(),
    fail: () => waiting.at(-1)?.fail(new Error('away')),
  };
}

test('many callers at once are one call', async () => {
  const { ask, answer, asked } = world();
  const callers = Promise.all([ask(), ask(), ask()]);
  answer();
  expect(await callers).toEqual(['k1', 'k1', 'k1']);
  expect(asked()).toBe(1);
});

test('what failed is asked for again by the next caller', async () => {
  const { ask, answer, fail, asked } = world();
  const first = ask();
  fail();
  await expect(first).rejects.toThrow('away');
  const second = ask();
  answer();
  expect(await second).toBe('k1');
  expect(asked()).toBe(2);
});

/** Holding `k1`, which ends at 3600 s. */
async function holding() {
  const made = world();
  const first = made.ask();
  made.answer();
  await first;
  return made;
}

test('with five minutes left new ones are asked for while the old serve', async () => {
  const { ask, answer, asked, at } = await holding();
  at(3_299);
  expect(await ask()).toBe('k1');
  expect(asked()).toBe(1);
  at(3_300);
  expect(await ask()).toBe('k1');
  expect(await ask()).toBe('k1');
  expect(asked()).toBe(2);
  answer();
  await new Promise((resolve) => setImmediate(resolve));
  expect(await ask()).toBe('k2');
});

test('with a minute left callers wait for the new ones', async () => {
  const { ask, answer, at } = await holding();
  at(3_540);
  const waiting = ask();
  answer();
  expect(await waiting).toBe('k2');
});

test('while none are to be had the old ones serve to their end, and STS is asked every ten seconds', async () => {
  const { ask, asked, at, fail } = await holding();
  at(3_540);
  for (let second = 3_540; second < 3_600; second += 1) {
    at(second);
    const before = asked();
    const waiting = ask();
    if (asked() > before) fail();
    expect(await waiting).toBe('k1');
  }
  expect(asked()).toBe(1 + 6);
  at(3_600);
  const waiting = ask();
  fail();
  await expect(waiting).rejects.toThrow('away');
});
