import { expect, test } from 'vitest';
import { createEventSink } from '../../../../../lambdas/watch-relay/request/events.ts';
import { createSimulatedApi } from '../simulated-api.ts';
import { createVirtualClock } from '../../../../harness/determinism/virtual-time.ts';

const key = (uid: string) => ({ uid, name: `name-${uid}`, signerName: 's' });

test('one Event after another, and whatever becomes of one, the next is sent', async () => {
  const clock = createVirtualClock();
  const api = createSimulatedApi({ clock }).api;
  const sent: unknown[] = [];
  const ends: (() => Promise<never>)[] = [
    () => {
      throw new Error('before it is a promise');
    },
    () => Promise.reject(new Error('later')),
  ];
  const results: string[] = [];
  const events = createEventSink(
    {
      ...api,
      createEvent: (event) => {
        sent.push((event['regarding'] as { uid: string }).uid);
        return ends.shift()?.() ?? Promise.resolve({ ok: true, value: event });
      },
    },
    clock,
    'me',
    new AbortController().signal,
    (result) => results.push(result),
  );
  for (const uid of ['a', 'b', 'c']) {
    events.backlogged(key(uid));
    await events.idle();
  }
  events.backlogged(key('d'));
  events.delayed(key('e'), 'EndpointBusy');
  await events.idle();
  expect(sent).toEqual(['a', 'b', 'c', 'd', 'e']);
  expect(results).toEqual(['failed', 'failed', 'created', 'created', 'created']);
});
