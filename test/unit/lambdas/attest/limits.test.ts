/** How much one machine and one requester may have attest do (docs/attestation.md, Limits). */
import { afterEach, describe, expect, test } from 'vitest';
import {
  countUse,
  mostRefusals,
  mostUses,
  refusalWindowOf,
  refusedTooOften,
  usedUp,
} from '../../../../core/attestation/records/request-limits.ts';
import { LaterError } from '../../../../core/ports/errors.ts';
import { newKey } from '../../../harness/x509/requests.ts';
import { createWorld, requestOf, said, servingSigner } from './world.ts';
import type { Asked, World, WorldOptions } from './world.ts';

const open: World[] = [];
afterEach(() => {
  for (const world of open.splice(0)) world.close();
});

async function start(options: WorldOptions = {}): Promise<World> {
  const world = await createWorld(options);
  for (const id of ['m1', 'm2']) world.platform.machines.set(id, { nodeNames: [`node-${id}`] });
  // At the beginning of a minute, so that a test ends in the one in which it began.
  world.clock.now -= world.clock.now % mostRefusals.milliseconds;
  open.push(world);
  return world;
}

async function decide(world: World, asked: Asked): Promise<string> {
  try {
    return said(await world.attest(requestOf(asked)));
  } catch (error) {
    if (error instanceof LaterError) return `${error.why} ${error.afterMilliseconds}`;
    throw error;
  }
}

const key = newKey('P-256');
const other = newKey('P-256');
const m1 = { node: 'node-m1', key, evidence: { machine: 'm1' } } as const;
const m2 = { node: 'node-m2', key: other, evidence: { machine: 'm2' } } as const;

describe('of one machine', () => {
  test('finding 14: after so many certificates in a while it waits, and no platform is asked about it', async () => {
    const world = await start();
    for (let use = 0; use < mostUses.uses; use += 1) expect(await decide(world, m1)).toBe('approve');
    const asked = world.platform.asked();
    world.clock.now += 5_000;
    const waits = `Limited ${mostUses.milliseconds - 5_000}`;
    expect(await decide(world, m1)).toBe(waits);
    expect(await decide(world, { ...m1, by: 'node', key: other })).toBe(waits);
    const serving = { by: 'node', node: 'node-m1', signerName: servingSigner, sans: { dns: ['node-m1'] } } as const;
    expect(await decide(world, serving)).toBe(waits);
    expect(await decide(world, { ...serving, evidence: { machine: 'm1' } })).toBe(waits);
    expect(world.platform.asked()).toBe(asked);
    // Others do not notice, and it goes on when the time is over.
    expect(await decide(world, m2)).toBe('approve');
    world.clock.now += mostUses.milliseconds - 5_000;
    expect(await decide(world, m1)).toBe('approve');
  });

  test('finding 14: a requester that only claims to be it uses up nothing of its limit', async () => {
    const world = await start();
    await decide(world, m1);
    for (let tries = 0; tries < mostUses.uses + 1; tries += 1)
      expect(await decide(world, { ...m1, key: other })).toBe('TofuReuse');
    expect((await world.store.findNode('node-m1'))?.recent).toEqual({ since: world.clock.now, uses: 1 });
    expect(await decide(world, m1)).toBe('approve');
  });

  test('counts begin anew after a while, and after a clock that was wrong', () => {
    const now = 1_000_000_000;
    const full = { since: now, uses: mostUses.uses };
    expect(countUse(undefined, now)).toEqual({ since: now, uses: 1 });
    expect(countUse({ since: now, uses: 1 }, now + 5)).toEqual({ since: now, uses: 2 });
    expect(countUse(full, now + mostUses.milliseconds)).toEqual({ since: now + mostUses.milliseconds, uses: 1 });
    expect(usedUp({}, now)).toBeUndefined();
    expect(usedUp({ recent: { ...full, uses: full.uses - 1 } }, now)).toBeUndefined();
    expect(usedUp({ recent: full }, now)).toBe(mostUses.milliseconds);
    expect(usedUp({ recent: full }, now + mostUses.milliseconds - 1)).toBe(1);
    expect(usedUp({ recent: full }, now + mostUses.milliseconds)).toBeUndefined();
    // By a clock that is a little behind.
    expect(usedUp({ recent: full }, now - 1_000)).toBe(mostUses.milliseconds);
    expect(usedUp({ recent: full }, now - mostUses.milliseconds)).toBeUndefined();
  });
});

describe('of one requester', () => {
  const junk = { ...m1, version: 'null/v9' } as const;
  const by = { username: 'system:bootstrap:ffffff', groups: ['system:bootstrappers', 'system:authenticated'] };

  test('finding 14: so many refusals in a minute, then all of its requests wait, without being judged', async () => {
    const world = await start();
    for (let refused = 0; refused < mostRefusals.refusals; refused += 1)
      expect(await decide(world, { ...junk, by })).toBe('AttestationVersion');
    world.clock.now += 10_000;
    const asked = world.platform.asked();
    expect(await decide(world, { ...m1, by })).toBe('Limited 50000');
    expect(await decide(world, { ...junk, by })).toBe('Limited 50000');
    expect(world.platform.asked()).toBe(asked);
    // Another token is another requester.
    expect(await decide(world, m2)).toBe('approve');
    world.clock.now += 50_000;
    expect(await decide(world, { ...m1, by })).toBe('approve');
  });

  test('finding 14: approvals and repeated deliveries do not count', async () => {
    const world = await start();
    const count = refusalWindowOf(by.username, world.clock.now);
    const refusals = async () => (await world.store.recall('none', count, world.clock.now)).refusals;
    expect(await decide(world, { ...m1, by })).toBe('approve');
    expect(await refusals()).toBe(0);
    const refused = requestOf({ ...junk, by });
    for (let again = 0; again < 3; again += 1) expect(said(await world.attest(refused))).toBe('AttestationVersion');
    expect(await refusals()).toBe(1);
  });

  test('finding 14: evidence that waited too long does not count, other evidence that is refused does', async () => {
    const world = await start();
    const count = refusalWindowOf(by.username, world.clock.now);
    const refusals = async () => (await world.store.recall('none', count, world.clock.now)).refusals;
    const old = { ...m1, evidence: { ...m1.evidence, tooOld: true }, by } as const;
    expect([await decide(world, old), await refusals()]).toEqual(['AttestationInvalid', 0]);
    const forged = { ...m1, evidence: { ...m1.evidence, binding: 'another' }, by };
    expect([await decide(world, forged), await refusals()]).toEqual(['AttestationInvalid', 1]);
  });

  test('finding 14: who was answered before is answered again, whatever the count', async () => {
    const world = await start();
    const object = requestOf({ ...m1, by });
    expect(said(await world.attest(object))).toBe('approve');
    for (let refused = 0; refused < mostRefusals.refusals; refused += 1) await decide(world, { ...junk, by });
    expect(said(await world.attest(object))).toBe('approve');
  });

  test('finding 14: where proofs are only audited the count blocks no request', async () => {
    const world = await start({ attestation: { mode: 'audit' } });
    for (let refused = 0; refused < mostRefusals.refusals; refused += 1) await decide(world, { ...junk, by });
    const asked = world.platform.asked();
    expect(await decide(world, { ...m1, by })).toBe('audit unjudged');
    expect(world.platform.asked()).toBe(asked);
  });

  test('a minute begins with the minute, for every process alike', () => {
    const begun = 1_000_000 * mostRefusals.milliseconds;
    for (const later of [0, 1, mostRefusals.milliseconds - 1])
      expect(refusalWindowOf('a', begun + later)).toEqual({ requester: 'a', from: begun });
    const count = { requester: 'a', from: begun };
    expect(refusedTooOften(mostRefusals.refusals - 1, count, begun)).toBeUndefined();
    expect(refusedTooOften(mostRefusals.refusals, count, begun + 1)).toBe(mostRefusals.milliseconds - 1);
  });
});
