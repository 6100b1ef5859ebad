import { expect, test } from 'vitest';
import type { Violations } from '../../../../../core/outcome/outcome.ts';
import type { JsonObject } from '../../../../../core/ports/kubernetes-api.ts';
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

test('a refusal names each code once, before its messages, and ends with the command that explains it', async () => {
  const notes = async (violations: Violations, name = 'csr-1'): Promise<unknown> => {
    const server = createSimulatedApi({ clock: createVirtualClock() });
    const sent: { reason: unknown; note: unknown }[] = [];
    const api = {
      ...server.api,
      createEvent: async (event: JsonObject) => {
        sent.push({ reason: event['reason'], note: event['note'] });
        return { ok: true, value: event } as const;
      },
    };
    const events = createEventSink(api, createVirtualClock(), 'me', new AbortController().signal, () => undefined);
    events.refused({ ...key('a'), name }, violations);
    await events.idle();
    return sent[0];
  };
  const subject = { code: 'SubjectNotPermitted', message: 'the common name "a" is not permitted' } as const;
  expect(await notes([subject])).toEqual({
    reason: 'SubjectNotPermitted',
    note: 'the common name "a" is not permitted. More: countersign csr explain csr-1',
  });
  const others = [
    { code: 'SanNotPermitted', message: 'no DNS name' },
    { code: 'SubjectNotPermitted', message: 'no organization' },
    { code: 'SanNotPermitted', message: 'no address' },
  ] as const;
  expect(await notes([subject, ...others])).toEqual({
    reason: 'SubjectNotPermitted',
    note: 'the common name "a" is not permitted; no organization. SanNotPermitted: no DNS name; no address. More: countersign csr explain csr-1',
  });
  const long = { code: 'SanNotPermitted', message: 'ü'.repeat(2_000) } as const;
  const name = 'n'.repeat(253);
  const { note } = (await notes([long], name)) as { note: string };
  expect(Buffer.byteLength(note)).toBeLessThanOrEqual(1_024);
  expect(note.endsWith(`. More: countersign csr explain ${name}`)).toBe(true);
});
