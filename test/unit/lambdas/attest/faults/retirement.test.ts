/**
 * Retirement and requests at once: a record that ends between the look and the claim of a request, runs that fail at every call, and
 * runs that meet renewals, takeovers, resets and adoptions at every point.
 */
import { randomBytes } from 'node:crypto';
import { afterEach, describe, expect, test } from 'vitest';
import { nameGrace, retireGone } from '../../../../../core/attestation/retirement/retire-gone.ts';
import type { RetirementReport } from '../../../../../core/attestation/retirement/retire-gone.ts';
import type { AttestationStore, IdentityRecord } from '../../../../../core/ports/attestation-store.ts';
import { all } from '../../../../contract/attestation-scene.ts';
import { visitEveryFault } from '../../../../contract/faulty.ts';
import { byTier } from '../../../../harness/determinism/tier.ts';
import { newKey } from '../../../../harness/x509/requests.ts';
import { adopt, approvedOf, createWorld, forget, requestOf, said, servingSigner, signed } from '../world.ts';
import type { World } from '../world.ts';

const minute = 60_000;
const key = newKey('P-256');
const open: World[] = [];
afterEach(() => open.splice(0).forEach((world) => world.close()));

/** m1 is node-1; m2 and m3 may be. */
async function joined(): Promise<World> {
  const world = await createWorld();
  open.push(world);
  for (const machine of ['m1', 'm2', 'm3']) run(world, machine);
  expect(said(await world.attest(joins('m1')))).toBe('approve');
  return world;
}

function run({ platform }: World, machine: string, state?: 'gone'): void {
  const facts = { nodeNames: ['node-1'], addresses: [`10.0.0.${machine.slice(1)}`] };
  platform.machines.set(machine, state === undefined ? facts : { ...facts, state });
}

const joins = (machine: string) => requestOf({ evidence: { machine }, key });
const renews = () => requestOf({ evidence: { machine: 'm1' }, key: newKey('P-256'), by: 'node' });
const serves = () => requestOf({ signerName: servingSigner, by: 'node', sans: { ip: ['10.0.0.1'] } });

/** One scheduled run. */
function look({ platform, clock, store }: World, through: AttestationStore = store): Promise<RetirementReport> {
  const providers = new Map([[platform.provider.name, platform.provider]]);
  return retireGone({ store: through, providers, now: () => clock.now, randomBytes }, 'scheduled');
}

/** m1 is terminated, and looked at once, long enough ago for the second look. */
async function lookedAtOnce(world: World): Promise<void> {
  run(world, 'm1', 'gone');
  expect(await look(world)).toMatchObject({ marked: 1 });
  world.clock.now += 10 * minute;
}

async function retired(world: World): Promise<void> {
  await lookedAtOnce(world);
  expect((await look(world)).retired).toHaveLength(1);
}

const retirements = async ({ register }: World) =>
  (await all(register.listAudit())).filter(({ action }) => action === 'retire').map(({ subject }) => subject);

const activeOf = async ({ register }: World): Promise<readonly string[]> =>
  (await all(register.listIdentities())).filter(({ state }) => state === 'active').map(({ identity }) => identity);

describe('a record that ends between the look and the claim: attest decides again', () => {
  type Row = readonly [
    name: string,
    prepare: (world: World) => Promise<unknown>,
    request: () => object,
    meanwhile: (world: World) => Promise<unknown>,
    answer: string,
    holder: string | undefined,
    retirements: readonly string[],
  ];
  const rows: readonly Row[] = [
    ['a renewal, and its machine is retired', lookedAtOnce, renews, look, 'Revoked', 'null#m1', ['null#m1']],
    [
      'a serving certificate, and its machine is retired',
      lookedAtOnce,
      serves,
      look,
      'Revoked',
      'null#m1',
      ['null#m1'],
    ],
    ['a renewal, and its machine is reset', async () => {}, renews, reset, 'approve', 'null#m1', []],
    [
      'a serving certificate, and its machine is reset',
      async () => {},
      serves,
      reset,
      'AttestationMissing',
      undefined,
      [],
    ],
    [
      'a takeover, and the machine before is retired',
      lookedAtOnce,
      () => joins('m2'),
      look,
      'approve',
      'null#m2',
      ['null#m1'],
    ],
    ['a takeover, and the machine before is reset', lookedAtOnce, () => joins('m2'), reset, 'approve', 'null#m2', []],
    [
      'a takeover of a retired machine’s name, and it is reset',
      retired,
      () => joins('m2'),
      reset,
      'approve',
      'null#m2',
      ['null#m1'],
    ],
    [
      'a takeover of a retired machine’s name, and it joins again',
      retired,
      () => joins('m2'),
      back,
      'TofuNodeTaken',
      'null#m1',
      ['null#m1'],
    ],
    [
      'a takeover of a retired machine’s name, and another gets it',
      retired,
      () => joins('m2'),
      third,
      'TofuNodeTaken',
      'null#m3',
      ['null#m1'],
    ],
    [
      'a first use of a free name, and another gets it',
      free,
      () => joins('m2'),
      third,
      'TofuNodeTaken',
      'null#m3',
      ['null#m1'],
    ],
    [
      'a first use of a free name, and it is adopted',
      free,
      () => joins('m2'),
      adopted,
      'TofuNodeTaken',
      'null#m3',
      ['null#m1'],
    ],
  ];

  test.each(rows)('%s', async (_, prepare, request, meanwhile, answer, holder, ended) => {
    const world = await joined();
    await prepare(world);
    // A platform whose answer is outdated: the request is decided before the run has its answer.
    const isGone = world.platform.machines.get('m1')?.state === 'gone';
    const isOwn = request === renews || request === serves;
    if (isOwn) run(world, 'm1');
    let claims = 0;
    const contended = world.change({
      store: {
        ...world.store,
        async claim(claim, now) {
          claims += 1;
          if (claims === 1) {
            if (isOwn && isGone) run(world, 'm1', 'gone');
            await meanwhile(world);
            if (isOwn) run(world, 'm1');
          }
          return world.store.claim(claim, now);
        },
      },
    });
    const object = request();
    expect(said(await contended.attest(object))).toBe(answer);
    expect(claims).toBe(2);
    expect((await world.store.findNode('node-1'))?.identity).toBe(holder);
    expect(await retirements(world)).toEqual(ended);
    expect(signed(await world.issue(approvedOf(object)))).toBe(answer === 'approve' ? 'issued' : answer);
    expect((await activeOf(world)).length).toBeLessThanOrEqual(1);
  });

  async function reset(world: World): Promise<void> {
    await forget(world, 'null#m1');
  }
  /** Reset, and joined once more. */
  async function back(world: World): Promise<void> {
    await reset(world);
    run(world, 'm1');
    expect(said(await world.attest(joins('m1')))).toBe('approve');
  }
  async function third(world: World): Promise<void> {
    expect(said(await world.attest(joins('m3')))).toBe('approve');
  }
  async function free(world: World): Promise<void> {
    await retired(world);
    world.clock.now += nameGrace;
  }
  async function adopted(world: World): Promise<void> {
    await adopt(world, { identity: 'null#m3', nodeName: 'node-1' });
  }
});

test('whatever call of a run fails, before or after it took effect: the machine is retired once, and the name passes on', async () => {
  const visited = await visitEveryFault(
    async (faults) => {
      const world = await joined();
      run(world, 'm1', 'gone');
      const store = faults.wrap('store', world.store);
      // Each run may fail; the schedule starts the next one. A dead function is replaced by one without faults.
      for (let tries = 0; tries < 5; tries += 1) {
        await look(world, faults.crashed ? world.store : store);
        world.clock.now += 10 * minute;
      }
      expect(await retirements(world)).toEqual(['null#m1']);
      const record = await world.store.findNode('node-1');
      expect(record).toMatchObject({ state: 'retired' });
      expect(said(await world.attest(renews()))).toBe('Revoked');
      world.clock.now = record?.nameFreeAt ?? 0;
      expect(said(await world.attest(joins('m2')))).toBe('approve');
      expect(await activeOf(world)).toEqual(['null#m2']);
    },
    { depth: byTier({ default: 1, deep: 2 }) },
  );
  const methods = new Set(visited.flat().map(({ method }) => method));
  expect(methods).toEqual(new Set(['findIdentity', 'observe', 'retire']));
});

describe('a run that meets another write at every point: no name with two machines, none lost to a live one', () => {
  const others: readonly (readonly [name: string, write: (world: World) => Promise<unknown>])[] = [
    ['another run', (world) => look(world)],
    ['a renewal', (world) => world.attest(renews())],
    ['a serving certificate', (world) => world.attest(serves())],
    ['a takeover', (world) => world.attest(joins('m2'))],
    ['two takeovers', (world) => Promise.all([world.attest(joins('m2')), world.attest(joins('m3'))])],
    ['a reset', resetOnce],
    ['an adoption', (world) => adopt(world, { identity: 'null#m3', nodeName: 'node-1' }).catch(() => undefined)],
  ];

  test.each(others)('%s', async (_, write) => {
    const outcomes = new Set<string>();
    // By so many turns of the event loop one of the two is ahead.
    for (let ahead = -8; ahead <= 8; ahead += 1) {
      const world = await joined();
      await lookedAtOnce(world);
      const [report] = await Promise.all([
        after(-ahead).then(() => look(world)),
        after(ahead).then(() => write(world)),
      ]);
      expect(report.failures).toEqual([]);
      const records = await all(world.register.listIdentities());
      const active = records.filter(({ state }) => state === 'active');
      const holder = await world.store.findNode('node-1');
      expect(active.length).toBeLessThanOrEqual(1);
      expect(holder?.identity).toBe(active[0]?.identity ?? records[0]?.identity);
      // At most one retirement of a machine, and as many audit items as retired machines.
      expect(new Set(await retirements(world)).size).toBe((await retirements(world)).length);
      // A machine that is not on record as active gets no certificate.
      const ended = records.find(({ identity }) => identity === 'null#m1');
      if (ended?.state === 'retired') expect(said(await world.attest(renews()))).toBe('Revoked');
      outcomes.add(`${stateOf(records, 'null#m1')} ${holder?.identity ?? 'free'}`);
    }
    // The retirement came first once, or the other write.
    expect(outcomes.has('retired null#m1') || outcomes.has('retired null#m2')).toBe(true);
  });

  async function after(turns: number): Promise<void> {
    for (let turn = 0; turn < turns; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  }

  /** As `countersign tofu reset`: of the record that it read. */
  async function resetOnce(world: World): Promise<void> {
    await forget(world, 'null#m1').catch(() => undefined);
  }

  function stateOf(records: readonly IdentityRecord[], of: string): string {
    return records.find(({ identity }) => identity === of)?.state ?? 'none';
  }
});
