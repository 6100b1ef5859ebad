import { afterEach, describe, expect, test } from 'vitest';
import type { SignAnswer } from '../../../../core/ports/signing-endpoint.ts';
import type { RelayOptions } from '../../../../lambdas/watch-relay/settings/options.ts';
import { createRelay } from '../../../../lambdas/watch-relay/relay.ts';
import { approved, denied, goodPem, object, otherPem, recordingLog, signerName } from './fixtures.ts';
import { createSimulatedApi } from './simulated-api.ts';
import type { Fault, SimulatedApiOptions } from './simulated-api.ts';
import { createSimulatedEndpoint, issued, refusal } from './simulated-endpoint.ts';
import type { SimulatedEndpointOptions } from './simulated-endpoint.ts';
import { createSimulatedLease } from './simulated-lease.ts';
import { createVirtualClock } from '../../../harness/determinism/virtual-time.ts';
import { byTier } from '../../../harness/determinism/tier.ts';
import { mulberry32 } from '../../../harness/determinism/mulberry32.ts';

const stops: (() => void)[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

const otherSigner = 'kubernetes.io/kubelet-serving';

interface World {
  readonly options?: Partial<RelayOptions>;
  readonly api?: Omit<SimulatedApiOptions, 'clock'>;
  readonly endpoint?: Omit<SimulatedEndpointOptions, 'clock'>;
  readonly lease?: true;
  readonly seed?: number;
}

function setUp({ options = {}, api = {}, endpoint = {}, lease, seed = 1 }: World = {}) {
  const clock = createVirtualClock();
  const server = createSimulatedApi({ clock, ...api });
  const signer = createSimulatedEndpoint({ clock, ...endpoint });
  const { log, lines } = recordingLog();
  const leases = createSimulatedLease(clock);
  const relay = createRelay(
    {
      signerNames: [signerName, otherSigner],
      policies: new Map(),
      concurrency: 16,
      inFlightPerRequester: 16,
      graceMilliseconds: 20_000,
      identity: 'relay-0',
      ...options,
    },
    {
      api: server.api,
      endpoint: signer.endpoint,
      clock,
      random: mulberry32(seed),
      log,
      ...(lease === undefined ? {} : { lease: leases.access() }),
    },
  );
  const stop = new AbortController();
  const state = { ended: false };
  const beat = (): void => {
    server.bookmark();
    clock.after(60_000, beat);
  };
  const start = () => {
    clock.after(60_000, beat);
    void relay.run(stop.signal).then(() => (state.ended = true));
  };
  stops.push(() => stop.abort());
  const statusOf = (name: string) => server.find(name)?.status ?? {};
  const failedReason = (name: string) =>
    ((statusOf(name)['conditions'] ?? []) as { type: string; reason: string }[]).find(({ type }) => type === 'Failed')
      ?.reason;
  const answered = (name: string) => statusOf(name)['certificate'] !== undefined || failedReason(name) !== undefined;
  const metric = async (line: RegExp) => {
    const found = (await relay.metrics.exposition())
      .split('\n')
      .filter((text) => !text.startsWith('#') && line.test(text));
    return found.reduce((sum, text) => sum + Number(text.split(' ').at(-1)), 0);
  };
  return { clock, server, signer, relay, lines, leases, stop, start, state, statusOf, failedReason, answered, metric };
}

test('what is approved is issued, what is not is left alone, before and after the start', async () => {
  const world = setUp();
  const { clock, server, start, statusOf, signer } = world;
  server.create(object('before'));
  server.create(object('pending', { conditions: [] }));
  server.create(object('denied', { conditions: [denied] }));
  server.create(object('both', { conditions: [approved, denied] }));
  server.create(object('foreign', { signer: 'example.com/foreign' }));
  start();
  await clock.until(() => world.answered('before'));
  server.create(object('after', { signer: otherSigner }));
  server.create(object('later', { conditions: [] }));
  await clock.advance(10_000);
  server.addCondition('later', approved);
  await clock.until(() => world.answered('after') && world.answered('later'));
  await clock.advance(600_000);
  for (const name of ['pending', 'denied', 'both', 'foreign']) expect(world.answered(name)).toBe(false);
  expect(statusOf('before')['certificate']).toBe(Buffer.from(goodPem).toString('base64'));
  expect([...signer.calls]).toEqual([
    ['before', 1],
    ['after', 1],
    ['later', 1],
  ]);
  expect(server.count('get')).toBe(0); // each object just came by
  expect(server.count('updateStatus')).toBe(3);
  expect(server.crimes).toEqual([]);
  expect(await world.metric(/requests_total\{.*outcome="issued"/)).toBe(3);
  expect(await world.metric(/issue_latency_seconds_count/)).toBe(3);
});

test('a burst takes three calls a request and as many at once as allowed', async () => {
  const world = setUp({ options: { concurrency: 8 } });
  const { clock, server, start, signer } = world;
  start();
  await clock.until(() => world.relay.health.problems().length === 0);
  const names = Array.from({ length: 300 }, (_, i) => `r${i}`);
  for (const name of names) server.create(object(name));
  await clock.until(() => names.every(world.answered));
  expect(signer.mostAtOnce()).toBe(8);
  expect(signer.total()).toBe(300);
  expect(server.count('updateStatus')).toBe(300);
  expect(server.count('get')).toBe(0);
  expect(server.count('list')).toBe(2); // one per signer: nothing polls
});

test('tens of thousands of answered requests leave nothing behind', async () => {
  const count = byTier({ default: 10_000, deep: 50_000 });
  const world = setUp();
  const { clock, server, start } = world;
  const done = object('template');
  const certificate = Buffer.from(goodPem).toString('base64');
  for (let i = 0; i < count; i += 1)
    server.create({
      ...done,
      metadata: { ...done.metadata, name: `r${i}`, uid: `u${i}` },
      status: { conditions: [approved], certificate },
    });
  server.create(object('last'));
  start();
  await clock.until(() => world.answered('last'));
  // In pages of a hundred.
  expect(server.count('list')).toBe(count / 100 + 2);
  expect(await world.metric(/held_object_bytes/)).toBe(0);
  expect(await world.metric(/queue_depth/)).toBe(0);
});

test('more approved objects than fit in memory are all answered, the rest by GET', async () => {
  const world = setUp();
  const { clock, server, start } = world;
  const large = object('x');
  large.metadata.annotations['example.com/unknown'] = 'x'.repeat(100_000);
  const names = Array.from({ length: 200 }, (_, i) => `r${i}`);
  for (const name of names) server.create({ ...large, metadata: { ...large.metadata, name, uid: `uid-${name}` } });
  start();
  await clock.until(() => names.every(world.answered));
  expect(server.count('get')).toBeGreaterThan(50);
  expect(server.count('get')).toBeLessThan(150);
});

describe('a refusal', () => {
  test('is written as Failed and told in an Event with its code, once', async () => {
    const world = setUp({ endpoint: { answer: () => refusal } });
    world.server.create(object('bad', { uid: 'UID-1' }));
    world.start();
    await world.clock.until(() => world.server.events.size > 0);
    expect(world.failedReason('bad')).toBe('SignerValidationFailure');
    expect([...world.server.events]).toEqual([
      [
        'countersign-uid-1.refused',
        expect.objectContaining({
          type: 'Warning',
          reason: 'SignerValidationFailure',
          note:
            'subject organization is not system:nodes. KeyNotPermitted: RSA 1024 is too short. ' +
            'More: countersign csr explain bad',
          regarding: expect.objectContaining({ name: 'bad', uid: 'UID-1' }) as unknown,
        }),
      ],
    ]);
    expect(await world.metric(/requests_total\{.*outcome="refused"/)).toBe(1);
  });

  test.each<Fault>(['Forbidden', 'before', 'throttled'])('does not wait for its Event (%s)', async (fault) => {
    const world = setUp({
      endpoint: { answer: () => refusal },
      api: { fault: (verb) => (verb === 'createEvent' ? fault : undefined) },
    });
    const names = Array.from({ length: 400 }, (_, i) => `r${i}`);
    for (const name of names) world.server.create(object(name));
    world.start();
    await world.clock.until(() => names.every(world.answered));
    await world.clock.advance(10_000);
    expect(await world.metric(/events_total\{result="created"/)).toBe(0);
    expect(await world.metric(/events_total/)).toBe(400 + 1); // one more says that they are many
    expect(world.relay.health.problems()).toEqual([]);
  });
});

test('Events that the API server is slow to take do not pile up, nor hold up a drain', async () => {
  const world = setUp({
    endpoint: { answer: () => refusal },
    api: { latency: (verb) => (verb === 'createEvent' ? 600_000 : 1) },
  });
  const names = Array.from({ length: 400 }, (_, i) => `r${i}`);
  for (const name of names) world.server.create(object(name));
  world.start();
  await world.clock.until(() => names.every(world.answered));
  await world.clock.advance(1_000);
  expect(await world.metric(/events_total\{result="dropped"/)).toBe(400 + 1 - 256 - 1);
  world.stop.abort();
  await world.clock.until(() => world.state.ended, 20_000);
});

test('issuing a burst makes no Events', async () => {
  const world = setUp();
  for (let i = 0; i < 50; i += 1) world.server.create(object(`r${i}`));
  world.start();
  await world.clock.until(() => world.answered('r49'));
  await world.clock.advance(1_000);
  expect(world.server.count('createEvent')).toBe(0);
});

describe('an endpoint', () => {
  test('that is busy is asked less and less, and gets every request in the end', async () => {
    const open = { at: 120_000 };
    const world = setUp({
      endpoint: {
        latency: () => 2,
        answer: () => (world.clock.monotonic() < open.at ? { kind: 'busy', retryAfterSeconds: 1 } : issued),
      },
    });
    const names = Array.from({ length: 500 }, (_, i) => `r${i}`);
    for (const name of names) world.server.create(object(name));
    world.start();
    await world.clock.advance(20_000);
    expect(await world.metric(/concurrency_limit\{step="sign"\}/)).toBe(1);
    const before = world.signer.total();
    await world.clock.advance(100_000);
    // With one at a time and gaps of up to 5 s: knocking, not hammering.
    expect(world.signer.total() - before).toBeLessThan(100_000 / 1_000);
    await world.clock.until(() => names.every(world.answered), 900_000);
    expect(await world.metric(/concurrency_limit\{step="sign"\}/)).toBe(16);
    expect(world.lines.filter(({ level }) => level === 'error')).toEqual([]); // busy is no alarm
    expect(world.server.crimes).toEqual([]);
  });

  test.each([
    ['whose CA of one signer is broken', { kind: 'busy', why: 'Internal', retryAfterSeconds: 2 }],
    ['that does not let one signer in', { kind: 'unauthorized', message: 'HTTP 403' }],
    ['that is at work on many already', { kind: 'busy', why: 'InProgress', retryAfterSeconds: 1 }],
  ] satisfies readonly [string, SignAnswer][])('%s goes on answering for the other signer', async (_, answer) => {
    const world = setUp({
      options: { concurrency: 64 },
      endpoint: { latency: () => 50, answer: (name) => (name.startsWith('broken') ? answer : issued) },
    });
    const names = Array.from({ length: 300 }, (__, i) => `r${i}`);
    for (let i = 0; i < 50; i += 1) world.server.create(object(`broken${i}`, { signer: otherSigner }));
    for (const name of names) world.server.create(object(name));
    world.start();
    const from = world.clock.monotonic();
    await world.clock.until(() => names.every(world.answered), 900_000);
    // Alone they take 2 s; as much as others who wanted the same quota got once, they took three minutes.
    expect(world.clock.monotonic() - from).toBeLessThan(15_000);
  });

  test('that asks for time gets it', async () => {
    const world = setUp({
      endpoint: { answer: (_, call) => (call === 1 ? { kind: 'busy', retryAfterSeconds: 7 } : issued) },
    });
    world.server.create(object('r'));
    world.start();
    await world.clock.advance(6_990);
    expect(world.signer.total()).toBe(1);
    await world.clock.advance(300); // the jitter of a first try comes on top
    expect(world.answered('r')).toBe(true);
  });

  test.each<[string, SignAnswer]>([
    ['429 or 503', { kind: 'busy' }],
    ['500, as API Gateway where Lambda throttles', { kind: 'functionFailed', status: 500 }],
  ])('that can bear four at once and else answers %s is used by about four', async (_, else_) => {
    const world = setUp({
      endpoint: {
        latency: () => 20,
        answer: () => (world.signer.underWay() >= 4 ? else_ : issued),
      },
    });
    const names = Array.from({ length: 2_000 }, (_, i) => `r${i}`);
    for (const name of names) world.server.create(object(name));
    world.start();
    await world.clock.until(() => names.every(world.answered));
    // At four the whole time it would take 10 s; at one, 40 s.
    expect(world.clock.monotonic()).toBeLessThan(25_000);
    expect(world.signer.total()).toBeLessThan(2_000 * 1.6);
  });

  test('without its function: an alarm only if that lasts', async () => {
    const world = setUp({ endpoint: { answer: () => ({ kind: 'functionFailed', status: 500 }) } });
    world.server.create(object('r'));
    world.start();
    const alarms = () => world.lines.filter(({ level }) => level === 'error');
    await world.clock.until(() => world.signer.total() === 8);
    await world.clock.advance(10);
    expect(alarms()).toEqual([]);
    await world.clock.until(() => world.signer.total() === 12, 200_000);
    expect(alarms().length).toBeGreaterThan(1);
    expect(alarms()[0]?.fields).toMatchObject({ cause: 'EndpointFunctionFailed', detail: 'HTTP 500' });
  });

  test.each<[string, SignAnswer | Error, string]>([
    ['unknown to IAM', { kind: 'unauthorized', message: 'HTTP 403' }, 'EndpointUnauthorized'],
    ['behind a strange proxy', { kind: 'unexpected', status: 404, message: '?' }, 'EndpointUnexpected'],
    ['issuing for other keys', { kind: 'issued', certificatePem: otherPem }, 'CertificateUnusable'],
  ])('%s raises an alarm, ends nothing, and the owner hears of the delay', async (_, answer, cause) => {
    const mended = { at: 300_000 };
    const world = setUp({ endpoint: { answer: () => (world.clock.monotonic() < mended.at ? answer : issued) } });
    world.server.create(object('r'));
    world.start();
    await world.clock.advance(290_000);
    expect(world.statusOf('r')).toEqual({ conditions: [approved] });
    expect(
      world.lines.filter(({ level, fields }) => level === 'error' && fields['cause'] === cause).length,
    ).toBeGreaterThan(5);
    expect(await world.metric(new RegExp(`retries_total\\{cause="${cause}"`))).toBeGreaterThan(5);
    expect([...world.server.events.keys()]).toEqual(['countersign-uid-r.delayed']);
    expect(world.relay.health.problems()).toEqual(
      cause === 'EndpointUnauthorized' ? ['not authorized: sign endpoint'] : [],
    );
    await world.clock.until(() => world.answered('r'), 100_000);
    expect(world.relay.health.problems()).toEqual([]);
  });

  test.each<[SignAnswer, string]>([
    [{ kind: 'ignored' }, 'ignored'],
    [{ kind: 'invalid' }, 'invalid'],
  ])('that says $kind is not asked again until the request changes', async (answer, outcome) => {
    const world = setUp({ endpoint: { answer: (_, call) => (call === 1 ? answer : issued) } });
    world.server.create(object('r'));
    world.start();
    await world.clock.advance(3_600_000);
    expect(world.signer.total()).toBe(1);
    expect(await world.metric(new RegExp(`requests_total.*outcome="${outcome}"`))).toBe(1);
    world.server.change('r', (old) => ({ ...old, metadata: { ...old.metadata, labels: { a: 'b' } } }));
    await world.clock.until(() => world.answered('r'));
  });
});

test.each([0, 50])(
  'a change while the certificate is made is no reason to ask twice (watch %i ms late)',
  async (watchLag) => {
    const world = setUp({ api: { watchLag }, endpoint: { latency: () => 100 } });
    world.server.create(object('r'));
    world.start();
    await world.clock.until(() => world.signer.underWay() === 1);
    world.server.change('r', (old) => ({ ...old, metadata: { ...old.metadata, labels: { a: 'b' } } }));
    await world.clock.until(() => world.answered('r'));
    await world.clock.advance(10_000);
    expect(world.signer.total()).toBe(1);
    expect(await world.metric(/requests_total/)).toBe(1);
    expect(await world.metric(/held_object_bytes|queue_depth/)).toBe(0);
  },
);

test('an object deleted while it waits is forgotten', async () => {
  const world = setUp({ endpoint: { answer: () => ({ kind: 'busy' }) } });
  world.server.create(object('r'));
  world.start();
  await world.clock.advance(60_000);
  const before = world.signer.total();
  world.server.delete('r');
  await world.clock.advance(600_000);
  expect(world.signer.total()).toBeLessThanOrEqual(before + 1);
  expect(await world.metric(/queue_depth/)).toBe(0);
});

test('a request that another signer answered is out of the queue as soon as the watch tells', async () => {
  const world = setUp({ endpoint: { answer: () => ({ kind: 'busy', retryAfterSeconds: 30 }) } });
  world.server.create(object('r'));
  world.start();
  await world.clock.advance(10_000);
  expect(await world.metric(/queue_depth/)).toBe(1);
  world.server.change('r', (old) => ({ ...old, status: { ...old.status, certificate: 'AA==' } }));
  await world.clock.advance(1);
  expect(await world.metric(/queue_depth/)).toBe(0);
  await world.clock.advance(100_000);
  expect(world.server.count('get')).toBe(0);
});

test('an object deleted while there is no watch is forgotten too', async () => {
  const world = setUp({ endpoint: { answer: () => ({ kind: 'busy' }) } });
  world.server.create(object('r'));
  world.start();
  await world.clock.advance(60_000);
  world.server.dropWatches();
  world.server.delete('r');
  world.server.compact(); // the deletion is in no history any more
  await world.clock.advance(120_000);
  expect(await world.metric(/queue_depth/)).toBe(0);
  expect(await world.metric(/requests_total.*outcome="gone"/)).toBe(1);
});

test('an unreadable object is counted and does no harm', async () => {
  const world = setUp();
  world.server.create({ ...object('bad'), metadata: { name: 'bad', uid: '!!!' } });
  world.server.create(object('good'));
  world.start();
  await world.clock.until(() => world.answered('good'));
  world.server.sendToWatches({ type: 'ADDED', object: { nonsense: true }, bytes: 10 });
  world.server.sendToWatches({ type: 'UNREADABLE', message: 'a line that is not JSON' });
  world.server.create(object('another'));
  await world.clock.until(() => world.answered('another'));
  expect(await world.metric(/malformed_objects_total/)).toBe(1 + 2 * 2); // two watches heard the last two
});

test('a missing right to write is an alarm and not ready, until it is given', async () => {
  const world = setUp({
    api: { fault: (verb) => (verb === 'updateStatus' && world.clock.monotonic() < 90_000 ? 'Forbidden' : undefined) },
  });
  world.server.create(object('r'));
  world.start();
  const alarmed = () =>
    world.lines.some(({ level, fields }) => level === 'error' && fields['cause'] === 'ApiForbidden');
  await world.clock.advance(2_000);
  expect(world.relay.health.problems()).toEqual([`not authorized: update status for ${signerName}`]);
  expect(alarmed()).toBe(false);
  await world.clock.advance(58_000);
  expect(alarmed()).toBe(true);
  expect(await world.metric(/alarms_total\{cause="ApiForbidden"/)).toBeGreaterThan(0);
  expect(await world.metric(/api_errors_total\{verb="update",code="Forbidden"/)).toBeGreaterThan(2);
  await world.clock.until(() => world.answered('r'));
  await world.clock.advance(10); // the answer is on its way
  expect(world.relay.health.problems()).toEqual([]);
});

test('not ready before all signers are listed', async () => {
  const world = setUp({
    api: { fault: (verb, subject) => (verb === 'list' && subject === otherSigner ? 'before' : undefined) },
  });
  expect(world.relay.health.problems()).toEqual(['starting']);
  world.start();
  await world.clock.advance(10_000);
  expect(world.relay.health.problems()).toEqual([`not yet listed: ${otherSigner}`]);
});

describe('a drain', () => {
  test('takes nothing more and finishes what is under way', async () => {
    const world = setUp({ endpoint: { latency: () => 3_000 } });
    for (let i = 0; i < 80; i += 1) world.server.create(object(`r${i}`));
    world.start();
    await world.clock.until(() => world.signer.underWay() === 16);
    const [begun, from] = [world.signer.total(), world.clock.monotonic()];
    world.stop.abort();
    await world.clock.until(() => world.state.ended);
    expect(begun).toBeLessThan(80);
    expect(world.server.names().filter(world.answered)).toHaveLength(begun);
    expect(world.signer.total()).toBe(begun);
    expect(world.clock.monotonic() - from).toBeLessThan(4_000);
    expect(world.relay.health.problems()).toEqual(['draining']);
    expect(world.server.watching()).toBe(0);
  });

  test('is bounded by the grace', async () => {
    const world = setUp({ endpoint: { latency: () => 100_000 }, options: { graceMilliseconds: 5_000 } });
    world.server.create(object('r'));
    world.start();
    await world.clock.until(() => world.signer.underWay() === 1);
    const from = world.clock.monotonic();
    world.stop.abort();
    await world.clock.until(() => world.state.ended);
    expect(world.clock.monotonic() - from).toBe(5_000);
    expect(world.answered('r')).toBe(false);
  });

  test('of a relay with nothing to do is over at once', async () => {
    const world = setUp();
    world.start();
    await world.clock.advance(1_000);
    world.stop.abort();
    await world.clock.advance(0);
    expect(world.state.ended).toBe(true);
  });
});

describe('with a lease', () => {
  test('a standby is ready, sees nothing and does nothing', async () => {
    const world = setUp({ lease: true });
    const held = { holderIdentity: 'other', leaseDurationSeconds: 15 };
    const made = world.leases.access().create(held, new AbortController().signal);
    await world.clock.advance(10);
    await made;
    world.server.create(object('r'));
    world.start();
    await world.clock.advance(10_000);
    expect(world.relay.health.problems()).toEqual([]);
    expect(world.server.calls).toEqual([]);
    expect(await world.metric(/relay_leader/)).toBe(0);
    await world.clock.until(() => world.answered('r')); // the other one never renews
    expect(await world.metric(/relay_leader/)).toBe(1);
  });

  test('a leader that loses it breaks off at once, and takes up everything again later', async () => {
    const world = setUp({ lease: true, endpoint: { latency: () => 8_000 } });
    for (let i = 0; i < 80; i += 1) world.server.create(object(`r${i}`));
    world.start();
    await world.clock.until(() => world.signer.underWay() === 16);
    const written = world.server.count('updateStatus');
    const stolen = { ...world.leases.lease(), spec: { holderIdentity: 'thief', leaseDurationSeconds: 15 } };
    const done = world.leases.access().update(stolen, new AbortController().signal);
    await world.clock.until(() => world.signer.underWay() === 0, 3_000);
    expect((await done).ok).toBe(true);
    expect(world.server.watching()).toBe(0);
    expect(world.server.count('updateStatus')).toBe(written);
    await world.clock.until(() => world.server.names().every(world.answered));
    world.stop.abort();
    await world.clock.until(() => world.state.ended);
    expect(world.leases.holder()).toBeUndefined();
  });
});

/**
 * Everything at once, decided by a seed: calls that fail before and after they took effect, watches that drop, expired
 * history, an endpoint that is busy, away, wrong; objects that are approved late, denied or deleted. In the end every
 * approved request is answered, and nothing else is touched.
 */
test.each(Array.from({ length: byTier({ default: 8, deep: 25 }) }, (_, i) => i + 1))(
  'whatever happens, all approved requests are answered (seed %i)',
  async (seed) => {
    const random = mulberry32(seed);
    const quiet = () => world.clock.monotonic() > 120_000;
    const faults: readonly Fault[] = ['before', 'after', 'throttled', 'Conflict', 'Forbidden', 'Unauthorized'];
    const world = setUp({
      seed: seed + 1_000,
      options: { concurrency: 1 + Math.floor(random() * 20) },
      api: {
        latency: () => random() * 40,
        fault: (verb) => {
          if (quiet() || random() > 0.25) return undefined;
          const fault = faults[Math.floor(random() * faults.length)];
          return fault === 'Conflict' && verb !== 'updateStatus' ? 'before' : fault;
        },
      },
      endpoint: {
        latency: () => random() * 300,
        answer: (name) => {
          const good = Number(name.slice(1)) % 4 === 0 ? refusal : issued;
          if (quiet() || random() > 0.3) return good;
          return (
            [
              { kind: 'busy' },
              new Error('reset'),
              { kind: 'unauthorized', message: 'HTTP 401' },
              { kind: 'issued', certificatePem: otherPem },
            ] as const
          )[Math.floor(random() * 4)]!;
        },
      },
    });
    const { clock, server } = world;
    const wanted = new Set<string>();
    let made = 0;
    const churn = (): void => {
      if (quiet()) return;
      const dice = random();
      const name = `r${Math.floor(random() * Math.max(1, made))}`;
      if (dice < 0.5) {
        const conditions = random() < 0.6 ? [approved] : [];
        const fresh = `r${made++}`;
        server.create(object(fresh, { signer: random() < 0.5 ? signerName : otherSigner, conditions }));
        if (conditions.length > 0) wanted.add(fresh);
      } else if (dice < 0.65 && server.find(name) !== undefined && !wanted.has(name)) {
        server.addCondition(name, random() < 0.7 ? approved : denied);
        if (JSON.stringify(server.find(name)?.status).includes('Denied')) wanted.delete(name);
        else wanted.add(name);
      } else if (dice < 0.7) {
        server.delete(name);
        wanted.delete(name);
      } else if (dice < 0.75 && wanted.has(name) && !world.answered(name)) {
        server.addCondition(name, denied);
        wanted.delete(name);
      } else if (dice < 0.85)
        server.change(name, (old) => ({ ...old, metadata: { ...old.metadata, labels: { n: String(dice) } } }));
      else if (dice < 0.9) server.dropWatches(random() < 0.5 ? 'broken' : 'in good order');
      else if (dice < 0.93) server.compact();
      else server.pass();
      clock.after(random() * 400, churn);
    };
    churn();
    world.start();
    await clock.advance(120_000);
    await clock.until(() => [...wanted].every(world.answered), 600_000);
    await clock.advance(60_000);

    expect(wanted.size).toBeGreaterThan(30);
    for (const name of server.names()) {
      expect([name, world.answered(name)]).toEqual([name, wanted.has(name)]);
      if (!wanted.has(name)) continue;
      const refused = Number(name.slice(1)) % 4 === 0;
      expect(world.failedReason(name)).toBe(refused ? 'SignerValidationFailure' : undefined);
      expect(world.statusOf(name)['certificate']).toBe(refused ? undefined : Buffer.from(goodPem).toString('base64'));
    }
    expect(server.crimes).toEqual([]);
    expect(await world.metric(/queue_depth|held_object_bytes|in_flight/)).toBe(0);
    expect(world.lines.filter(({ fields }) => fields['cause'] === 'Internal')).toEqual([]);
    expect(world.relay.health.problems()).toEqual([]);
    world.stop.abort();
    await clock.until(() => world.state.ended);
  },
);
