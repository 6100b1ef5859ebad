/** One requester who makes objects too large: what the others, the operator and the API server notice of it. */
import { afterEach, describe, expect, test } from 'vitest';
import type { JsonObject } from '../../../../core/ports/kubernetes-api.ts';
import type { SignerPolicy, RelayOptions } from '../../../../lambdas/watch-relay/settings/options.ts';
import { createRelay } from '../../../../lambdas/watch-relay/relay.ts';
import { makeRequest } from '../../../harness/x509/requests.ts';
import { approved, certificateFor, key, object, recordingLog } from './fixtures.ts';
import { createSimulatedApi } from './simulated-api.ts';
import type { Fault, Verb } from './simulated-api.ts';
import { createSimulatedEndpoint } from './simulated-endpoint.ts';
import { createVirtualClock } from '../../../harness/determinism/virtual-time.ts';
import { mulberry32 } from '../../../harness/determinism/mulberry32.ts';

const stops: (() => void)[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

const signer = 'kubernetes.io/kube-apiserver-client-kubelet';
const request = makeRequest({ key, subject: { O: 'system:nodes', CN: 'system:node:n1' } });
const certificatePem = await certificateFor(key);
const approve: SignerPolicy = { approval: 'approve', kind: 'kube-apiserver-client-kubelet' };
const proof = { providers: ['aws'], required: true, mode: 'enforce', subjectAccessReview: false } as const;
const watched: SignerPolicy = { approval: 'manual', kind: 'kube-apiserver-client-kubelet', attestation: proof };
/** The relay's own bound is 192 KiB. */
const padding = 'x'.repeat(200_000);

function setUp(
  policy: SignerPolicy | undefined,
  {
    options = {},
    fault,
  }: { options?: Partial<RelayOptions>; fault?: (verb: Verb, name: string) => Fault | undefined } = {},
) {
  const clock = createVirtualClock();
  const server = createSimulatedApi({ clock, ...(fault === undefined ? {} : { fault }) });
  const endpoint = createSimulatedEndpoint({ clock, answer: () => ({ kind: 'issued', certificatePem }) });
  const posted: JsonObject[] = [];
  const { log, lines } = recordingLog();
  const relay = createRelay(
    {
      signerNames: [signer],
      policies: policy === undefined ? new Map() : new Map([[signer, policy]]),
      concurrency: 16,
      inFlightPerRequester: 12,
      graceMilliseconds: 20_000,
      identity: 'relay-0',
      ...options,
    },
    {
      api: server.api,
      endpoint: {
        sign: (given, signal) => (posted.push(given), endpoint.endpoint.sign(given, signal)),
        attest: (given, context, signal) => (posted.push(given), endpoint.endpoint.attest(given, context, signal)),
      },
      clock,
      random: mulberry32(1),
      log,
    },
  );
  const stop = new AbortController();
  stops.push(() => stop.abort());
  const beat = (): void => {
    server.bookmark();
    clock.after(60_000, beat);
  };
  beat();
  const stopped = relay.run(stop.signal);
  const metric = async (line: RegExp): Promise<number> =>
    (await relay.metrics.exposition())
      .split('\n')
      .filter((text) => !text.startsWith('#') && line.test(text))
      .reduce((sum, text) => sum + Number(text.split(' ').at(-1)), 0);
  const conditions = (name: string) =>
    (server.find(name)?.status['conditions'] ?? []) as readonly { type: string; reason: string; message: string }[];
  const issued = (name: string) => server.find(name)?.status['certificate'] !== undefined;
  /** Of one object, besides lists and watches. */
  const calls = (name: string) =>
    server.calls.filter(({ verb, subject }) => subject === name && verb !== 'createEvent').map(({ verb }) => verb);
  return { clock, server, endpoint, posted, relay, lines, metric, conditions, issued, calls, stop, stopped };
}

interface Wanted {
  readonly padded?: true;
  readonly user?: string;
  readonly decided?: boolean;
  readonly metadata?: JsonObject;
}

function wanted(
  name: string,
  { padded, user = 'system:bootstrap:abcdef', decided = false, metadata = {} }: Wanted = {},
) {
  const made = object(name, { uid: `uid-${name.slice(0, 40)}`, signer, conditions: decided ? [approved] : [] });
  const usages = ['digital signature', 'client auth'];
  const groups = ['system:bootstrappers'];
  return {
    ...made,
    metadata: { ...made.metadata, ...(padded === undefined ? {} : { labels: { padding } }), ...metadata },
    spec: { ...made.spec, request: request.bytes.toString('base64'), usages, username: user, groups },
  };
}

const doesNotFit = (verb: Verb, name: string): Fault | undefined =>
  (verb === 'updateApproval' || verb === 'updateStatus') && name.startsWith('padded') ? 'TooLarge' : undefined;

describe.each([
  ['it approves', approve, false],
  ['another approver decides', undefined, true],
] as const)('where %s', (_, policy, decided) => {
  test('finding 15: 240 padded requests cost two calls each, and the requests of others nothing', async () => {
    const world = setUp(policy, { fault: doesNotFit });
    const { clock, server, endpoint, metric } = world;
    const padded = Array.from({ length: 240 }, (_, index) => `padded-${index}`);
    for (const name of padded) server.create(wanted(name, { padded: true, decided }));
    const limits: number[] = [];
    for (let number = 0; number < 60; number += 1) {
      // One joins with the same token, and one with another.
      for (const user of ['system:bootstrap:abcdef', 'system:bootstrap:ghijkl']) {
        const name = `${user.slice(-6)}-${number}`;
        const begun = clock.monotonic();
        server.create(wanted(name, { user, decided }));
        await clock.until(() => world.issued(name));
        expect(clock.monotonic() - begun).toBeLessThan(100); // its own calls take 20 ms in this world
        expect(world.calls(name)).toEqual(decided ? ['updateStatus'] : ['updateApproval', 'updateStatus']);
      }
      limits.push(await metric(/concurrency_limit\{step="sign"/));
      await clock.advance(1_000);
    }
    expect(limits).toEqual(limits.toSorted((a, b) => a - b));
    await clock.advance(200_000);
    const write = decided ? 'updateStatus' : 'updateApproval';
    for (const name of padded) expect([name, world.calls(name).slice(0, 2)]).toEqual([name, ['get', write]]);
    // The first of them have come back by now, each after minutes.
    const all = padded.reduce((sum, name) => sum + world.calls(name).length, 0);
    expect(all).toBeLessThan(2 * 2 * padded.length);
    for (const name of padded)
      expect([endpoint.calls.get(name), endpoint.attestCalls.get(name)]).toEqual([undefined, undefined]);
    expect(await metric(/alarms_total/)).toBe(0);
    expect(world.lines.filter(({ level }) => level === 'error')).toEqual([]);
    expect(await metric(/oversized_objects_total/)).toBe(240);
    expect(world.lines.filter(({ message }) => message === 'object too large')).toHaveLength(10);
    expect(world.relay.health.problems()).toEqual([]);
    // Their requesters hear of it, and why.
    expect(JSON.stringify([...server.events.values()])).toContain('too large for an answer');
  });

  test('finding 15: one that fits into etcd is refused once, with the reason', async () => {
    const world = setUp(policy);
    world.server.create(wanted('padded', { padded: true, decided }));
    await world.clock.advance(600_000);
    const type = decided ? 'Failed' : 'Denied';
    expect(world.conditions('padded').at(-1)).toMatchObject({ type, reason: 'RequestTooLarge' });
    expect(world.calls('padded')).toEqual(['get', decided ? 'updateStatus' : 'updateApproval']);
    expect(world.endpoint.total() + world.endpoint.attestTotal()).toBe(0);
    expect(world.server.crimes).toEqual([]);
    expect([...world.server.events.values()]).toHaveLength(1);
  });

  test('finding 15: one that is smaller later goes its way at once', async () => {
    let fits = false;
    const world = setUp(policy, { fault: (verb, name) => (fits ? undefined : doesNotFit(verb, name)) });
    world.server.create(wanted('padded', { padded: true, decided }));
    await world.clock.advance(10_000);
    expect(await world.metric(/retries_total\{cause="ObjectTooLarge"/)).toBe(1);
    fits = true;
    world.server.change('padded', (old) => ({ ...old, metadata: { ...old.metadata, labels: {} } }));
    await world.clock.advance(1_000);
    expect(world.issued('padded')).toBe(true);
  });

  test('finding 15: with room for one at a time they do not delay other requests', async () => {
    const world = setUp(policy, { options: { concurrency: 1, inFlightPerRequester: 1 }, fault: doesNotFit });
    for (let number = 0; number < 20; number += 1)
      world.server.create(wanted(`padded-${number}`, { padded: true, decided }));
    await world.clock.advance(1_500);
    const begun = world.clock.monotonic();
    world.server.create(wanted('honest', { user: 'system:bootstrap:ghijkl', decided }));
    await world.clock.until(() => world.issued('honest'));
    expect(world.clock.monotonic() - begun).toBeLessThan(100);
  });

  test('finding 21: a long name is refused once; one that no URL can carry is counted, and nothing of it is kept', async () => {
    const world = setUp(policy);
    const [long, endless] = ['n'.repeat(2_000), '\u0001'.repeat(450_000)];
    world.server.create(wanted(long, { decided }));
    for (let number = 0; number < 40; number += 1)
      world.server.create(wanted(`${number}${endless}`, { decided, metadata: { uid: `uid-endless-${number}` } }));
    await world.clock.advance(600_000);
    expect(world.conditions(long).at(-1)).toMatchObject({ reason: 'RequestTooLarge' });
    expect(world.calls(long)).toHaveLength(2);
    expect(world.endpoint.total() + world.endpoint.attestTotal()).toBe(0);
    expect(await world.metric(/queue_depth/)).toBe(0);
    expect(await world.metric(/oversized_objects_total/)).toBe(41);
    expect(await world.metric(/malformed_objects_total|alarms_total/)).toBe(0);
    expect(world.lines.filter(({ message }) => message === 'object too large')).toHaveLength(10);
    expect(world.lines.filter(({ level }) => level === 'error')).toEqual([]);
  });

  test('finding 18: lines of a watch that are too long to read are counted, logged seldom, and no alarm', async () => {
    const world = setUp(policy);
    await world.clock.advance(1_000);
    for (let number = 0; number < 50; number += 1) world.server.sendToWatches({ type: 'OVERSIZED', bytes: 9_000_000 });
    await world.clock.advance(61_000);
    world.server.sendToWatches({ type: 'OVERSIZED', bytes: 9_000_000 });
    await world.clock.advance(1_000);
    expect(await world.metric(/oversized_objects_total/)).toBe(51);
    expect(await world.metric(/malformed_objects_total|alarms_total/)).toBe(0);
    const lines = world.lines.filter(({ message }) => message === 'object too large');
    expect(lines).toHaveLength(11);
    expect(lines.at(-1)?.fields).toMatchObject({ leftOut: 40 });
    expect(world.lines.filter(({ level }) => level === 'error')).toEqual([]);
  });

  test('finding 18: fields that are nested too deep for JSON or for the functions reach neither', async () => {
    const world = setUp(policy);
    const deep = (levels: number): unknown => JSON.parse(`${'{"f:a":'.repeat(levels)}{}${'}'.repeat(levels)}`);
    for (const levels of [200, 6_000])
      world.server.create(
        wanted(`deep-${levels}`, { decided, metadata: { managedFields: [{ manager: 'm', fieldsV1: deep(levels) }] } }),
      );
    await world.clock.advance(60_000);
    for (const levels of [200, 6_000]) {
      const name = `deep-${levels}`;
      expect([name, world.issued(name)]).toEqual([name, true]);
      expect(world.server.find(name)?.metadata['managedFields']).toBeDefined();
    }
    expect(world.posted.flatMap(({ metadata }) => Object.keys(metadata as object))).not.toContain('managedFields');
    expect(await world.metric(/retries_total/)).toBe(0);
    expect(world.server.crimes).toEqual([]);
  });
});

test('finding 15: of large ones that are not too large, one requester has few under way', async () => {
  const world = setUp(approve);
  const labels = { padding: padding.slice(0, 180_000) };
  for (let number = 0; number < 40; number += 1)
    world.server.create(wanted(`large-${number}`, { metadata: { labels } }));
  await world.clock.until(() => world.issued('large-39'));
  // Each takes 12 places, and there are 12.
  expect(world.endpoint.mostAtOnce()).toBe(1);
  expect(await world.metric(/oversized_objects_total|alarms_total/)).toBe(0);
});

test('finding 15: an attested request that another approver decides is noted once, without asking attest', async () => {
  const world = setUp(watched);
  world.server.create(wanted('padded', { padded: true }));
  await world.clock.advance(10_000);
  world.server.change('padded', (old) => ({ ...old, metadata: { ...old.metadata, annotations: { a: 'b' } } }));
  await world.clock.advance(60_000);
  expect(world.calls('padded')).toEqual(['get']);
  expect(world.endpoint.attestTotal()).toBe(0);
  expect(await world.metric(/decisions_total\{.*decision="noted",code="RequestTooLarge"/)).toBe(1);
});

test('finding 15: a relay that stops waits for no pause between two of them', async () => {
  const world = setUp(approve, { fault: doesNotFit });
  for (let number = 0; number < 20; number += 1) world.server.create(wanted(`padded-${number}`, { padded: true }));
  await world.clock.advance(2_500);
  const before = world.server.calls.length;
  let ended = false;
  void world.stopped.then(() => (ended = true));
  world.stop.abort();
  await world.clock.advance(100);
  expect(ended).toBe(true);
  await world.clock.advance(60_000);
  expect(world.server.calls.slice(before).filter(({ verb }) => verb === 'get')).toEqual([]);
});
