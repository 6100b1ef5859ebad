/** The looks for machines that no longer exist: what starts one, what it answers and logs, and that a wrong hint changes nothing. */
import { randomBytes } from 'node:crypto';
import { afterEach, describe, expect, test } from 'vitest';
import type { CallLogEntry } from '../../../../../adapters/lambda/log.ts';
import { MisconfigurationError, ThrottledError } from '../../../../../core/ports/errors.ts';
import { secondLookAfter } from '../../../../../core/attestation/second-look.ts';
import { unnamedCaller } from '../../../../../adapters/lambda/caller.ts';
import { loopbackCaller } from '../../../../../dev/serve/loopback-caller.ts';
import { createAttestHandler } from '../../../../../lambdas/attest/handler.ts';
import type { AttestHandlerPorts } from '../../../../../lambdas/attest/handler.ts';
import { decodeHint, isScheduledLook } from '../../../../../lambdas/attest/look.ts';
import { errorIn, eventFixture, outcomeOf } from '../../sign/stack.ts';
import type { EventSpec } from '../../sign/stack.ts';
import { verdictIn } from '../endpoint.ts';
import { createWorld, requestOf } from '../world.ts';
import type { World, WorldOptions } from '../world.ts';

const open: World[] = [];
afterEach(() => {
  for (const world of open.splice(0)) world.close();
});

const lookPath = '/v1/clusters/demo/attest/look';
const machines = ['m1', 'm2', 'm3'] as const;

/** Three machines have joined as `node-1` to `node-3`. The platform lists those that are terminated, as EC2 does. */
async function start(options: WorldOptions = {}, change: Partial<AttestHandlerPorts> = {}) {
  const world = await createWorld(options);
  open.push(world);
  const { platform, clock, cluster, store } = world;
  const log: CallLogEntry[] = [];
  let unlisted: Error | undefined;
  const provider = {
    ...platform.provider,
    async *goneMachines() {
      for (const [id, { state }] of platform.machines) if (state === 'gone') yield `${platform.provider.name}#${id}`;
      if (unlisted !== undefined) throw unlisted;
    },
  };
  const handler = createAttestHandler({
    caller: loopbackCaller,
    cluster: (name) => (name === cluster.name ? cluster : undefined),
    attestation: async () => ({ store, providers: new Map([[provider.name, provider]]) }),
    now: () => clock.now,
    randomBytes,
    log: (entry) => log.push(entry),
    ...change,
  });
  const post = (call: unknown, more: Partial<EventSpec> = {}) =>
    handler.http(
      eventFixture({
        method: 'POST',
        path: lookPath,
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(call),
        ...more,
      }),
    );
  for (const [index, machine] of machines.entries()) {
    const node = `node-${index + 1}`;
    platform.machines.set(machine, { nodeNames: [node] });
    await world.attest(requestOf({ node, evidence: { machine } }));
  }
  return {
    ...world,
    handler,
    post,
    log,
    end: (machine: string) => platform.machines.set(machine, { nodeNames: [], state: 'gone' }),
    /** The platform's list fails from now on, after what it has listed. */
    failList: (error: Error | undefined) => void (unlisted = error),
    later: () => void (clock.now += secondLookAfter),
    stateOf: async (machine: string) => (await store.findIdentity(`${provider.name}#${machine}`))?.state,
  };
}

describe('the event of the schedule', () => {
  test('is this one, exactly', () => {
    expect(isScheduledLook({ countersign: 'retire-gone' })).toBe(true);
  });

  const http = eventFixture({ method: 'POST', path: lookPath, body: '{}' });
  test.each<[string, unknown]>([
    ['nothing', undefined],
    ['null', null],
    ['a text', 'retire-gone'],
    ['a list', [{ countersign: 'retire-gone' }]],
    ['another word', { countersign: 'retire' }],
    ['a call of sign', { countersign: 'attest/v1', cluster: 'demo', request: {} }],
    ['one key more', { countersign: 'retire-gone', cluster: 'demo' }],
    ['an event of EventBridge without our input', { source: 'aws.events', 'detail-type': 'Scheduled Event' }],
    ['an HTTP event', http],
    ['an HTTP event with its key', { ...http, countersign: 'retire-gone' }],
    ['an HTTP event with it in its body', { ...http, body: '{"countersign":"retire-gone"}' }],
  ])('is not %s', (_, event) => {
    expect(isScheduledLook(event)).toBe(false);
  });

  test('two looks retire the machines that the platform lists; the others stay', async () => {
    const { handler, end, later, stateOf, log, store, attest } = await start();
    end('m1');
    expect(await handler.scheduledLook('demo')).toEqual({ countersign: 'retire-gone', outcome: 'looked' });
    expect(await stateOf('m1')).toBe('active');
    later();
    await handler.scheduledLook('demo');
    expect(await Promise.all(machines.map(stateOf))).toEqual(['retired', 'active', 'active']);
    expect(log).toMatchObject([
      { level: 'info', outcome: 'looked', status: 202, cluster: 'demo', look: 'scheduled', looked: 1, marked: 1 },
      { look: 'scheduled', looked: 1, retired: 1, retiredMachines: [{ identity: 'null#m1', nodeName: 'node-1' }] },
    ]);
    expect(log[0]).not.toHaveProperty('retired');
    // Its evidence is refused from now on.
    const refused = await attest(requestOf({ node: 'node-1', evidence: { machine: 'm1' } }));
    expect(refused).toMatchObject({ kind: 'deny' });
    // A further run finds nothing to do.
    await handler.scheduledLook('demo');
    expect(log[2]).toMatchObject({ looked: 0 });
    expect((await store.findIdentity('null#m1'))?.retiredAt).toBeDefined();
  });

  test('does nothing, and logs nothing, where the operator switched it off, or of another cluster', async () => {
    const { handler, end, log, store } = await start({ settings: { retireTerminated: false } });
    end('m1');
    for (const name of ['demo', 'other'])
      expect(await handler.scheduledLook(name)).toEqual({ countersign: 'retire-gone', outcome: 'ignored' });
    expect(log).toEqual([]);
    expect((await store.findIdentity('null#m1'))?.unknownSince).toBeUndefined();
  });

  test.each<[string, Error, object]>([
    [
      'does not answer',
      new Error('socket hang up'),
      { why: 'Unavailable', trouble: 'retirement-fails', alarm: 'retirement' },
    ],
    ['throttles', new ThrottledError('slow'), { why: 'Throttled', trouble: 'retirement-fails', alarm: 'retirement' }],
    [
      'does not answer in one region, and refuses in another',
      new AggregateError([new Error('no answer'), new MisconfigurationError('no right')]),
      { why: 'Internal', trouble: 'internal', alarm: 'faults', error: { name: 'MisconfigurationError' } },
    ],
    ['refuses', new MisconfigurationError('no right'), { why: 'Internal', trouble: 'internal', alarm: 'faults' }],
  ])('a platform that %s: what was listed before is done, and the line has the trouble', async (_, error, fields) => {
    const { handler, end, failList, log } = await start();
    end('m1');
    failList(error);
    expect(await handler.scheduledLook('demo')).toMatchObject({ outcome: 'busy' });
    expect(log).toMatchObject([{ ...fields, look: 'scheduled', marked: 1, failed: ['null'] }]);
    failList(undefined);
    expect(await handler.scheduledLook('demo')).toMatchObject({ outcome: 'looked' });
  });

  test('a store that cannot be opened is a failure of the look, not of the function', async () => {
    const { handler, log } = await start({}, { attestation: () => Promise.reject(new Error('no table')) });
    expect(await handler.scheduledLook('demo')).toMatchObject({ outcome: 'busy' });
    expect(log).toMatchObject([{ why: 'Unavailable', trouble: 'retirement-fails' }]);
  });

  test('the line of a large fleet has a hundred names, and the number of all', async () => {
    const { handler, platform, attest, end, later, log } = await start();
    const all = Array.from({ length: 101 }, (_, index) => `x${index}`);
    for (const machine of all) {
      platform.machines.set(machine, { nodeNames: [machine] });
      await attest(requestOf({ node: machine, evidence: { machine } }));
      end(machine);
    }
    await handler.scheduledLook('demo');
    later();
    await handler.scheduledLook('demo');
    expect(log[1]?.retired).toBe(101);
    expect(log[1]?.retiredMachines).toHaveLength(100);
  });
});

describe('a hint', () => {
  test('about a machine that ended: the same two looks; the answer does not say what was found', async () => {
    const { post, end, later, stateOf, log } = await start();
    end('m2');
    for (const expected of ['active', 'retired']) {
      const answer = await post({ nodeNames: ['node-2'] });
      expect([answer.statusCode, outcomeOf(answer), answer.body]).toEqual([202, 'looked', '{}']);
      expect(await stateOf('m2')).toBe(expected);
      later();
    }
    expect(log).toMatchObject([
      { look: 'hint', marked: 1 },
      { look: 'hint', retired: 1 },
    ]);
  });

  test('about machines that exist, and names that no machine has, changes nothing', async () => {
    const { post, later, stateOf, store, attest } = await start();
    const before = await store.findIdentity('null#m1');
    for (let look = 0; look < 3; look += 1) {
      expect((await post({ nodeNames: ['node-1', 'node-2', 'node-3', 'node-9'] })).statusCode).toBe(202);
      later();
    }
    expect(await Promise.all(machines.map(stateOf))).toEqual(['active', 'active', 'active']);
    expect(await store.findIdentity('null#m1')).toEqual(before);
    const renewed = await attest(requestOf({ node: 'node-1', by: 'node', evidence: { machine: 'm1' } }));
    expect(renewed).toMatchObject({ kind: 'approve' });
  });

  test('about a machine that its platform does not know retires nothing', async () => {
    const { post, platform, later, stateOf } = await start();
    platform.machines.set('m3', { nodeNames: [], state: 'unknown' });
    for (let look = 0; look < 3; look += 1) {
      await post({ nodeNames: ['node-3'] });
      later();
    }
    expect(await stateOf('m3')).toBe('active');
  });

  test('of which one machine cannot be asked about: the others are looked at, and the answer is busy', async () => {
    const { post, platform, end, log, store } = await start();
    platform.machines.set('m1', { nodeNames: [], down: new Error('no answer') });
    end('m2');
    const answer = await post({ nodeNames: ['node-1', 'node-2'] });
    expect([answer.statusCode, outcomeOf(answer)]).toEqual([503, 'busy']);
    expect((await store.findIdentity('null#m2'))?.unknownSince).toBeDefined();
    expect(log).toMatchObject([{ look: 'hint', why: 'Unavailable', trouble: 'unavailable', failed: ['node-1'] }]);
  });

  const name = (length: number) => 'a'.repeat(length);
  test.each<[string, unknown, RegExp]>([
    ['a text', 'node-1', /not a JSON object/],
    ['a list', ['node-1'], /not a JSON object/],
    ['null', null, /not a JSON object/],
    ['no names', {}, /nodeNames is not a list/],
    ['one name without a list', { nodeNames: 'node-1' }, /nodeNames is not a list/],
    ['an empty list', { nodeNames: [] }, /1 to 20/],
    ['21 names', { nodeNames: Array.from({ length: 21 }, (_, index) => `n${index}`) }, /1 to 20/],
    ['one key more', { nodeNames: ['node-1'], force: true }, /other than nodeNames/],
    ['the event of the schedule', { countersign: 'retire-gone' }, /other than nodeNames/],
    ['a number', { nodeNames: [1] }, /not the name of a node/],
    ['an empty name', { nodeNames: [''] }, /not the name of a node/],
    ['capitals', { nodeNames: ['Node-1'] }, /not the name of a node/],
    ['a separator of keys', { nodeNames: ['node#1'] }, /not the name of a node/],
    ['a line break', { nodeNames: ['node-1\n'] }, /not the name of a node/],
    ['a long name', { nodeNames: [name(254)] }, /not the name of a node/],
  ])('that is %s: 400, and nothing is looked at', async (_, call, message) => {
    const { post, log, platform } = await start();
    const asked = platform.asked();
    const answer = await post(call);
    expect([answer.statusCode, outcomeOf(answer)]).toEqual([400, 'invalid']);
    expect(errorIn(answer).message).toMatch(message);
    expect(platform.asked()).toBe(asked);
    expect(log).toMatchObject([{ outcome: 'invalid', cluster: 'demo' }]);
  });

  test('has at most 20 names and 32 KiB', () => {
    const nodeNames = Array.from({ length: 20 }, (_, index) => `${index}${name(252 - String(index).length)}`);
    expect(decodeHint(Buffer.from(JSON.stringify({ nodeNames })))).toEqual({ ok: true, value: nodeNames });
    const padded = `${JSON.stringify({ nodeNames: ['node-1'] })}${' '.repeat(32_768)}`;
    expect(decodeHint(Buffer.from(padded))).toMatchObject({ ok: false, problem: /larger/ });
  });

  test('is a POST of JSON by a caller of the cluster, to exactly this path', async () => {
    const { post, handler } = await start();
    const body = { nodeNames: ['node-1'] };
    expect((await post(body, { method: 'GET' })).statusCode).toBe(405);
    expect((await post(body, { headers: { 'content-type': 'text/plain' } })).statusCode).toBe(415);
    for (const path of [`${lookPath}/`, `${lookPath}/x`, '/v1/clusters/demo/look', '/v1/clusters/other/attest/look'])
      expect((await post(body, { path })).statusCode).toBe(404);
    const refused = await start({}, { caller: () => unnamedCaller });
    expect((await refused.post(body)).statusCode).toBe(403);
    expect((await handler.http({} as never)).statusCode).toBe(403);
  });

  test('is not served where the operator switched it off; attest is', async () => {
    const { post, platform } = await start({ settings: { retireTerminated: false } });
    expect((await post({ nodeNames: ['node-1'] })).statusCode).toBe(404);
    platform.machines.set('m4', { nodeNames: ['node-4'] });
    const request = requestOf({ node: 'node-4', evidence: { machine: 'm4' } });
    const verdict = verdictIn(await post({ request }, { path: '/v1/clusters/demo/attest' }));
    expect(verdict.decision).toBe('approve');
  });
});
