/** core/ports/attestation-store.ts: how the record of a machine ends without a successor, and when its node name is free. */
import { deepStrictEqual, rejects, strictEqual } from 'node:assert/strict';
import type { ChangeResult, Claim, IdentityRecord } from '../../../core/ports/attestation-store.ts';
import { hour, now, spent } from '../attestation-scene.ts';
import type { Scene } from '../attestation-scene.ts';
import type { Case } from '../attestation-store-cases.ts';

const written: ChangeResult = { kind: 'written' };
const changed: ChangeResult = { kind: 'changed' };
const missing: ChangeResult = { kind: 'missing' };

/** When the name of a retired machine is free. */
const free = now + hour;

/** Retires the machine with this record. */
const retire = (scene: Scene, record: IdentityRecord, audit = scene.audit({ action: 'retire' })) =>
  scene.store.retire(record, { nameFreeAt: free, audit });

/** A first use of `a` that has ended; gives the record of the retired machine. */
async function ended(scene: Scene, change: Partial<IdentityRecord> = {}): Promise<IdentityRecord> {
  const record = await scene.done(scene.first({}, change));
  deepStrictEqual(await retire(scene, record), written);
  return retiredOf(record);
}

function retiredOf(record: IdentityRecord): IdentityRecord {
  return { ...record, state: 'retired', retiredAt: now, nameFreeAt: free, addresses: [], rev: record.rev + 1 };
}

/** The first use of `b` under the name of `a`. */
function successor(scene: Scene, change: Partial<Claim> = {}): Claim {
  const verdict = scene.verdict({ identity: scene.b, expiresAt: now + 25 * hour });
  return scene.first({ verdict, ...change }, { identity: scene.b, firstSeen: free, lastSeen: free });
}

/** What a request of `b` for the name finds at that time. */
async function holderAt(scene: Scene, at: number): Promise<IdentityRecord | undefined> {
  const { b: identity, n: nodeName } = scene;
  return (await scene.store.lookup({ now: at, identity, nodeName, once: [], addresses: [], machines: [] })).holder;
}

/** The answer is as told at that time, and nothing at all was written. */
async function refuses(scene: Scene, claim: Claim, at = now): Promise<void> {
  const [before, audited] = [await scene.state(), await scene.audited()];
  deepStrictEqual(await scene.store.claim(claim, at), changed);
  deepStrictEqual(await scene.state(), before);
  deepStrictEqual(await scene.audited(), audited);
}

function adopted(scene: Scene): IdentityRecord {
  const { spkiSha256: _, lastUid: __, ...bare } = scene.record({ identity: scene.b, uses: 0 });
  return bare;
}

export const retirementCases: readonly Case[] = [
  {
    name: 'a retired machine has its record, no address, and its name until the grace is over',
    async run(scene) {
      const { store, a, n, x, y, p } = scene;
      const record = await scene.done(scene.first({ once: [spent(p)] }, { addresses: [x, y], unknownSince: now - 5 }));
      const before = await scene.state();
      const audit = scene.audit({ action: 'retire', nodeName: n, before: record });
      deepStrictEqual(await retire(scene, record, audit), written);
      const retired = retiredOf(record);
      const after = await scene.state();
      deepStrictEqual(after, {
        identities: [retired, undefined],
        nodes: [retired, undefined],
        verdicts: before.verdicts,
        seen: { ...before.seen, holder: retired, addresses: [undefined, undefined] },
      });
      deepStrictEqual(await scene.audited(), [audit]);
      deepStrictEqual(await holderAt(scene, free - 1), retired);
      strictEqual(await holderAt(scene, free), undefined);
      deepStrictEqual(await store.findIdentity(a), retired);
      deepStrictEqual(await (await scene.reopen()).store.findIdentity(a), retired);
    },
  },
  {
    name: 'only the very record that was read ends, once, and only while its machine has the name',
    async run(scene) {
      const { store, a, n, m, b } = scene;
      const refused = async (record: IdentityRecord, answer = changed) => {
        const [before, audited] = [await scene.state(), await scene.audited()];
        deepStrictEqual(await retire(scene, record), answer);
        deepStrictEqual(await scene.state(), before);
        deepStrictEqual(await scene.audited(), audited);
      };
      await refused(scene.record(), missing);
      const first = await scene.done(scene.first());
      await refused({ ...first, rev: 2 });
      await refused({ ...first, firstSeen: now - 1 });
      await refused({ ...first, nodeName: m });
      const second = await scene.done(scene.again(first));
      await refused(first);
      deepStrictEqual(await retire(scene, second), written);
      await refused(second);
      await refused({ ...second, rev: second.rev + 1 });
      const gone = await scene.register.reset(retiredOf(second), scene.audit());
      deepStrictEqual(gone, written);
      await refused(second, missing);
      // Reset, and there again: another record.
      const third = await scene.done(scene.first({}, { firstSeen: now + 1, lastSeen: now + 1 }));
      await refused(first);
      strictEqual((await store.findNode(n))?.identity, a);
      if (scene.giveName === undefined) return;
      // The table gives the name to another machine: that one does not lose it.
      await scene.done(scene.first({}, { identity: b, nodeName: m }));
      await scene.giveName(n, b);
      await refused(third);
    },
  },
  {
    name: 'a retirement that does not fit together throws and writes nothing',
    async run(scene) {
      const record = await scene.done(scene.first());
      const before = await scene.state();
      const audit = scene.audit({ action: 'retire' });
      await rejects(() => scene.store.retire({ ...record, state: 'retired' }, { nameFreeAt: free, audit }), TypeError);
      for (const nameFreeAt of [now - 1, Number.NaN])
        await rejects(() => scene.store.retire(record, { nameFreeAt, audit }), TypeError);
      deepStrictEqual(await scene.state(), before);
      deepStrictEqual(await scene.audited(), []);
    },
  },
  {
    name: 'a retired machine makes no use of its record and is not observed, before its name is free and after',
    async run(scene) {
      const record = await ended(scene);
      for (const at of [now, free]) {
        await refuses(scene, scene.again(record, {}, { state: 'active' }), at);
        await refuses(scene, scene.again({ ...record, rev: record.rev - 1 }, {}, { state: 'active' }), at);
        await refuses(scene, scene.first({}, { nodeName: scene.m }), at);
      }
      strictEqual(await scene.store.observe({ ...record, state: 'active', rev: record.rev + 1 }), false);
      deepStrictEqual(await scene.store.findIdentity(scene.a), record);
    },
  },
  {
    name: 'the name of a retired machine is free when the grace is over, and not before',
    async run(scene) {
      const { store, a, b, n } = scene;
      const retired = await ended(scene);
      await refuses(scene, successor(scene), free - 1);
      const claim = successor(scene);
      deepStrictEqual(await store.claim(claim, free), written);
      const next = await store.findIdentity(b);
      deepStrictEqual(await store.findNode(n), next);
      deepStrictEqual(await store.findIdentity(a), retired);
      // It is the name of the next machine for good.
      const { holder } = await store.lookup({
        now: free + 1_000 * hour,
        identity: a,
        nodeName: n,
        once: [],
        addresses: [],
        machines: [],
      });
      deepStrictEqual(holder, next);
      await refuses(scene, scene.first({}, { identity: `${a}-c` }), free + 1_000 * hour);
    },
  },
  {
    name: 'before the grace is over the name passes on from the retired machine that was read',
    async run(scene) {
      const { store, a, b, n, x } = scene;
      const retired = await ended(scene, { addresses: [x] });
      await refuses(scene, successor(scene, { retire: { ...retired, state: 'active' } }));
      await refuses(scene, successor(scene, { retire: { ...retired, identity: `${a}-c` } }));
      deepStrictEqual(await store.claim(successor(scene, { retire: retired }), now), written);
      deepStrictEqual(await store.findIdentity(a), retired);
      strictEqual((await store.findNode(n))?.identity, b);
      strictEqual((await holderAt(scene, free))?.identity, undefined);
      // It has no name any more that could pass on again.
      await refuses(scene, scene.first({ retire: retired }, { identity: `${a}-c` }), free);
    },
  },
  {
    name: 'a name does not pass on from a retired machine that is back since it was read',
    async run(scene) {
      const { store, register } = scene;
      const retired = await ended(scene);
      deepStrictEqual(await register.reset(retired, scene.audit()), written);
      // The record was removed between the read and the claim: the claim is decided again.
      await refuses(scene, successor(scene, { retire: retired }));
      const back = await scene.done(scene.first({}, { firstSeen: now + 1, lastSeen: now + 1 }));
      for (const at of [now, free]) await refuses(scene, successor(scene, { retire: retired }), at);
      deepStrictEqual(await store.findNode(scene.n), back);
      deepStrictEqual(await holderAt(scene, free), back);
    },
  },
  {
    name: 'a claim that was decided before a retirement or a reset is decided again',
    async run(scene) {
      const { register } = scene;
      const record = await scene.done(scene.first());
      const claims = () => [scene.again(record, { once: [spent(scene.p)] }), successor(scene, { retire: record })];
      deepStrictEqual(await retire(scene, record), written);
      for (const claim of claims()) await refuses(scene, claim);
      deepStrictEqual(await register.reset(retiredOf(record), scene.audit()), written);
      for (const claim of claims()) await refuses(scene, claim);
    },
  },
  {
    name: 'an adoption gets the name when the grace is over, and not before',
    async run(scene) {
      const { store, register, n } = scene;
      await ended(scene);
      const adopt = (at: number) => register.adopt(adopted(scene), scene.audit({ action: 'adopt', at }));
      const before = await scene.state();
      deepStrictEqual(await adopt(free - 1), changed);
      deepStrictEqual(await scene.state(), before);
      deepStrictEqual(await adopt(free), written);
      deepStrictEqual(await store.findNode(n), adopted(scene));
      deepStrictEqual((await scene.audited()).map(({ action }) => action).toSorted(), ['adopt', 'retire']);
    },
  },
  {
    name: 'a reset of a retired machine frees its name at once, and leaves the name of its successor',
    async run(scene) {
      const { store, register, n } = scene;
      const retired = await ended(scene);
      deepStrictEqual(await register.reset(retired, scene.audit()), written);
      strictEqual(await store.findNode(n), undefined);
      const again = await ended(scene);
      deepStrictEqual(await store.claim(successor(scene), free), written);
      deepStrictEqual(await register.reset(again, scene.audit()), written);
      strictEqual((await store.findNode(n))?.identity, scene.b);
      strictEqual(await store.findIdentity(scene.a), undefined);
    },
  },
  {
    name: '10 retirements of one record at once: one is written, with one audit item',
    async run(scene) {
      const other = (await scene.reopen()).store;
      const record = await scene.done(scene.first({}, { addresses: [scene.x] }));
      const audits = Array.from({ length: 10 }, () => scene.audit({ action: 'retire' }));
      const answers = await Promise.all(
        audits.map((audit, i) => (i % 2 === 0 ? scene.store : other).retire(record, { nameFreeAt: free, audit })),
      );
      const winners = audits.filter((_, i) => answers[i]?.kind === 'written');
      strictEqual(winners.length, 1);
      deepStrictEqual(await scene.audited(), winners);
      deepStrictEqual(await scene.store.findIdentity(scene.a), retiredOf(record));
    },
  },
  {
    name: 'a retirement, a use, a takeover, an observation and a reset of one record at once: one of them, never two',
    async run(scene) {
      const { store, register, a, b, n } = scene;
      const other = await scene.reopen();
      for (let round = 0; round < 5; round += 1) {
        const record = await scene.done(scene.first({}, { addresses: [scene.x], firstSeen: now + round }));
        const writes = [
          async () => (await retire(scene, record)).kind === 'written',
          async () => (await other.store.claim(scene.again(record), now)).kind === 'written',
          async () => (await other.store.claim(successor(scene, { retire: record }), now)).kind === 'written',
          async () => store.observe({ ...record, unknownSince: now, rev: 2 }),
          async () => (await register.reset(record, scene.audit())).kind === 'written',
        ] as const;
        // Each of them is the first to be sent once.
        const order = [...writes.slice(round), ...writes.slice(0, round)];
        const wins = (await Promise.all(order.map((write) => write()))).map((won, i) => won && order[i]);
        strictEqual(wins.filter((won) => won !== false).length, 1);
        const states = [(await store.findIdentity(a))?.state, (await store.findNode(n))?.identity];
        const winner = writes.findIndex((write) => wins.includes(write));
        const expected = [
          ['retired', a],
          ['active', a],
          ['retired', b],
          ['active', a],
          [undefined, undefined],
        ];
        deepStrictEqual(states, expected[winner]);
        for (const identity of [a, b]) {
          const left = await store.findIdentity(identity);
          if (left !== undefined) deepStrictEqual(await register.reset(left, scene.audit()), written);
        }
      }
    },
  },
  {
    name: 'two machines claim a free name at once: one of them has it',
    async run(scene) {
      const other = (await scene.reopen()).store;
      const retired = await ended(scene);
      const claims = [
        successor(scene),
        scene.first({}, { identity: `${scene.b}-2` }),
        // Decided before the grace was over.
        scene.first({ retire: retired }, { identity: `${scene.b}-3` }),
      ];
      const answers = await Promise.all(
        claims.map((claim, i) => (i % 2 === 0 ? scene.store : other).claim(claim, free)),
      );
      strictEqual(answers.filter(({ kind }) => kind === 'written').length, 1);
      const names = await Promise.all(
        claims.map(async ({ identity }) =>
          identity.kind === 'none' ? undefined : (await scene.store.findIdentity(identity.record.identity))?.identity,
        ),
      );
      deepStrictEqual(
        names.filter((name) => name !== undefined),
        [(await scene.store.findNode(scene.n))?.identity],
      );
    },
  },
];
