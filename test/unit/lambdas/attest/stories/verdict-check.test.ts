/** How sign checks the verdict: which ones count, for which machine, and for how long (core/attestation/check-verdict.ts). */
import { afterEach, describe, expect, test } from 'vitest';
import type { Verdict } from '../../../../../core/ports/attestation-store.ts';
import { newKey } from '../../../../harness/x509/requests.ts';
import { approvedOf, createWorld, forget, requestOf, retire, said, servingSigner, signed } from '../world.ts';
import type { Asked, World, WorldOptions } from '../world.ts';

const m1 = { machine: 'm1' };
const open: World[] = [];
afterEach(() => {
  for (const world of open.splice(0)) world.close();
});

async function start(options?: WorldOptions): Promise<World> {
  const world = await createWorld(options);
  world.platform.machines.set('m1', { nodeNames: ['node-1', 'node-2'], addresses: ['10.0.0.1'] });
  open.push(world);
  return world;
}

async function issue(world: World, asked: Asked): Promise<string> {
  return signed(await world.issue(requestOf({ evidence: m1, approved: true, ...asked })));
}

/** Judged and let in, and not signed yet. */
async function letIn(world: World, asked: Asked = {}): Promise<object> {
  const object = requestOf({ evidence: m1, ...asked });
  expect(said(await world.attest(object))).toBe('approve');
  return approvedOf(object);
}

describe('a record that was reset, and the machine registered anew', () => {
  test.each([
    ['with another key', {}, 'again since'],
    ['under another name', { node: 'node-2' }, 'another name'],
  ] as const)('%s: what was let in before gets nothing more', async (_, asked, words) => {
    const world = await start();
    const before = await letIn(world);
    await forget(world, 'null#m1');
    world.clock.now += 1;
    const after = await letIn(world, asked);
    const refused = await world.issue(before);
    expect(refused).toMatchObject({ kind: 'refused', violations: [{ code: 'Revoked' }] });
    expect(JSON.stringify(refused)).toContain(words);
    expect(signed(await world.issue(after))).toBe('issued');
  });
  test('so does a disk that was stolen, after the operator has done everything', async () => {
    const world = await start();
    const stolen = await letIn(world);
    const lock = { id: '1', identity: 'null#m1', at: world.clock.now, by: 'me', reason: 'stolen' };
    await world.register.lock(lock, { ...lock, action: 'lock', subject: lock.identity });
    expect(signed(await world.issue(stolen))).toBe('Locked');
    await forget(world, 'null#m1');
    expect(signed(await world.issue(stolen))).toBe('Locked');
    await world.register.unlock(lock, { ...lock, id: '2', action: 'unlock', subject: lock.identity });
    expect(signed(await world.issue(stolen))).toBe('Revoked');
    world.clock.now += 1;
    await letIn(world);
    expect(signed(await world.issue(stolen))).toBe('Revoked');
  });
});

test('a machine that is retired after it was let in gets nothing more', async () => {
  const world = await start();
  const before = await letIn(world);
  await retire(world, 'm1', 'node-1');
  const refused = await world.issue(before);
  expect(refused).toMatchObject({ kind: 'refused', violations: [{ code: 'Revoked' }] });
  expect(JSON.stringify(refused)).toContain('passed to another machine');
});

describe('a verdict that an attacker wrote into the table', () => {
  test.each<readonly [string, Partial<Verdict>, string]>([
    [
      'a denial that names a machine on record',
      { decision: 'deny', violations: [{ code: 'TofuReuse', message: 'x' }] },
      'TofuReuse',
    ],
    ['a denial that says no more', { decision: 'challenge' }, 'AttestationMissing'],
    ['as it is', {}, 'issued'],
  ])('%s', async (_, change, expected) => {
    const world = await start();
    const object = await letIn(world);
    const findVerdict = async (uid: string, now: number): Promise<Verdict | undefined> => {
      const found = await world.store.findVerdict(uid, now);
      return found === undefined ? undefined : { ...found, ...change };
    };
    expect(signed(await world.change({ store: { ...world.store, findVerdict } }).issue(object))).toBe(expected);
  });
  test('an approval without an identity', async () => {
    const world = await start();
    const object = await letIn(world);
    const findVerdict = async (uid: string, now: number): Promise<Verdict | undefined> => {
      const found = await world.store.findVerdict(uid, now);
      if (found === undefined) return undefined;
      const { identity: _, ...anonymous } = found;
      return anonymous;
    };
    const forged = world.change({ store: { ...world.store, findVerdict } });
    expect(signed(await forged.issue(object))).toBe('AttestationMissing');
  });
});

test('a signer that demands a proof, wired without a way to look for one, signs nothing', async () => {
  const world = await start();
  await expect(world.issueBlindly(await letIn(world))).rejects.toThrow('has no access to it');
});

describe('where every key must be fresh', () => {
  const fresh = { profile: { freshKeys: true } } as const;
  test.each(['first', 'takeover'] as const)('the first one may come again: %s', async (way) => {
    const world = await start(fresh);
    if (way === 'takeover') {
      world.platform.machines.set('m0', { nodeNames: ['node-1'] });
      expect(await issue(world, { evidence: { machine: 'm0' } })).toBe('issued');
      world.platform.machines.set('m0', { nodeNames: [], state: 'gone' });
    }
    const key = newKey('P-256');
    // In the order that a node agent's retries may be signed in: the first verdict last.
    const [one, two] = [await letIn(world, { key }), await letIn(world, { key })];
    expect([signed(await world.issue(two)), signed(await world.issue(one))]).toEqual(['issued', 'issued']);
    expect(await issue(world, { key })).toBe('issued');
  });
  test('not after it was replaced, and not when it is brought back', async () => {
    const world = await start(fresh);
    const key = newKey('P-256');
    expect(await issue(world, { key })).toBe('issued');
    const late = await letIn(world, { key });
    const other = newKey('P-256');
    await letIn(world, { key: other, by: 'node' });
    expect(signed(await world.issue(late))).toBe('KeyReused');
    await letIn(world, { key, by: 'node' });
    expect(signed(await world.issue(late))).toBe('KeyReused');
  });
  test('not as the key of a server', async () => {
    const world = await start(fresh);
    const key = newKey('P-256');
    expect(await issue(world, { key })).toBe('issued');
    const serving = requestOf({ signerName: servingSigner, by: 'node', key, sans: { ip: ['10.0.0.1'] } });
    expect(signed(await world.issue(approvedOf(serving)))).toBe('KeyReused');
  });
});
