import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { JsonObject } from '../../../../core/ports/kubernetes-api.ts';
import { createFaults, visitEveryFault, type Call, type Faults, type VisitedPlan } from '../../../contract/faulty.ts';
import { makeRequest } from '../../../harness/x509/requests.ts';
import { contents, createCountingAuthority, tbsOf, type CountingAuthority } from '../../../harness/stack/key.ts';
import { byTier } from '../../../harness/determinism/tier.ts';
import {
  clientSigner,
  createWire,
  createWorld,
  endOf,
  metadataOf,
  passTime,
  startRelayWorker,
  startSignFunction,
  type RelayWorker,
  type SignFunction,
  type Wire,
  type World,
} from '../../../harness/stack/world.ts';

/*
 * Crash at every port call. The calls are not written down: `visitEveryFault` takes them from the run itself. Each run
 * has a world of its own, one fault (or two), and fresh workers in the place of dead ones; then time goes on, past every
 * lease and backoff, until all is answered.
 */

let key: CountingAuthority;
let otherKey: CountingAuthority;
let wire: Wire;

beforeAll(async () => {
  key = await createCountingAuthority();
  otherKey = await createCountingAuthority();
  wire = await createWire({ handler: () => Promise.reject(new Error('none')), dead: () => true, stop() {} });
});
afterAll(() => wire.close());

/** Which processes the faults are in. What is not named keeps running through the other's crash. */
type Domain = 'relay' | 'sign function' | 'both in one process';

/** Starts workers, and new ones for those that die, until `over`. */
async function runToTheEnd(world: World, domain: Domain, faults: Faults, over: () => boolean): Promise<void> {
  const workers: { stop(): void | Promise<void> }[] = [];
  const startFunction = (with_?: Faults): SignFunction => {
    const started = startSignFunction(world, with_);
    workers.push(started);
    wire.current = started;
    return started;
  };
  const startRelay = (with_?: Faults): RelayWorker => {
    const started = startRelayWorker(world, wire, with_);
    workers.push(started);
    return started;
  };
  const signFunction = startFunction(domain === 'relay' ? undefined : faults);
  const relay = startRelay(domain === 'sign function' ? undefined : faults);

  await passTime(world, wire, () => over() || faults.crashed);
  if (faults.crashed) {
    if (signFunction.dead()) startFunction();
    if (relay.dead()) startRelay();
    await passTime(world, wire, over);
  }
  await passTime(world, wire, over); // a write whose answer was lost may be over before its writer knows
  for (const worker of workers.toReversed()) await worker.stop();
}

interface Planted {
  readonly name: string;
  readonly uid: string;
}

function plant(
  world: World,
  name: string,
  decision: 'Approved' | 'Denied' | undefined,
  more: JsonObject = {},
): Planted {
  const { store } = world.api;
  const requester = { username: 'alice', groups: ['system:authenticated'] };
  const spec = {
    signerName: clientSigner,
    request: Buffer.from(makeRequest({ subject: { O: 'testers', CN: name } }).pem).toString('base64'),
    usages: ['digital signature', 'client auth'],
    ...more,
  };
  const created = store.create({ metadata: { name }, spec }, requester);
  if (!created.ok) throw new Error(created.problem.message);
  const conditions = [{ type: decision, status: 'True', reason: 'Test', message: '' }];
  const decided =
    decision === undefined ? created : store.update(name, 'approval', { ...created.value, status: { conditions } });
  if (!decided.ok) throw new Error(decided.problem.message);
  return { name, uid: metadataOf(decided.value).uid };
}

function read(world: World, name: string): JsonObject {
  const stored = world.api.store.get(name);
  if (!stored.ok) throw new Error(stored.problem.message);
  return stored.value;
}

function certificateOf(object: JsonObject): Buffer {
  const { certificate } = object['status'] as { certificate: string };
  const pem = Buffer.from(certificate, 'base64').toString();
  return Buffer.from(pem.replaceAll(/-----[A-Z ]+-----/g, ''), 'base64');
}

/** One request of each kind a signer meets, everything in the way of them, and what must hold at the end. */
async function scenario(domain: Domain, faults: Faults, place?: 'memory'): Promise<void> {
  const world = createWorld(key, place);
  try {
    const allowed = plant(world, 'allowed', 'Approved');
    const refused = plant(world, 'refused', 'Approved', { usages: ['code signing', 'server auth'] });
    const leftAlone = [
      plant(world, 'unapproved', undefined),
      plant(world, 'denied', 'Denied'),
      plant(world, 'foreign', 'Approved', { signerName: 'example.com/foreign' }),
    ];
    const before = leftAlone.map(({ name }) => read(world, name));

    const over = (): boolean =>
      endOf(read(world, allowed.name)) === 'issued' && endOf(read(world, refused.name)) === 'failed';
    await runToTheEnd(world, domain, faults, over);

    const where = faults.injected.map(({ number, port, method }) => `${number} ${port}.${method}`).join(', ');
    const record = await world.ledger.find(allowed.uid);
    expect(record?.state, where).toBe('issued');
    const written = certificateOf(read(world, allowed.name));
    expect(written.equals(record!.certificate!), where).toBe(true);
    // At the key: one content, the one on record and in the certificate, and no more often than something went wrong.
    expect(contents(key.signed), where).toEqual([tbsOf(written)]);
    expect(tbsOf(written), where).toBe(Buffer.from(record!.tbs).toString('hex'));
    expect(key.signed.length, where).toBeLessThanOrEqual(1 + faults.injected.length);

    for (const { uid } of [refused, ...leftAlone]) expect(await world.ledger.find(uid), where).toBeUndefined();
    const { conditions } = read(world, refused.name)['status'] as { conditions: JsonObject[] };
    expect(conditions[1], where).toMatchObject({
      type: 'Failed',
      status: 'True',
      reason: 'SignerValidationFailure',
      message:
        'invalid usage for client certificate: code signing; invalid usage for client certificate: server auth; ' +
        'missing required usage for client certificate: client auth',
    });
    expect(
      leftAlone.map(({ name }) => read(world, name)),
      where,
    ).toEqual(before);
    // An Event is a courtesy: it may be lost with its relay, never doubled. One about a delay may come before.
    const reasons = world.api.events.map(({ reason }) => reason);
    expect(reasons.length, where).toBe(new Set(reasons).size);
    expect(['SignerValidationFailure', 'SigningDelayed'], where).toEqual(expect.arrayContaining(reasons));
  } finally {
    world.close();
  }
}

/** The undisturbed run's calls, each as a point `number port.method` per time and kind: what must have been visited. */
function pointsOf(calls: readonly Call[]): string[] {
  return ['once', 'crash'].flatMap((kind) =>
    ['before', 'after'].flatMap((time) =>
      calls.map(({ number, port, method }) => `${kind} ${time} ${number} ${port}.${method}`),
    ),
  );
}
const pointOf = ({ kind, time, call, port, method }: VisitedPlan[number]): string =>
  `${kind} ${time} ${call} ${port}.${method}`;
/** A second fault while the first is being mended: many times as many runs. */
const depth = byTier({ default: 1, deep: 2 });
const methods = (visited: readonly VisitedPlan[]): Set<string> =>
  new Set(visited.flat().map(({ port, method }) => `${port}.${method}`));

describe('a crash or fault at every call', () => {
  test.each<[Domain, string[]]>([
    ['relay', ['api.list', 'api.watch', 'endpoint.sign', 'api.updateStatus', 'api.createEvent']],
    ['sign function', ['ledger.open', 'signer.sign', 'ledger.complete', 'ledger.find']],
  ])('of the %s', async (domain, expected) => {
    let calls: readonly Call[] = [];
    const visited = await visitEveryFault(async (faults) => {
      await scenario(domain, faults);
      if (faults.injected.length === 0 && calls.length === 0) calls = faults.calls.slice();
    });
    expect(visited.map(([fault]) => pointOf(fault!)).toSorted()).toEqual(pointsOf(calls).toSorted());
    expect(new Set(calls.map(({ port, method }) => `${port}.${method}`))).toEqual(new Set(expected));
  });

  test(`of both in one process, up to ${depth} of them`, async () => {
    const visited = await visitEveryFault((faults) => scenario('both in one process', faults, 'memory'), { depth });
    // Only a first fault makes the calls of the second line happen: it takes a second fault to visit them.
    const atFirst = ['list', 'watch', 'updateStatus', 'createEvent'].map((method) => `api.${method}`);
    atFirst.push('ledger.find', 'ledger.open', 'ledger.complete', 'endpoint.sign', 'signer.sign');
    const later = ['api.get', 'ledger.takeOver', 'ledger.release'];
    expect(methods(visited)).toEqual(new Set(byTier({ default: atFirst, deep: [...atFirst, ...later] })));
    const secondOnTakeOver = visited.filter(([, second]) => second?.method === 'takeOver');
    expect(secondOnTakeOver.length > 0).toBe(depth > 1);
    process.stdout.write(`visited ${visited.length} plans of up to ${depth} faults\n`);
  });
});

describe('an intent that can no longer be signed', () => {
  /** Begun by a worker that died before it asked the key; then the CA was replaced. */
  async function staleScenario(faults: Faults): Promise<void> {
    const world = createWorld(key, 'memory');
    const replaced: World = { ...world, key: otherKey };
    otherKey.reset();
    try {
      const allowed = plant(world, 'allowed', 'Approved');
      await beginAndDie(world, allowed);
      const over = (): boolean => endOf(read(world, allowed.name)) === 'failed';
      await runToTheEnd(replaced, 'both in one process', faults, over);
      const { conditions } = read(world, allowed.name)['status'] as { conditions: JsonObject[] };
      expect(conditions[1]).toMatchObject({ type: 'Failed', status: 'True', reason: 'IntentExpired' });
      expect((await world.ledger.find(allowed.uid))?.state).toBe('expired');
      expect([...key.signed, ...otherKey.signed]).toEqual([]);
    } finally {
      world.close();
    }
  }

  /** A worker whose first answer of the ledger is its last. */
  async function beginAndDie(world: World, { uid }: Planted): Promise<void> {
    const faults = createFaults({ call: 1, time: 'after', kind: 'crash' });
    const signFunction = startSignFunction(world, faults);
    wire.current = signFunction;
    const relay = startRelayWorker(world, wire);
    await passTime(world, wire, () => faults.crashed);
    await relay.stop();
    signFunction.stop();
    expect((await world.ledger.find(uid))?.state).toBe('intent');
  }

  test('ends Failed, unsigned, whatever fails on the way', async () => {
    const visited = await visitEveryFault(staleScenario);
    expect(methods(visited)).toContain('ledger.expire');
    expect(methods(visited)).not.toContain('signer.sign');
  });
});
