/** Attest fails at every call it makes, before and after it took effect; the requester tries again. */
import { expect, test } from 'vitest';
import type { AttestOutcome } from '../../../../../core/attest.ts';
import { visitEveryFault } from '../../../../contract/faulty.ts';
import type { Faults } from '../../../../contract/faulty.ts';
import { byTier } from '../../../../harness/determinism/tier.ts';
import { newKey } from '../../../../harness/x509/requests.ts';
import { approvedOf, createWorld, requestOf, said, servingSigner, signed } from '../world.ts';
import type { World } from '../world.ts';
import { ranges } from '../../../../harness/attestation/address-ranges.ts';

/** Faults at once: in the default tier each alone, in the deep tier also each pair. */
const depth = byTier({ default: 1, deep: 2 });
const keys = [newKey('P-256'), newKey('P-256'), newKey('P-256')] as const;

/** As the relay does: until there is an answer. */
async function until(world: World, object: object): Promise<AttestOutcome> {
  for (let tries = 0; tries < 4; tries += 1) {
    try {
      return await world.attest(object);
    } catch {
      // Temporary: nothing was concluded, or it was and the answer was lost.
    }
  }
  throw new Error('never answered');
}

async function withFaults(
  faults: Faults,
  options?: Parameters<typeof createWorld>[0],
): Promise<{ world: World; real: World }> {
  const real = await createWorld(options);
  real.platform.machines.set('m1', { nodeNames: ['node-1'], addresses: ['10.0.0.1'] });
  real.platform.machines.set('m2', { nodeNames: ['node-1'], addresses: ['10.0.0.2'] });
  return { world: real.change({ store: faults.wrap('store', real.store) }), real };
}

test('a first use, its renewal and its serving certificate are each claimed once', async () => {
  const settings = { addressRanges: ranges('192.168.0.0/24') };
  const visited = await visitEveryFault(
    async (faults) => {
      const { world, real } = await withFaults(faults, { settings });
      const first = requestOf({ evidence: { machine: 'm1', proof: 'p1' }, key: keys[0] });
      const renewal = requestOf({ evidence: { machine: 'm1', proof: 'p2' }, key: keys[1], by: 'node' });
      const serving = requestOf({ signerName: servingSigner, by: 'node', key: keys[2], sans: { ip: ['192.168.0.7'] } });
      for (const object of [first, renewal, serving]) {
        // A dead worker's place is taken by one without faults.
        const outcome = await until(world, object).catch(() => real.attest(object));
        expect(said(outcome)).toBe('approve');
      }
      expect(await real.store.findNode('node-1')).toMatchObject({
        identity: 'null#m1',
        renewals: 1,
        uses: 3,
        rev: 3,
        addresses: ['192.168.0.7'],
      });
      for (const object of [first, renewal, serving])
        expect(signed(await real.issue(approvedOf(object)))).toBe('issued');
      real.close();
    },
    { depth },
  );
  expect(visited.length).toBeGreaterThan(byTier({ default: 40, deep: 60 }));
  expect(new Set(visited.flat().map(({ method }) => method))).toEqual(
    new Set(['findLock', 'recall', 'lookup', 'claim']),
  );
});

test('two machines for one name: whatever fails, never both, and each is told for good', async () => {
  const visited = await visitEveryFault(
    async (faults) => {
      const { world, real } = await withFaults(faults);
      const objects = [
        requestOf({ evidence: { machine: 'm1' }, key: keys[0] }),
        requestOf({ evidence: { machine: 'm2' }, key: keys[1] }),
      ];
      const answers = await Promise.all(objects.map((object) => until(world, object).catch(() => real.attest(object))));
      expect(answers.map(said).sort()).toEqual(['TofuNodeTaken', 'approve']);
      const again = await Promise.all(objects.map((object) => real.attest(object)));
      expect(again.map(said)).toEqual(answers.map(said));
      const results = await Promise.all(objects.map((object) => real.issue(approvedOf(object))));
      expect(results.map(signed).sort()).toEqual(['TofuNodeTaken', 'issued']);
      real.close();
    },
    { depth },
  );
  expect(visited.length).toBeGreaterThan(byTier({ default: 25, deep: 60 }));
});

test('a request whose claim always comes second waits, and is no throttle for the requests of others', async () => {
  const world = await createWorld();
  world.platform.machines.set('m1', { nodeNames: ['node-1'], addresses: ['10.0.0.1'] });
  const contended = world.change({
    store: { ...world.store, claim: () => Promise.resolve({ kind: 'changed' }) },
  });
  const failure = await contended.attest(requestOf({ evidence: { machine: 'm1' } })).catch((error: unknown) => error);
  expect(failure).toMatchObject({ name: 'LaterError', why: 'Limited', afterMilliseconds: 1_000 });
  world.close();
});
