/** The search in CloudWatch Logs: every page, within bounds, and what an operator reads when it is not possible. */
import { expect, test } from 'vitest';
import { openFunctionLogs } from '../../../../cli/trace/function-logs.ts';
import { startFakeLogs } from './fake-logs.ts';

const region = 'eu-central-1';
const search = { of: 'sign', pattern: '{ $.uid = "u-1" }', from: 1_000, to: 9_000 } as const;
const event = (timestamp: number, uid: string) => ({ timestamp, message: JSON.stringify({ uid }) });

test('it reads every page, also after an empty one, and only the time that is asked for', async () => {
  const fake = await startFakeLogs();
  const others = [event(2_000, 'u-2'), event(2_001, 'u-3'), { timestamp: 2_002, message: 'START RequestId: u-1' }];
  fake.groups.set('sign', [
    event(999, 'u-1'),
    ...others,
    event(3_000, 'u-1'),
    event(9_001, 'u-1'),
    event(9_000, 'u-1'),
  ]);
  const logs = openFunctionLogs({ region });
  expect(await logs.search('sign', search)).toEqual({
    lines: [
      { at: 3_000, text: '{"uid":"u-1"}' },
      { at: 9_000, text: '{"uid":"u-1"}' },
    ],
  });
  expect(fake.calls).toHaveLength(4);
  expect(fake.calls[0]).toEqual({
    logGroupName: 'sign',
    filterPattern: search.pattern,
    startTime: 1_000,
    endTime: 9_000,
  });
  logs.close();
});

test('it ends after 50 pages, 500 lines or a minute, and says so', async () => {
  const fake = await startFakeLogs();
  const logs = openFunctionLogs({ region });
  fake.groups.set(
    'sign',
    Array.from({ length: 200 }, () => event(2_000, 'u-2')),
  );
  expect(await logs.search('sign', search)).toEqual({ lines: [], endedEarly: 'after 50 pages' });
  expect(fake.calls).toHaveLength(50);

  fake.pageSize = 300;
  fake.groups.set(
    'sign',
    Array.from({ length: 2_000 }, () => event(2_000, 'u-1')),
  );
  const { lines, endedEarly } = await logs.search('sign', search);
  expect([lines.length, endedEarly]).toEqual([500, 'after 500 lines']);

  let time = 0;
  const slow = openFunctionLogs({ region }, () => (time += 40_000));
  fake.groups.set(
    'sign',
    Array.from({ length: 2_000 }, () => event(2_000, 'u-2')),
  );
  expect(await slow.search('sign', search)).toEqual({ lines: [], endedEarly: 'after 60 s' });
  slow.close();
  logs.close();
});

test('without the permission the hint names it; a throttled call is repeated', async () => {
  const fake = await startFakeLogs();
  fake.groups.set('sign', [event(2_000, 'u-1')]);
  const logs = openFunctionLogs({ region });
  fake.errors.push('AccessDeniedException');
  await expect(logs.search('sign', search)).rejects.toMatchObject({
    code: 3,
    message: 'CloudWatch Logs refuses: AccessDeniedException: may not',
    hint: 'it needs logs:FilterLogEvents on sign',
  });
  fake.errors.push('ThrottlingException', 'ServiceUnavailableException');
  expect((await logs.search('sign', search)).lines).toHaveLength(1);
  await expect(logs.search('gone', search)).rejects.toMatchObject({ code: 4 });
  logs.close();
});
