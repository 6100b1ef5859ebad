import { afterEach, describe, expect, test } from 'vitest';
import type { JsonObject } from '../../../../core/ports/kubernetes-api.ts';
import type { AttestAnswer } from '../../../../core/ports/signing-endpoint.ts';
import type { SignerPolicy, RelayOptions } from '../../../../lambdas/watch-relay/settings/options.ts';
import { createRelay } from '../../../../lambdas/watch-relay/relay.ts';
import { makeRequest } from '../../../harness/x509/requests.ts';
import { approved, certificateFor, denied, key, object, recordingLog } from './fixtures.ts';
import { createSimulatedApi } from './simulated-api.ts';
import type { Fault, SimulatedApiOptions } from './simulated-api.ts';
import { createSimulatedEndpoint } from './simulated-endpoint.ts';
import type { SimulatedEndpointOptions } from './simulated-endpoint.ts';
import { createVirtualClock } from '../../../harness/determinism/virtual-time.ts';
import { byTier } from '../../../harness/determinism/tier.ts';
import { mulberry32 } from '../../../harness/determinism/mulberry32.ts';

/* Approval in the running relay, in virtual time; what one try does is in approval.test.ts. */

const stops: (() => void)[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

const client = 'kubernetes.io/kube-apiserver-client-kubelet';
const attested = 'cluster.x-k8s.io/kube-apiserver-client-kubelet-aws';
const watched = 'kubernetes.io/kubelet-serving';
const proof = { providers: ['aws'], required: true, mode: 'enforce', subjectAccessReview: false } as const;
const policies = new Map<string, SignerPolicy>([
  [client, { approval: 'approve', kind: 'kube-apiserver-client-kubelet' }],
  [attested, { approval: 'approve', kind: 'kube-apiserver-client-kubelet', attestation: proof }],
  [watched, { approval: 'manual', kind: 'kubelet-serving', attestation: proof }],
]);

const identity = 'aws#aws/123456789012/eu-central-1/i-1';
const yes: AttestAnswer = {
  kind: 'verdict',
  verdict: { decision: 'approve', message: 'm', annotations: { 'countersign.dev/identity': identity } },
};
const no: AttestAnswer = {
  kind: 'verdict',
  verdict: { decision: 'deny', reason: 'TofuNodeTaken', message: 'taken', annotations: {} },
};
const request = makeRequest({ key, subject: { O: 'system:nodes', CN: 'system:node:n1' } });
const certificatePem = await certificateFor(key);

function pending(name: string, change: { signer?: string; user?: string } = {}): JsonObject {
  const { signer = client, user = 'system:bootstrap:abcdef' } = change;
  const made = object(name, { signer, conditions: [] });
  const groups = user.startsWith('system:node:') ? ['system:nodes'] : ['system:bootstrappers'];
  const spec = { request: request.bytes.toString('base64'), usages: ['digital signature', 'client auth'] };
  return { ...made, spec: { ...made.spec, ...spec, username: user, groups } };
}

interface World {
  readonly options?: Partial<RelayOptions>;
  readonly api?: Omit<SimulatedApiOptions, 'clock'>;
  readonly endpoint?: Omit<SimulatedEndpointOptions, 'clock'>;
  readonly seed?: number;
}

function setUp({ options = {}, api = {}, endpoint = {}, seed = 1 }: World = {}) {
  const clock = createVirtualClock();
  const server = createSimulatedApi({ clock, ...api });
  const issued = { kind: 'issued', certificatePem } as const;
  const signer = createSimulatedEndpoint({ clock, answer: () => issued, attest: () => yes, ...endpoint });
  const { log, lines } = recordingLog();
  const start = (identityOfRelay = 'relay-0') => {
    const relay = createRelay(
      {
        signerNames: [...policies.keys()],
        policies,
        concurrency: 16,
        inFlightPerRequester: 8,
        graceMilliseconds: 20_000,
        identity: identityOfRelay,
        ...options,
      },
      { api: server.api, endpoint: signer.endpoint, clock, random: mulberry32(seed), log },
    );
    const stop = new AbortController();
    stops.push(() => stop.abort());
    void relay.run(stop.signal);
    const metric = async (line: RegExp) =>
      (await relay.metrics.exposition())
        .split('\n')
        .filter((text) => !text.startsWith('#') && line.test(text))
        .reduce((sum, text) => sum + Number(text.split(' ').at(-1)), 0);
    return { relay, metric, stop: () => stop.abort() };
  };
  const beat = (): void => {
    server.bookmark();
    clock.after(60_000, beat);
  };
  clock.after(60_000, beat);
  const conditions = (name: string) =>
    ((server.find(name)?.status['conditions'] ?? []) as { type: string; reason: string }[]).map(({ type }) => type);
  const issuedTo = (name: string) => server.find(name)?.status['certificate'] !== undefined;
  return { clock, server, signer, start, lines, conditions, issuedTo };
}

test('a request goes its whole way with one call of each sort', async () => {
  const { clock, server, signer, start, conditions, issuedTo } = setUp();
  const { metric } = start();
  server.create(pending('r'));
  await clock.until(() => issuedTo('r'));
  await clock.advance(60_000);
  expect(conditions('r')).toEqual(['Approved']);
  for (const verb of ['reviewAccess', 'updateApproval', 'updateStatus'] as const) expect(server.count(verb)).toBe(1);
  expect(server.count('get')).toBe(0);
  expect([signer.attestTotal(), signer.total()]).toEqual([1, 1]);
  expect(server.events.size).toBe(0);
  expect(server.crimes).toEqual([]);
  expect(await metric(/requests_total\{.*outcome="approved"/)).toBe(1);
  expect(await metric(/requests_total\{.*outcome="issued"/)).toBe(1);
  expect(await metric(/decisions_total\{.*decision="approved",code="AutoApproved"/)).toBe(1);
  expect(await metric(/attest_duration_seconds_count\{outcome="verdict"/)).toBe(1);
});

test('a denial is told and counted by its code, and it is the end', async () => {
  const { clock, server, signer, start, conditions } = setUp({ endpoint: { attest: () => no } });
  const { metric } = start();
  server.create(pending('r', { signer: attested }));
  await clock.until(() => server.events.size > 0);
  expect(conditions('r')).toEqual(['Denied']);
  expect([...server.events]).toEqual([
    [
      'countersign-uid-r.denied',
      expect.objectContaining({ reason: 'TofuNodeTaken', note: 'taken. More: countersign trace r' }),
    ],
  ]);
  server.change('r', (old) => ({ ...old, metadata: { ...old.metadata, labels: { a: 'b' } } }));
  await clock.advance(3_600_000);
  expect([signer.attestTotal(), signer.total()]).toEqual([1, 0]);
  expect(await metric(/decisions_total\{.*decision="denied",code="TofuNodeTaken"/)).toBe(1);
});

/** Long enough for whatever waits only for its turn, and far less than a pause. */
const soon = 300;

describe('proofs that cannot be judged hold up nothing else', () => {
  const joins = Array.from({ length: 100 }, (_, i) => `join-${i}`);

  async function others({ clock, server, issuedTo }: ReturnType<typeof setUp>): Promise<number[]> {
    const waits: number[] = [];
    for (let number = 0; number < 40; number += 1) {
      const [signed, judged] = [`signed-${number}`, `judged-${number}`];
      server.create(object(signed, { signer: watched, conditions: [approved] }));
      server.create(pending(judged, { user: 'jane' }));
      const from = clock.monotonic();
      await clock.until(() => issuedTo(signed) && issuedTo(judged), 60_000);
      waits.push(clock.monotonic() - from);
      await clock.advance(700);
    }
    return waits;
  }

  test('where EC2 is asked too often', async () => {
    const busy = { kind: 'busy', retryAfterSeconds: 1 } as const;
    let tokens = 0;
    const attest = (name: string): AttestAnswer => (!name.startsWith('join') || (tokens += 0.2) % 1 < 0.1 ? yes : busy);
    const world = setUp({ endpoint: { attest } });
    const { metric } = world.start();
    for (const name of joins) world.server.create(pending(name, { signer: attested }));
    await world.clock.advance(20_000);
    expect(await metric(/concurrency_limit\{step="attest"\}/)).toBe(1);
    expect(Math.max(...(await others(world)))).toBeLessThan(soon);
    await world.clock.until(() => joins.every(world.issuedTo), 3_600_000);
    expect(world.server.crimes).toEqual([]);
  });

  test('where nothing is answered', async () => {
    const latency = (name: string): number => (name.startsWith('join') ? 600_000 : 5);
    const world = setUp({ endpoint: { latency }, options: { inFlightPerRequester: 16 } });
    const { metric } = world.start();
    for (const name of joins) world.server.create(pending(name, { signer: attested }));
    // One more for each second of silence, and no more than three quarters of all.
    await world.clock.advance(60_000);
    expect(await metric(/relay_in_flight/)).toBe(12);
    const stopped = await others({ ...world, issuedTo: (name) => name.startsWith('judged') || world.issuedTo(name) });
    expect(Math.max(...stopped)).toBeLessThan(soon);
  });
});

describe('without leave', () => {
  test('a request is asked about less and less, is no alarm, and is approved when leave is given', async () => {
    const bound = { at: Number.POSITIVE_INFINITY };
    const world = setUp({ api: { allows: () => world.clock.monotonic() >= bound.at } });
    const { clock, server, signer, start, issuedTo, lines } = world;
    const { relay, metric } = start();
    server.create(pending('r'));
    await clock.advance(3_600_000);
    // 200 ms doubling to 1 000 s: as many as the in-tree approver asks, or with jitter a few more.
    expect(server.count('reviewAccess')).toBeGreaterThan(10);
    expect(server.count('reviewAccess')).toBeLessThan(40);
    expect(signer.attestTotal()).toBe(0);
    expect(server.find('r')!.status).toEqual({});
    expect(lines.filter(({ level }) => level === 'error' || level === 'warn')).toEqual([]);
    expect(await metric(/alarms_total/)).toBe(0);
    expect(relay.health.problems()).toEqual([]);
    expect([...server.events.keys()]).toEqual(['countersign-uid-r.delayed']);
    bound.at = clock.monotonic();
    await clock.until(() => issuedTo('r'), 1_000_001);
  });

  test('what another approver approves meanwhile is signed at once', async () => {
    const { clock, server, start, issuedTo } = setUp({ api: { allows: () => false } });
    start();
    server.create(pending('r'));
    await clock.advance(7_200_000);
    server.addCondition('r', approved);
    await clock.advance(100);
    expect(issuedTo('r')).toBe(true);
  });
});

describe('where another approver decides', () => {
  test('attest hears of a request once for each run of the relay, whatever happens to it', async () => {
    const { clock, server, signer, start, conditions, issuedTo } = setUp({ endpoint: { attest: () => no } });
    const first = start();
    server.create(pending('r', { signer: watched }));
    await clock.advance(1_000);
    for (let i = 0; i < 20; i += 1) {
      server.change('r', (old) => ({ ...old, metadata: { ...old.metadata, labels: { i: String(i) } } }));
      await clock.advance(1_000);
    }
    server.dropWatches();
    server.compact();
    await clock.advance(600_000);
    expect(signer.attestTotal()).toBe(1);
    expect(conditions('r')).toEqual([]);
    expect(server.count('reviewAccess') + server.count('updateApproval')).toBe(0);
    expect([...server.events.values()][0]).toMatchObject({
      reason: 'TofuNodeTaken',
      note: expect.stringMatching(/will not be signed.*taken/) as unknown,
    });
    expect(await first.metric(/decisions_total\{.*decision="noted",code="TofuNodeTaken"/)).toBe(1);
    first.stop();
    start('relay-1');
    await clock.advance(10_000);
    expect(signer.attestTotal()).toBe(2);
    server.addCondition('r', approved);
    await clock.until(() => issuedTo('r'));
    expect(server.crimes).toEqual([]);
  });

  test('one that was approved is signed, though an older state of it is told again', async () => {
    const issued = { kind: 'issued', certificatePem } as const;
    const { clock, server, signer, start, issuedTo } = setUp({
      options: { signerNames: [watched] },
      endpoint: { answer: (_, call) => (call < 3 ? { kind: 'busy' } : issued) },
    });
    start();
    await clock.until(() => server.watching() === 1);
    const old = pending('r', { signer: watched });
    server.create({ ...old, status: { conditions: [approved] } });
    await clock.until(() => signer.total() > 0);
    server.sendToWatches({ type: 'MODIFIED', object: old, bytes: 1_000 });
    await clock.until(() => issuedTo('r'));
    expect(signer.attestTotal()).toBe(0);
  });

  test('one that was deleted is forgotten', async () => {
    const { clock, server, signer, start } = setUp();
    start();
    server.create(pending('r', { signer: watched }));
    await clock.advance(1_000);
    server.delete('r');
    server.create({
      ...pending('r', { signer: watched }),
      metadata: { name: 'r', uid: 'uid-2', resourceVersion: '1' },
    });
    await clock.advance(1_000);
    expect(signer.attestTotal()).toBe(2);
  });
});

test('two relays decide once', async () => {
  const { clock, server, start, conditions, issuedTo } = setUp({ endpoint: { latency: () => 50 } });
  start('relay-0');
  start('relay-1');
  const names = Array.from({ length: 60 }, (_, i) => `r${i}`);
  for (const name of names)
    server.create(pending(name, { signer: Number(name.slice(1)) % 2 === 0 ? client : attested }));
  await clock.until(() => names.every(issuedTo));
  await clock.advance(60_000);
  for (const name of names) expect(conditions(name)).toEqual(['Approved']);
  expect(server.crimes).toEqual([]);
});

test('a flood of one token delays that token: renewals and other tokens go through beside it', async () => {
  const order: string[] = [];
  const world = setUp({
    options: { concurrency: 12, inFlightPerRequester: 4 },
    endpoint: {
      latency: () => 100,
      attest: (name) => {
        order.push(name);
        return yes;
      },
    },
    api: { latency: () => 1 },
  });
  const { clock, server, signer, start, issuedTo } = world;
  const { metric } = start();
  await clock.advance(100);
  const flood = Array.from({ length: 500 }, (_, i) => `flood-${i}`);
  for (const name of flood) server.create(pending(name));
  await clock.advance(1_000);
  const renewals = Array.from({ length: 40 }, (_, i) => `renewal-${i}`);
  for (const [i, name] of renewals.entries()) server.create(pending(name, { user: `system:node:n${i}` }));
  const others = Array.from({ length: 8 }, (_, i) => `other-${i}`);
  for (const name of others) server.create(pending(name, { user: 'system:bootstrap:uvwxyz' }));
  const before = order.length;
  await clock.until(() => [...renewals, ...others].every(issuedTo));
  // While 48 others went their whole way, the flood had its share and no more.
  const meanwhile = order.slice(before).filter((name) => name.startsWith('flood')).length;
  expect(meanwhile).toBeGreaterThan(0);
  expect(meanwhile).toBeLessThan(48);
  expect(flood.filter(issuedTo).length).toBeLessThan(100);
  expect(signer.mostAtOnce()).toBeLessThanOrEqual(12);
  expect([...server.events.keys()].filter((name) => name.endsWith('.delayed'))).toHaveLength(1);
  expect(await metric(/longest_queue/)).toBeGreaterThan(300);
  expect(await metric(/queue_depth\{priority="renewal"/)).toBe(0);
  await clock.until(() => flood.every(issuedTo), 600_000);
  expect(server.crimes).toEqual([]);
});

test('a flood alone has no more in hand than its share', async () => {
  const { clock, server, signer, start, issuedTo } = setUp({
    options: { concurrency: 16, inFlightPerRequester: 4 },
    endpoint: { latency: () => 100 },
  });
  start();
  const flood = Array.from({ length: 100 }, (_, i) => `flood-${i}`);
  for (const name of flood) server.create(pending(name));
  await clock.until(() => flood.every(issuedTo));
  expect(signer.mostAtOnce()).toBe(4);
});

/**
 * Faults of every sort before and after effects, dropped watches, expired history, an endpoint that is busy, away or
 * wrong, people who approve, deny and delete, and two relays that stop and start. What must hold in the end does not
 * depend on any of it.
 */
test.each(Array.from({ length: byTier({ default: 3, deep: 20 }) }, (_, i) => i + 1))(
  'whatever happens, each ends as it must (seed %i)',
  async (seed) => {
    const random = mulberry32(seed);
    const quiet = () => world.clock.monotonic() > 120_000;
    const faults: readonly Fault[] = ['before', 'after', 'throttled', 'Conflict', 'Forbidden', 'Unauthorized'];
    const number = (name: string) => Number(name.slice(1));
    const refuses = (name: string) => number(name) % 4 === 0;
    const world = setUp({
      seed: seed + 1_000,
      options: { concurrency: 1 + Math.floor(random() * 12), inFlightPerRequester: 1 + Math.floor(random() * 8) },
      api: {
        latency: () => random() * 40,
        watchLag: random() < 0.5 ? 0 : 30,
        allows: ({ user }) => user !== 'system:bootstrap:stranger',
        fault: (verb) => {
          if (quiet() || random() > 0.25) return undefined;
          const fault = faults[Math.floor(random() * faults.length)];
          return fault === 'Conflict' && !verb.startsWith('update') ? 'before' : fault;
        },
      },
      endpoint: {
        latency: () => random() * 300,
        answer: () => (quiet() || random() > 0.2 ? { kind: 'issued', certificatePem } : { kind: 'busy' }),
        attest: (name) => {
          if (quiet() || random() > 0.3) return refuses(name) ? no : yes;
          const odd = [
            { kind: 'busy' },
            new Error('reset'),
            { kind: 'unexpected', status: 404, message: '?' },
          ] as const;
          return odd[Math.floor(random() * 3)]!;
        },
      },
    });
    const { clock, server } = world;
    /** Decided by people, who may be faster or slower than the relay. */
    const people = new Map<string, 'Approved' | 'Denied'>();
    let made = 0;
    const churn = (): void => {
      if (quiet()) return;
      const dice = random();
      const name = `r${Math.floor(random() * Math.max(1, made))}`;
      if (dice < 0.5) {
        const users = ['system:bootstrap:abcdef', 'system:bootstrap:stranger', 'system:node:n1', 'system:node:n2'];
        const signer = [client, attested, watched][Math.floor(random() * 3)]!;
        server.create(pending(`r${made++}`, { signer, user: users[Math.floor(random() * 4)]! }));
      } else if (dice < 0.62 && world.conditions(name).length === 0 && server.find(name) !== undefined) {
        const decision = random() < 0.5 ? approved : denied;
        server.addCondition(name, decision);
        people.set(name, decision === approved ? 'Approved' : 'Denied');
      } else if (dice < 0.67) server.delete(name);
      else if (dice < 0.8)
        server.change(name, (old) => ({ ...old, metadata: { ...old.metadata, labels: { n: String(dice) } } }));
      else if (dice < 0.87) server.dropWatches(random() < 0.5 ? 'broken' : 'in good order');
      else if (dice < 0.9) server.compact();
      else if (dice < 0.95) {
        running.shift()?.stop();
        running.push(world.start());
      } else server.pass();
      clock.after(random() * 400, churn);
    };
    const running = [world.start(), world.start()];
    churn();
    await clock.advance(120_000);
    const expected = (name: string): string => {
      const { signerName, username } = server.find(name)!.spec as { signerName: string; username: string };
      const theirs = people.get(name);
      if (theirs !== undefined) return theirs === 'Approved' ? 'Approved, issued' : 'Denied';
      if (signerName === watched) return '';
      if (signerName === client && username === 'system:bootstrap:stranger') return '';
      return refuses(name) ? 'Denied' : 'Approved, issued';
    };
    const state = (name: string): string =>
      [...world.conditions(name), ...(world.issuedTo(name) ? ['issued'] : [])].join(', ');
    await clock.until(() => server.names().every((name) => state(name) === expected(name)), 2_000_000);
    await clock.advance(60_000);
    expect(made).toBeGreaterThan(50);
    for (const name of server.names()) expect([name, state(name)]).toEqual([name, expected(name)]);
    expect(server.crimes).toEqual([]);
    expect(world.lines.filter(({ fields }) => fields['cause'] === 'Internal')).toEqual([]);
  },
);
