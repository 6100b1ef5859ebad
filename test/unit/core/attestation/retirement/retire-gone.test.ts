/** Retirement over the embedded store and the null provider: looks, hints, failures and races with requests. */
import { randomBytes } from 'node:crypto';
import { afterEach, describe, expect, test } from 'vitest';
import type { AttestationProvider } from '../../../../../core/attestation/evidence/provider.ts';
import {
  mostHints,
  mostMachines,
  nameGrace,
  retireGone,
} from '../../../../../core/attestation/retirement/retire-gone.ts';
import type { RetirementPorts, RetirementScope } from '../../../../../core/attestation/retirement/retire-gone.ts';
import { all } from '../../../../contract/attestation-scene.ts';
import { newKey } from '../../../../harness/x509/requests.ts';
import { adopt, createWorld, forget, requestOf, said, signed, approvedOf } from '../../../lambdas/attest/world.ts';
import type { World, WorldOptions } from '../../../lambdas/attest/world.ts';

const minute = 60_000;
const open: World[] = [];
afterEach(() => open.splice(0).forEach((world) => world.close()));

/** A world in which m1 is node-1. */
async function joined(options: WorldOptions = {}): Promise<World> {
  const world = await createWorld(options);
  open.push(world);
  world.platform.machines.set('m1', { nodeNames: ['node-1'] });
  world.platform.machines.set('m2', { nodeNames: ['node-1'] });
  expect(said(await world.attest(requestOf({ evidence: { machine: 'm1' }, key: key1 })))).toBe('approve');
  return world;
}
const key1 = newKey('P-256');

function run(world: World, scope: RetirementScope = 'scheduled', ports: Partial<RetirementPorts> = {}) {
  const { store, platform, clock, others } = world;
  const providers = new Map([platform, ...others].map(({ provider }) => [provider.name, provider] as const));
  return retireGone({ store, providers, now: () => clock.now, randomBytes, ...ports }, scope);
}

const nothing = { looked: 0, marked: 0, unmarked: 0, retired: [], changed: 0, failures: [], cutShort: false };

function end(world: World, machine = 'm1'): void {
  world.platform.machines.set(machine, { nodeNames: ['node-1'], state: 'gone' });
}

/** Terminated, and looked at twice. */
async function retired(world: World): Promise<void> {
  end(world);
  expect(await run(world)).toEqual({ ...nothing, looked: 1, marked: 1 });
  world.clock.now += 10 * minute;
  const nameFreeAt = world.clock.now + nameGrace;
  const retired = [{ identity: 'null#m1', nodeName: 'node-1', nameFreeAt }];
  expect(await run(world)).toEqual({ ...nothing, looked: 1, retired });
}

const join = async (world: World, machine: string) => said(await world.attest(requestOf({ evidence: { machine } })));

describe('a scheduled run', () => {
  test('retires a machine that is terminated at two looks: no certificate any more, and its name is free after the grace', async () => {
    const world = await joined();
    const approved = requestOf({ evidence: { machine: 'm1' }, key: key1 });
    expect(said(await world.attest(approved))).toBe('approve');
    const before = await world.store.findIdentity('null#m1');
    await retired(world);
    const record = await world.store.findIdentity('null#m1');
    expect(record).toMatchObject({
      state: 'retired',
      retiredAt: world.clock.now,
      nameFreeAt: world.clock.now + nameGrace,
    });
    // Neither attest nor sign accepts it, whatever was approved before.
    expect(signed(await world.issue(approvedOf(approved)))).toBe('Revoked');
    expect(said(await world.attest(requestOf({ evidence: { machine: 'm1' }, by: 'node', key: key1 })))).toBe('Revoked');
    const [item] = await all(world.register.listAudit());
    expect(item).toMatchObject({ action: 'retire', by: 'attest', subject: 'null#m1', nodeName: 'node-1' });
    expect(item?.before).toEqual({ ...before, unknownSince: world.clock.now - 10 * minute, rev: 3 });
    // The platform is not asked about the machine before when the grace is over.
    world.platform.machines.set('m1', { nodeNames: ['node-1'], down: new Error('it cannot be asked') });
    await expect(join(world, 'm2')).rejects.toThrow('it cannot be asked');
    world.clock.now += nameGrace;
    expect(await join(world, 'm2')).toBe('approve');
    expect(await world.store.findNode('node-1')).toMatchObject({ identity: 'null#m2', rev: 1 });
    expect(await all(world.register.listAudit())).toHaveLength(1);
  });

  test('leaves machines of other clusters, running machines and retired ones alone', async () => {
    const world = await joined();
    world.platform.machines.set('other', { nodeNames: [], state: 'gone' });
    expect(await run(world)).toEqual(nothing);
    await retired(world);
    world.clock.now += 10 * minute;
    expect(await run(world)).toEqual(nothing);
  });

  test('decides again from the beginning if the machine was used in between', async () => {
    const world = await joined();
    end(world);
    await run(world);
    // An outdated list: the machine runs.
    world.platform.machines.set('m1', { nodeNames: ['node-1'] });
    world.clock.now += 5 * minute;
    expect(said(await world.attest(requestOf({ evidence: { machine: 'm1' }, by: 'node', key: key1 })))).toBe('approve');
    expect(await world.store.findNode('node-1')).not.toHaveProperty('unknownSince');
    end(world);
    expect(await run(world)).toEqual({ ...nothing, looked: 1, marked: 1 });
  });

  test('asks each platform, and retires what one lists if another cannot be asked', async () => {
    const world = await joined({ others: [{ name: 'second' }] });
    const down = new Error('EC2 cannot be asked now');
    world.others[0]?.machines.set('x', { nodeNames: [], down });
    end(world);
    const failures = [{ about: 'second', error: down }];
    expect(await run(world)).toEqual({ ...nothing, looked: 1, marked: 1, failures });
    // What was listed before the error is looked at.
    world.platform.machines.set('x', { nodeNames: [], down });
    world.clock.now += 10 * minute;
    const report = await run(world);
    expect(report.retired).toMatchObject([{ identity: 'null#m1' }]);
    expect(report.failures.map(({ about }) => about)).toEqual(['null', 'second']);
  });

  test('goes on if one machine cannot be read', async () => {
    const world = await joined();
    const machines = Array.from({ length: 30 }, (_, i) => `x${i}`);
    for (const machine of machines) {
      world.platform.machines.set(machine, { nodeNames: [machine], state: 'gone' });
      await adopt(world, { identity: `null#${machine}`, nodeName: machine });
    }
    const store: RetirementPorts['store'] = {
      ...world.store,
      findIdentity: (identity) =>
        identity === 'null#x7' ? Promise.reject(new Error('throttled')) : world.store.findIdentity(identity),
    };
    const report = await run(world, 'scheduled', { store });
    expect(report).toMatchObject({ looked: 29, marked: 29, failures: [{ about: 'null#x7' }] });
  });

  test('looks at an identity once that two providers list, and at a limited number', async () => {
    const world = await joined();
    end(world);
    let reads = 0;
    const store = {
      ...world.store,
      findIdentity: (identity: string) => {
        reads += 1;
        return world.store.findIdentity(identity);
      },
    };
    const twice = new Map(['a', 'b'].map((name) => [name, { ...world.platform.provider, name }] as const));
    expect(await run(world, 'scheduled', { store, providers: twice })).toMatchObject({ looked: 1 });
    expect(reads).toBe(1);
    const many: AttestationProvider = {
      ...world.platform.provider,
      async *goneMachines() {
        for (let i = 0; i <= mostMachines; i += 1) yield `null#x${i}`;
      },
    };
    reads = 0;
    const report = await run(world, 'scheduled', { store, providers: new Map([['null', many]]) });
    expect(report).toEqual({ ...nothing, cutShort: true });
    expect(reads).toBe(mostMachines);
  });
});

describe('a hint', () => {
  const hint = { nodeNames: ['node-1', 'nobody', 'node-1'] };

  test('starts the first look, and the schedule the second', async () => {
    const world = await joined();
    end(world);
    expect(await run(world, hint)).toEqual({ ...nothing, looked: 1, marked: 1 });
    // Too early: the platform is not asked.
    const asked = world.platform.asked();
    world.clock.now += minute;
    expect(await run(world, hint)).toEqual({ ...nothing, looked: 1 });
    expect(world.platform.asked()).toBe(asked);
    world.clock.now += minute;
    expect((await run(world)).retired).toHaveLength(1);
  });

  test.each(['running', 'stopped', 'unknown'] as const)('about a machine that is %s changes nothing', async (state) => {
    const world = await joined();
    const before = await world.store.findNode('node-1');
    if (state === 'unknown') world.platform.machines.delete('m1');
    else if (state === 'stopped') world.platform.machines.set('m1', { nodeNames: ['node-1'], state });
    for (let i = 0; i < 5; i += 1) {
      expect(await run(world, hint)).toEqual({ ...nothing, looked: 1 });
      world.clock.now += 10 * minute;
    }
    expect(await world.store.findNode('node-1')).toEqual(before);
  });

  test('erases a first look at a machine that exists', async () => {
    const world = await joined();
    end(world);
    await run(world);
    world.platform.machines.set('m1', { nodeNames: ['node-1'] });
    world.clock.now += 10 * minute;
    expect(await run(world, hint)).toEqual({ ...nothing, looked: 1, unmarked: 1 });
    expect(await world.store.findNode('node-1')).not.toHaveProperty('unknownSince');
  });

  test('about a machine whose platform cannot be asked is reported', async () => {
    const world = await joined();
    const error = new Error('EC2 cannot be asked now');
    world.platform.machines.set('m1', { nodeNames: ['node-1'], down: error });
    expect(await run(world, hint)).toEqual({ ...nothing, looked: 1, failures: [{ about: 'node-1', error }] });
  });

  test('about a machine whose provider is not configured any more changes nothing', async () => {
    const world = await joined();
    end(world);
    expect(await run(world, hint, { providers: new Map() })).toEqual(nothing);
  });

  test('has a limited number of node names', async () => {
    const world = await joined();
    const nodeNames = Array.from({ length: mostHints + 1 }, (_, i) => `n${i}`);
    await expect(run(world, { nodeNames })).rejects.toThrow(TypeError);
    expect(await run(world, { nodeNames: nodeNames.slice(1) })).toEqual(nothing);
  });
});

describe('before the grace is over', () => {
  test('another machine gets the name if the platform still reports the retired one as terminated, or has forgotten it', async () => {
    for (const forgotten of [false, true]) {
      const world = await joined();
      await retired(world);
      if (forgotten) world.platform.machines.delete('m1');
      expect(await join(world, 'm2')).toBe('approve');
      expect((await world.store.findNode('node-1'))?.identity).toBe('null#m2');
      expect(await world.store.findIdentity('null#m1')).toMatchObject({ state: 'retired' });
      // When the grace would be over, the name stays with its present machine.
      world.clock.now += 2 * nameGrace;
      world.platform.machines.set('m3', { nodeNames: ['node-1'] });
      expect(await join(world, 'm3')).toBe('TofuNodeTaken');
    }
  });

  test.each(['running', 'stopped'] as const)(
    'no machine gets the name if the platform reports it as %s',
    async (state) => {
      const world = await joined();
      await retired(world);
      world.platform.machines.set('m1', { nodeNames: ['node-1'], ...(state === 'stopped' ? { state } : {}) });
      const before = await world.store.findNode('node-1');
      expect(await join(world, 'm2')).toBe('TofuNodeTaken');
      expect(await world.store.findNode('node-1')).toEqual(before);
    },
  );

  test('an operator resets the machine, which then joins again', async () => {
    const world = await joined();
    await retired(world);
    await forget(world, 'null#m1');
    world.platform.machines.set('m1', { nodeNames: ['node-1'] });
    expect(await join(world, 'm1')).toBe('approve');
    world.clock.now += 2 * nameGrace;
    expect(await join(world, 'm2')).toBe('TofuNodeTaken');
  });
});
