import { expect, test } from 'vitest';
import type { LookAnswer } from '../../../../../core/ports/signing-endpoint.ts';
import { createHints } from '../../../../../lambdas/watch-relay/cluster-api/hints.ts';
import { createVirtualClock } from '../../../../harness/determinism/virtual-time.ts';
import { recordingLog } from '../fixtures.ts';

function setUp(answer: () => LookAnswer | Error = () => ({ kind: 'accepted' })) {
  const clock = createVirtualClock();
  const calls: { at: number; nodeNames: readonly string[] }[] = [];
  const counts = { sent: 0, failed: 0, dropped: 0 };
  const attest = {
    async look(nodeNames: readonly string[]) {
      calls.push({ at: clock.monotonic(), nodeNames });
      const said = answer();
      if (said instanceof Error) throw said;
      return said;
    },
  };
  const stop = new AbortController();
  const { log, lines } = recordingLog();
  const hints = createHints(
    { attest, clock, log, count: (result, nodeNames) => void (counts[result] += nodeNames) },
    stop.signal,
  );
  return { clock, calls, counts, hints, lines, stop };
}

const names = (count: number) => Array.from({ length: count }, (_, i) => `node-${i}`);

test('a scale-in is told in calls of 20 names, one in two seconds, each name once', async () => {
  const { clock, calls, counts, hints } = setUp();
  for (const name of [...names(45), ...names(45)]) hints.add(name);
  await clock.advance(60_000);
  expect(calls.map(({ at, nodeNames }) => [at, nodeNames.length])).toEqual([
    [2_000, 20],
    [4_000, 20],
    [6_000, 5],
  ]);
  expect(calls.flatMap(({ nodeNames }) => nodeNames)).toEqual(names(45));
  expect(counts).toEqual({ sent: 45, failed: 0, dropped: 0 });
});

test('no more than 1 000 names wait', async () => {
  const { clock, counts, hints } = setUp();
  for (const name of names(1_200)) hints.add(name);
  await clock.advance(300_000);
  expect(counts).toEqual({ sent: 1_000, failed: 0, dropped: 200 });
});

test('a text that is no name of a Node is not sent: attest would refuse the names beside it', async () => {
  const { clock, calls, counts, hints } = setUp();
  for (const name of ['worker.example.com', 'Worker', '-a', 'a..b', 'a b', 'x'.repeat(254)]) hints.add(name);
  await clock.advance(60_000);
  expect(calls.map(({ nodeNames }) => nodeNames)).toEqual([['worker.example.com']]);
  expect(counts).toEqual({ sent: 1, failed: 0, dropped: 5 });
});

test.each<[string, LookAnswer | Error]>([
  ['an endpoint that is busy', { kind: 'busy' }],
  ['an endpoint that has no such path', { kind: 'unexpected', status: 404, message: '' }],
  ['no answer', new Error('connection reset')],
])('%s: the hint is lost, and later ones are sent', async (_, answer) => {
  const answers = [answer, { kind: 'accepted' } as const];
  const { clock, calls, counts, hints, lines } = setUp(() => answers.shift()!);
  hints.add('a');
  await clock.advance(60_000);
  expect(calls).toHaveLength(1);
  hints.add('b');
  await clock.advance(60_000);
  expect(counts).toEqual({ sent: 1, failed: 1, dropped: 0 });
  expect(lines.map(({ level }) => level)).toEqual(['info']);
});

test('nothing is sent after the end', async () => {
  const { clock, calls, hints } = setUp();
  hints.add('a');
  hints.close();
  hints.add('b');
  await clock.advance(60_000);
  expect(calls).toEqual([]);
});
