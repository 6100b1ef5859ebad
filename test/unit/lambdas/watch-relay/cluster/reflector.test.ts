import { afterEach, expect, test } from 'vitest';
import type { ApiRefusal, ListWatch } from '../../../../../core/ports/kubernetes-api.ts';
import { nameOf } from '../../../../../lambdas/watch-relay/objects/request-phase.ts';
import { reflect } from '../../../../../lambdas/watch-relay/cluster/reflector.ts';
import type { RestartReason } from '../../../../../lambdas/watch-relay/cluster/reflector.ts';
import { object, recordingLog, signerName } from '../fixtures.ts';
import { createSimulatedApi } from '../simulated-api.ts';
import type { Fault, Verb } from '../simulated-api.ts';
import { createVirtualClock } from '../../../../harness/determinism/virtual-time.ts';
import { mulberry32 } from '../../../../harness/determinism/mulberry32.ts';

const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

function setUp({ objects = 0, listFault, times = 0 }: { objects?: number; listFault?: Fault; times?: number } = {}) {
  const clock = createVirtualClock();
  let left = times;
  const fault = (verb: Verb) => (verb === 'list' && left-- > 0 ? listFault : undefined);
  const server = createSimulatedApi({ clock, fault });
  for (let i = 0; i < objects; i += 1) server.create(object(`r${i}`));
  const seen: string[] = [];
  const deleted: string[] = [];
  const restarts: RestartReason[] = [];
  let synced = 0;
  const controller = new AbortController();
  const { api } = server;
  const source: ListWatch = {
    list: (query, signal) => api.list({ signerName, ...query }, signal),
    watch: (query, signal) => api.watch({ signerName, ...query }, signal),
  };
  const running = reflect(
    { signerName },
    {
      seen: (o) => void seen.push(nameOf(o) ?? '?'),
      deleted: (o) => void deleted.push(nameOf(o) ?? '?'),
      synced: () => void (synced += 1),
      restarted: (why) => void restarts.push(why),
      unreadable: () => {},
      oversized: () => {},
    },
    { source, clock, random: mulberry32(7), log: recordingLog().log },
    controller.signal,
  );
  stops.push(async () => {
    controller.abort();
    await running; // it always ends
  });
  const watching = async () => {
    await clock.until(() => server.watching() === 1);
    await clock.advance(1); // the answer is on its way
  };
  return { clock, server, seen, deleted, restarts, synced: () => synced, watching };
}

test('lists in pages of 100 and watches on from there', async () => {
  const { server, seen, deleted, synced, watching, clock } = setUp({ objects: 1_201 });
  await watching();
  expect(seen).toHaveLength(1_201);
  expect(synced()).toBe(1);
  expect(server.count('list')).toBe(13);
  server.create(object('new'));
  server.create(object('foreign', { signer: 'example.com/other' }));
  server.delete('r7');
  await clock.advance(10);
  expect(seen.slice(1_201)).toEqual(['new']);
  expect(deleted).toEqual(['r7']);
});

test('sees what happens between list and watch', async () => {
  const { server, seen, watching, clock, synced } = setUp({ objects: 1 });
  await clock.until(() => synced() === 1);
  server.create(object('between'));
  await watching();
  await clock.advance(1);
  expect(seen).toEqual(['r0', 'between']);
});

test('an expired continue token begins the list anew', async () => {
  const { server, seen, restarts, watching, clock } = setUp({ objects: 600 });
  await clock.until(() => seen.length === 500);
  server.pass();
  server.compact();
  await watching();
  expect(restarts).toEqual(['listFailed']);
  expect(seen).toHaveLength(500 + 600);
});

test('a page too large to hold is asked for in smaller ones', async () => {
  const { server, seen, restarts, watching } = setUp({ objects: 10, listFault: 'TooLarge', times: 2 });
  await watching();
  expect(seen).toHaveLength(10);
  expect(server.count('list')).toBe(2 + 4); // 100, 12, then 1, 2, 4 and 8
  expect(restarts).toEqual([]);
});

test.each<[string, Fault]>([
  ['broken connections', 'before'],
  ['throttling', 'throttled'],
  ['missing rights', 'Forbidden'],
])('%s at the list are waited out, further and further apart', async (_, listFault) => {
  const { clock, server, seen, watching } = setUp({ objects: 3, listFault, times: 12 });
  await watching();
  expect(seen).toHaveLength(3);
  expect(server.count('list')).toBe(13);
  expect(clock.monotonic()).toBeGreaterThan(30_000); // 12 tries without backoff take 12 ms
});

test('a broken watch goes on where it was, without a list', async () => {
  const { server, seen, watching, clock, restarts } = setUp({ objects: 2 });
  await watching();
  server.create(object('a'));
  await clock.advance(1);
  for (let i = 0; i < 5; i += 1) {
    server.dropWatches();
    await clock.advance(0);
    server.create(object(`meanwhile${i}`)); // while there is no watch
    await watching();
  }
  await clock.advance(1);
  expect(seen).toEqual(['r0', 'r1', 'a', ...Array.from({ length: 5 }, (_, i) => `meanwhile${i}`)]);
  expect(server.count('list')).toBe(1);
  expect(restarts).toEqual(Array.from({ length: 5 }, () => 'broken'));
});

test('a watch that the server ends in good order is begun again at once, for as long as it likes', async () => {
  const { server, clock, restarts } = setUp({ objects: 1 });
  const beat = setBookmarks(server, clock);
  await clock.advance(3_600_000);
  beat();
  expect(server.count('list')).toBe(1);
  expect(server.count('watch')).toBeGreaterThan(5);
  expect(server.count('watch')).toBeLessThan(14); // 300 to 600 s each
  expect(restarts).toEqual([]);
});

test('after a planned end it is back before anything could be missed for long', async () => {
  const { server, clock, watching } = setUp({ objects: 1 });
  await watching();
  await clock.advance(2_000);
  server.dropWatches('in good order');
  await clock.advance(1);
  expect(server.watching()).toBe(1);
  await clock.advance(2_000);
  server.dropWatches('broken');
  await clock.advance(1);
  expect(server.watching()).toBe(0); // the other watches were dropped too
});

test('bookmarks keep a quiet watch from expiring', async () => {
  const { server, seen, watching, clock } = setUp({ objects: 1 });
  await watching();
  server.pass();
  server.bookmark();
  await clock.advance(1);
  server.compact();
  server.dropWatches();
  await clock.advance(0);
  await watching();
  expect(server.count('list')).toBe(1);
  server.create(object('x'));
  await clock.advance(1);
  expect(seen).toEqual(['r0', 'x']);
});

test.each(['http', 'event'])('410 Gone as %s leads to a new list', async (how) => {
  const { server, seen, watching, clock, restarts } = setUp({ objects: 1 });
  await watching();
  server.pass();
  server.compact();
  if (how === 'event') server.sendToWatches({ type: 'ERROR', why: 'Expired', message: 'too old resource version' });
  else server.dropWatches();
  await clock.advance(0);
  server.create(object('x'));
  await watching();
  expect(restarts.at(-1)).toBe('expired');
  expect(server.count('list')).toBe(2);
  expect(seen).toEqual(['r0', 'r0', 'x']);
});

test.each<ApiRefusal | 'Unavailable'>(['Forbidden', 'Unauthorized', 'Unavailable'])(
  'an ERROR event %s keeps the place and waits',
  async (why) => {
    const { server, watching, clock, restarts } = setUp({ objects: 1 });
    await watching();
    server.sendToWatches({ type: 'ERROR', why, message: '' });
    await clock.advance(0);
    await watching();
    expect(restarts).toEqual(['refused']);
    expect(server.count('list')).toBe(1);
  },
);

test('a connection that died silently is noticed', async () => {
  const { server, watching, clock, restarts, seen } = setUp({ objects: 1 });
  await watching();
  const [first] = [server.count('watch')];
  server.bookmark();
  await clock.advance(140_000);
  expect(server.count('watch')).toBe(first);
  await clock.advance(20_000);
  expect(restarts).toEqual(['silent']);
  expect(server.count('list')).toBe(1); // heard of in between: the place is still good
  server.create(object('x'));
  await clock.advance(2_000);
  expect(seen).toEqual(['r0', 'x']);
});

test('a server that has gone back in time, and so stays silent, is listed again', async () => {
  const { server, clock, restarts } = setUp({ objects: 1 });
  await clock.advance(150_000 * 2 + 10_000);
  expect(restarts).toEqual(['silent', 'silent']);
  expect(server.count('list')).toBe(2);
});

test('watches that end at once are not begun again at once', async () => {
  const { server, clock, watching } = setUp({ objects: 1 });
  await watching();
  for (let i = 0; i < 10; i += 1) {
    await watching();
    server.dropWatches('in good order');
    await clock.advance(0);
  }
  await watching();
  expect(clock.monotonic()).toBeGreaterThan(20_000);
  expect(server.count('list')).toBe(1);
});

function setBookmarks(server: ReturnType<typeof createSimulatedApi>, clock: ReturnType<typeof createVirtualClock>) {
  let cancel = (): void => {};
  const next = (): void => {
    cancel = clock.after(60_000, () => {
      server.bookmark();
      next();
    });
  };
  next();
  return () => cancel();
}
