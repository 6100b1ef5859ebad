/** Requests for the node name of a machine that was retired without a successor, while the grace lasts and after it. */
import { afterEach, expect, test } from 'vitest';
import type { IdentityRecord } from '../../../../../core/ports/attestation-store.ts';
import { all } from '../../../../contract/attestation-scene.ts';
import { createWorld, requestOf, said } from '../world.ts';
import type { World } from '../world.ts';

const minute = 60_000;
const hour = 60 * minute;
const open: World[] = [];
afterEach(() => open.splice(0).forEach((world) => world.close()));

/** m1 was node-1 and was found terminated twice; m2 may be node-1. */
async function retired(): Promise<{ readonly world: World; readonly record: IdentityRecord }> {
  const world = await createWorld();
  open.push(world);
  const { platform, store, clock } = world;
  for (const machine of ['m1', 'm2']) platform.machines.set(machine, { nodeNames: ['node-1'] });
  expect(await join(world, 'm1')).toBe('approve');
  const first = await store.findNode('node-1');
  if (first === undefined) throw new Error('not registered');
  platform.machines.set('m1', { nodeNames: ['node-1'], state: 'gone' });
  const marked = { ...first, unknownSince: clock.now, rev: first.rev + 1 };
  expect(await store.observe(marked)).toBe(true);
  clock.now += 10 * minute;
  const about = { by: 'attest', action: 'retire', subject: first.identity, reason: 'it is gone' } as const;
  const audit = { id: '0'.repeat(26), at: clock.now, ...about };
  expect(await store.retire(marked, { nameFreeAt: clock.now + hour, audit })).toEqual({ kind: 'written' });
  return { world, record: { ...marked, state: 'retired', retiredAt: clock.now, nameFreeAt: clock.now + hour, rev: 3 } };
}

const join = async (world: World, machine: string) => said(await world.attest(requestOf({ evidence: { machine } })));

test.each(['gone', 'unknown'] as const)(
  'the name passes on during the grace if the platform reports it as %s',
  async (state) => {
    const { world, record } = await retired();
    if (state === 'unknown') world.platform.machines.delete('m1');
    expect(await join(world, 'm2')).toBe('approve');
    expect((await world.store.findNode('node-1'))?.identity).toBe('null#m2');
    // The record before stays as it was, and its retirement has one audit item.
    expect(await world.store.findIdentity('null#m1')).toEqual(record);
    expect(await all(world.register.listAudit())).toHaveLength(1);
  },
);

test.each(['running', 'stopped'] as const)(
  'the name stays during the grace if the platform reports it as %s',
  async (state) => {
    const { world, record } = await retired();
    world.platform.machines.set('m1', { nodeNames: ['node-1'], ...(state === 'stopped' ? { state } : {}) });
    expect(await join(world, 'm2')).toBe('TofuNodeTaken');
    expect(await world.store.findNode('node-1')).toEqual(record);
  },
);

test('the name is free after the grace, whatever the platform reports', async () => {
  const { world } = await retired();
  world.platform.machines.set('m1', { nodeNames: ['node-1'] });
  world.clock.now += hour;
  expect(await join(world, 'm2')).toBe('approve');
  expect(await join(world, 'm1')).toBe('Revoked');
});
