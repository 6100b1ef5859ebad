/**
 * core/ports/attestation-store.ts, sentence by sentence, what attest and sign rely on. Free of a test framework: the same
 * cases are put to stores with planted mistakes in processes of their own.
 */
import { deepStrictEqual, ok, rejects, strictEqual } from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mostAddresses } from '../../core/attestation/records/stored-records.ts';
import type { Claim, ClaimResult, IdentityRecord, Verdict } from '../../core/ports/attestation-store.ts';
import { retirementCases } from './retirement/cases.ts';
import { all, hour, now, spent } from './attestation-scene.ts';
import type { Scene } from './attestation-scene.ts';

export interface Case {
  readonly name: string;
  readonly run: (scene: Scene) => Promise<void>;
}

const written: ClaimResult = { kind: 'written' };
const changed: ClaimResult = { kind: 'changed' };

/** The answer is as told, and nothing at all was written. */
async function refuses(scene: Scene, claim: Claim, answer: ClaimResult = changed): Promise<void> {
  const [before, audited] = [await scene.state(), await scene.audited()];
  deepStrictEqual(await scene.store.claim(claim, now), answer);
  deepStrictEqual(await scene.state(), before);
  deepStrictEqual(await scene.audited(), audited);
}

/** With everything a claim can have, so that whatever is written by mistake shows. */
function whole(scene: Scene, claim: Claim): Claim {
  const record = claim.identity.kind === 'none' ? undefined : claim.identity.record;
  if (record === undefined) return claim;
  return {
    ...claim,
    once: [...claim.once, spent(scene.q)],
    newAddresses: [...claim.newAddresses, scene.y],
    identity: {
      ...claim.identity,
      record: { ...record, addresses: [...record.addresses, scene.y] },
    } as Claim['identity'],
    audit: [...claim.audit, scene.audit({ action: 'retire' })],
  };
}

async function gone(scene: Scene, record: IdentityRecord): Promise<void> {
  deepStrictEqual(await scene.register.reset(record, scene.audit({ action: 'reset' })), written);
}

/** `b` has taken the name `n` over from `a`, whose record was this. */
async function takenOver(scene: Scene, retire: IdentityRecord, change: Partial<IdentityRecord> = {}) {
  return scene.done(
    scene.first({ retire, verdict: scene.verdict({ identity: scene.b }) }, { identity: scene.b, ...change }),
  );
}

const verdicts: readonly Case[] = [
  {
    name: 'a verdict comes back exactly as it was written, for its UID alone',
    async run(scene) {
      const { store, a } = scene;
      const kinds: readonly Partial<Verdict>[] = [
        { annotations: { 'countersign.dev/identity': a, 'a"b\\c': 'ü\n', constructor: 'x' } },
        { identity: a, registeredAt: 7, firstKey: true, nodeName: scene.n },
        { identity: a, firstKey: false, mode: 'audit' },
        {
          decision: 'deny',
          violations: [
            { code: 'TofuReuse', message: 'second' },
            { code: 'AttestationInvalid', message: 'a # and a % and ü' },
          ],
        },
        { decision: 'challenge', violations: [{ code: 'AttestationChallenge', message: '' }], decidedAt: 0 },
        { uid: `A.b:c#%23-${randomUUID()}` },
      ];
      for (const kind of kinds) {
        const verdict = scene.verdict(kind);
        strictEqual(await store.findVerdict(verdict.uid, now), undefined);
        deepStrictEqual(await store.claim(none(verdict), now), written);
        deepStrictEqual(await store.findVerdict(verdict.uid, now), verdict);
        strictEqual(await store.findVerdict(verdict.uid.toUpperCase() + '0', now), undefined);
      }
    },
  },
  {
    name: 'a verdict is over when its instant is reached',
    async run(scene) {
      const { store } = scene;
      const given = scene.verdict({ expiresAt: now + 1 });
      await store.claim(none(given), now);
      deepStrictEqual(await store.findVerdict(given.uid, now), given);
      strictEqual(await store.findVerdict(given.uid, now + 1), undefined);
      strictEqual(await store.findVerdict(given.uid, now + hour), undefined);
    },
  },
  {
    name: 'the first verdict of a UID stands, and a claim that comes later writes nothing',
    async run(scene) {
      const found = scene.verdict({ decision: 'deny', violations: [{ code: 'TofuReuse', message: 'no' }] });
      await scene.store.claim(none(found), now);
      const later = scene.first({ verdict: { ...scene.verdict(), uid: found.uid } });
      await refuses(scene, whole(scene, later), { kind: 'verdict', found });
      await refuses(scene, none({ ...found, requestDigest: 'bb' }), { kind: 'verdict', found });
    },
  },
  {
    name: 'an expired verdict counts as none, from its instant on',
    async run(scene) {
      const { store } = scene;
      const first = scene.verdict({ expiresAt: now + 10 });
      await store.claim(none(first), now);
      const next = { ...first, requestDigest: 'cc'.repeat(32), expiresAt: now + hour };
      deepStrictEqual(await store.claim(none(next), now + 9), { kind: 'verdict', found: first });
      deepStrictEqual(await store.claim(none(next), now + 10), written);
      deepStrictEqual(await store.findVerdict(first.uid, now + 10), next);
    },
  },
  {
    name: 'a claim that is made again, its answer lost, is told its own verdict, and counts once',
    async run(scene) {
      const claim = whole(scene, scene.first());
      await scene.done(claim);
      // The verdict goes first: by now everything else has "changed" too.
      await refuses(scene, claim, { kind: 'verdict', found: claim.verdict });
      const next = scene.again(await recordOf(scene, scene.a), { once: [spent(scene.p)] });
      await scene.done(next);
      await refuses(scene, next, { kind: 'verdict', found: next.verdict });
      strictEqual((await recordOf(scene, scene.a)).uses, 2);
    },
  },
];

const firstUses: readonly Case[] = [
  {
    name: 'a first use writes record, name, proofs, addresses, verdict and audit items',
    async run(scene) {
      const { store, a, n, p, q, x, y } = scene;
      const audit = [scene.audit({ action: 'retire', before: scene.record({ identity: scene.b }), nodeName: n })];
      const record = {
        addresses: [x, y],
        previousSpkis: ['22', '33', '44', '55'],
        startedAt: 5,
        described: { at: 6, addresses: ['10.0.0.7', 'fd00::7'], dnsNames: [] },
        renewals: 3,
        lastUid: 'u#%',
      };
      const claim = scene.first({ once: [spent(p), spent(q, 'bb')], audit }, record);
      const stored = await scene.done(claim);
      deepStrictEqual(await store.findIdentity(a), stored);
      deepStrictEqual(await store.findNode(n), stored);
      deepStrictEqual(
        await store.lookup({ now, identity: a, nodeName: n, once: [q, p], addresses: [y, x], machines: [] }),
        {
          identity: stored,
          once: ['bb', 'aa'.repeat(32)],
          addresses: [a, a],
          listed: false,
        },
      );
      deepStrictEqual(await store.findVerdict(claim.verdict.uid, now), claim.verdict);
      deepStrictEqual(await scene.audited(), audit);
    },
  },
  {
    name: 'what a record does not have stays absent',
    async run(scene) {
      const { startedAt: _, spkiSha256: __, lastUid: ___, ...bare } = { startedAt: 0, ...scene.record() };
      await scene.done(scene.first({ identity: { kind: 'create', record: bare } }));
      deepStrictEqual(await scene.store.findIdentity(scene.a), bare);
    },
  },
  {
    name: 'what a TPM reported stays with the record, and the next use replaces it',
    async run(scene) {
      const { store, a, n } = scene;
      const device = { akName: `000b${'ab'.repeat(32)}`, resetCount: 4_294_967_295, clock: 2 ** 53 - 1 };
      const first = await scene.done(scene.first({}, { device }));
      deepStrictEqual(await store.findIdentity(a), { ...scene.record(), device });
      const later = { akName: `000b${'cd'.repeat(32)}`, resetCount: 0, clock: 0 };
      await scene.done(scene.again(first, {}, { device: later }));
      deepStrictEqual((await store.findNode(n))?.device, later);
    },
  },
  {
    name: 'a machine that has a record makes no first use, whatever its state, under any name',
    async run(scene) {
      const record = await scene.done(scene.first());
      await refuses(scene, whole(scene, scene.first({}, { nodeName: scene.m })));
      await refuses(scene, whole(scene, scene.first()));
      await takenOver(scene, record);
      await refuses(scene, whole(scene, scene.first({}, { nodeName: scene.m })));
    },
  },
  {
    name: 'a node name is one machine’s',
    async run(scene) {
      await scene.done(scene.first());
      await refuses(scene, whole(scene, scene.first({}, { identity: scene.b })));
    },
  },
  {
    name: 'a name passes on: the old record ends, its addresses pass on or become free',
    async run(scene) {
      const { store, a, b, n, x, y } = scene;
      const old = await scene.done(scene.first({}, { addresses: [x, y] }));
      const audit = [scene.audit({ action: 'retire', before: old })];
      const next = scene.record({ identity: b, addresses: [x] });
      const claim = scene.first({ retire: old, identity: { kind: 'create', record: next }, newAddresses: [x], audit });
      await scene.done(claim);
      deepStrictEqual(await store.findIdentity(a), { ...old, state: 'retired', retiredAt: now, addresses: [], rev: 2 });
      deepStrictEqual(await store.findNode(n), next);
      const look = { now, identity: a, nodeName: n, once: [], addresses: [x, y], machines: [] };
      const { addresses, holder, identity } = await store.lookup(look);
      deepStrictEqual([addresses, holder, identity?.state], [[b, undefined], next, 'retired']);
      deepStrictEqual(await scene.audited(), audit);
    },
  },
  {
    name: 'a name passes on only from the very record that was read',
    async run(scene) {
      const old = await scene.done(scene.first());
      const takes = (retire: IdentityRecord) => whole(scene, scene.first({ retire }, { identity: scene.b }));
      await refuses(scene, takes({ ...old, rev: 2 }));
      for (const firstSeen of [now - 1, now + 1]) await refuses(scene, takes({ ...old, firstSeen }));
      const seen = await scene.done(scene.again(old));
      await refuses(scene, takes(old));
      // Reset, and there again: its rev is 1 as before, and still it is another record.
      await gone(scene, seen);
      await refuses(scene, takes(old));
      await scene.done(scene.first({}, { firstSeen: now + 1, lastSeen: now + 1 }));
      await refuses(scene, takes(old));
    },
  },
  {
    name: 'no name passes on from a retired machine, or from one that has lost it',
    async run(scene) {
      await takenOver(scene, await scene.done(scene.first()));
      const lost = await recordOf(scene, scene.a);
      const takesLost = () => whole(scene, scene.first({ retire: lost }, { identity: `${scene.a}-c` }));
      await refuses(scene, takesLost());
      if (scene.giveName === undefined) return;
      // The name given back to it in the table itself: it is retired still.
      await scene.giveName(scene.n, scene.a);
      await refuses(scene, takesLost());
      // It still has its record, but the table gives the name to another machine.
      const other = await scene.done(scene.first({}, { identity: `${scene.a}-d`, nodeName: scene.m }));
      await scene.giveName(scene.m, scene.b);
      const takes = scene.first({ retire: other }, { identity: `${scene.a}-e`, nodeName: scene.m });
      deepStrictEqual(await scene.store.claim(takes, now), changed);
    },
  },
];

const laterUses: readonly Case[] = [
  {
    name: 'a record is replaced by the next one, whole',
    async run(scene) {
      const { store, a, n, x, y } = scene;
      const before = await scene.done(scene.first({}, { addresses: [x], startedAt: 7 }));
      const next = scene.again(
        before,
        { newAddresses: [y], once: [spent(scene.p)] },
        {
          spkiSha256: '99',
          previousSpkis: ['11'],
          renewals: 1,
          startedAt: 8,
          providerId: 'aws:///z/i-1',
          lastUid: 'u2',
        },
      );
      const after = await scene.done(next);
      deepStrictEqual(await store.findIdentity(a), after);
      deepStrictEqual(await store.findNode(n), after);
      const look = { now, identity: a, nodeName: n, once: [scene.p], addresses: [x, y], machines: [] };
      deepStrictEqual(await store.lookup(look), {
        identity: after,
        once: ['aa'.repeat(32)],
        addresses: [a, a],
        listed: false,
      });
    },
  },
  {
    name: 'a record is replaced only by the one right after it',
    async run(scene) {
      await refuses(scene, whole(scene, scene.again(scene.record())));
      const first = await scene.done(scene.first());
      await refuses(scene, whole(scene, scene.again(first, {}, { rev: 3 })));
      const second = await scene.done(scene.again(first));
      await refuses(scene, whole(scene, scene.again(first)));
      await scene.done(scene.again(second));
      await refuses(scene, whole(scene, scene.again(second)));
    },
  },
  {
    name: 'after a reset, a use of the record before it changes nothing in the one after it',
    async run(scene) {
      const first = await scene.done(scene.first());
      await gone(scene, first);
      await refuses(scene, whole(scene, scene.again(first)));
      await scene.done(scene.first({}, { firstSeen: now + 5 }));
      await refuses(scene, whole(scene, scene.again(first)));
    },
  },
  {
    name: 'a retired machine makes no use of its record',
    async run(scene) {
      const first = await scene.done(scene.first());
      await takenOver(scene, first);
      const ended = await recordOf(scene, scene.a);
      const uses = () => whole(scene, scene.again(ended, {}, { state: 'active' }));
      await refuses(scene, uses());
      await refuses(scene, whole(scene, scene.again(first)));
      if (scene.giveName === undefined) return;
      // The name given back to it in the table itself: it is retired still.
      await scene.giveName(scene.n, scene.a);
      await refuses(scene, uses());
    },
  },
  {
    name: 'a record keeps its node name, and is used only while the name is its own',
    async run(scene) {
      const first = await scene.done(scene.first());
      await refuses(scene, whole(scene, scene.again(first, {}, { nodeName: scene.m })));
      if (scene.giveName === undefined) return;
      await scene.done(scene.first({}, { identity: scene.b, nodeName: scene.m }));
      await scene.giveName(scene.n, scene.b);
      await refuses(scene, whole(scene, scene.again(first)));
    },
  },
];

const proofs: readonly Case[] = [
  {
    name: 'a proof is spent by one request, and by the same bytes as often as they come',
    async run(scene) {
      const { p, q, store } = scene;
      const first = await scene.done(scene.first({ once: [spent(p)] }));
      await refuses(scene, whole(scene, scene.again(first, { once: [spent(p, 'bb')] })));
      await refuses(scene, scene.again(first, { once: [spent(q), spent(p, 'bb')] }));
      await scene.done(scene.again(first, { once: [spent(p), spent(q, 'cc')] }));
      const look = { now, nodeName: scene.n, once: [q, p, q], addresses: [], machines: [] };
      deepStrictEqual((await store.lookup(look)).once, ['cc', 'aa'.repeat(32), 'cc']);
    },
  },
  {
    name: 'an expired proof counts as none, from its instant on',
    async run(scene) {
      const { p, store } = scene;
      const first = await scene.done(scene.first({ once: [spent(p, 'aa', now + 10)] }));
      const seenAt = async (at: number) =>
        (await store.lookup({ now: at, nodeName: scene.n, once: [p], addresses: [], machines: [] })).once;
      deepStrictEqual([await seenAt(now + 9), await seenAt(now + 10)], [['aa'], [undefined]]);
      const next = scene.again(first, { once: [spent(p, 'bb', now + 20)] });
      deepStrictEqual(await store.claim(next, now + 9), changed);
      deepStrictEqual(await store.claim(next, now + 10), written);
      deepStrictEqual(await seenAt(now + 10), ['bb']);
    },
  },
  {
    name: 'proofs of other kinds, and texts that an unescaped key would run together, are other proofs',
    async run(scene) {
      const id = randomUUID();
      const proofsAlike = [
        { kind: 'sts', id },
        { kind: 'quote', id },
        { kind: 'sts#a', id },
        { kind: 'sts', id: `a#${id}` },
        { kind: 'sts', id: `a%23${id}` },
        { kind: 'sts', id: id.toUpperCase() },
      ];
      let record = await scene.done(scene.first());
      // Each for itself: a table would refuse a transaction that writes one item twice.
      for (const [index, key] of proofsAlike.entries())
        record = await scene.done(scene.again(record, { once: [spent(key, `${index}`)] }));
      const look = { now, nodeName: scene.n, once: proofsAlike, addresses: [], machines: [] };
      deepStrictEqual((await scene.store.lookup(look)).once, ['0', '1', '2', '3', '4', '5']);
    },
  },
];

const addresses: readonly Case[] = [
  {
    name: 'an address is the machine’s that claimed it first',
    async run(scene) {
      const { b, m, x, y, store } = scene;
      await scene.done(scene.first({}, { addresses: [x] }));
      await refuses(scene, whole(scene, scene.first({}, { identity: b, nodeName: m, addresses: [x] })));
      const other = await scene.done(scene.first({}, { identity: b, nodeName: m }));
      await refuses(scene, scene.again(other, { newAddresses: [y, x] }));
      await scene.done(scene.again(other, { newAddresses: [y] }));
      const look = { now, nodeName: m, once: [], addresses: [y, x, y], machines: [] };
      deepStrictEqual((await store.lookup(look)).addresses, [b, scene.a, b]);
    },
  },
  {
    name: 'with a name only the addresses of the record that ends pass on',
    async run(scene) {
      const { x, y, b } = scene;
      const old = await scene.done(scene.first({}, { addresses: [x] }));
      await scene.done(scene.first({}, { identity: `${scene.a}-c`, nodeName: scene.m, addresses: [y] }));
      const next = scene.first({ retire: old }, { identity: b, addresses: [x, y] });
      await refuses(scene, next);
    },
  },
  {
    name: `a machine holds ${mostAddresses} addresses, and as many are looked up at once; one more throws`,
    async run(scene) {
      const many = Array.from({ length: mostAddresses }, (_, i) => `${scene.x}:${i}`);
      const old = await scene.done(scene.first({ once: [spent(scene.p)] }, { addresses: many }));
      // The longest transaction there is: one machine's addresses end, and another's begin.
      const others = many.map((address) => `${address}0`);
      const next = { identity: scene.b, addresses: others };
      await scene.done(scene.first({ retire: old, once: [spent(scene.p)], audit: [scene.audit()] }, next));
      const look = {
        now,
        identity: scene.b,
        nodeName: scene.n,
        once: [scene.p],
        addresses: others,
        machines: ['aws#i'],
      };
      deepStrictEqual(new Set((await scene.store.lookup(look)).addresses), new Set([scene.b]));
      const more = [...others, scene.y];
      await rejects(() => scene.store.lookup({ ...look, addresses: more }), TypeError);
      const before = await scene.state();
      const used = await recordOf(scene, scene.b);
      await rejects(() => scene.store.claim(scene.again(used, { newAddresses: [scene.y] }), now), TypeError);
      deepStrictEqual(await scene.state(), before);
      deepStrictEqual(await scene.register.reset(used, scene.audit()), written);
    },
  },
];

const looks: readonly Case[] = [
  {
    name: 'a look tells the machine’s own record, and the other machine that has the name',
    async run(scene) {
      const { store, a, b, n, m } = scene;
      const at = async (identity: string | undefined, nodeName: string) => {
        const question = { now, nodeName, once: [], addresses: [], machines: [] };
        const seen = await store.lookup(identity === undefined ? question : { ...question, identity });
        return { identity: seen.identity?.identity, holder: seen.holder?.identity, names: Object.keys(seen).length };
      };
      const nothing = { identity: undefined, holder: undefined, names: 3 };
      deepStrictEqual(await at(a, n), nothing);
      await scene.done(scene.first());
      const other = await scene.done(scene.first({}, { identity: b, nodeName: m }));
      deepStrictEqual(await at(a, n), { identity: a, holder: undefined, names: 4 });
      deepStrictEqual(await at(a, m), { identity: a, holder: b, names: 5 });
      deepStrictEqual(await at(`${a}-c`, n), { identity: undefined, holder: a, names: 4 });
      deepStrictEqual(await at(undefined, n), { identity: undefined, holder: a, names: 4 });
      deepStrictEqual(await at(a, `x${n}`), { identity: a, holder: undefined, names: 4 });
      await scene.done(scene.first({ retire: other }, { identity: `${a}-c`, nodeName: m }));
      deepStrictEqual(await at(b, m), { identity: b, holder: `${a}-c`, names: 5 });
    },
  },
  {
    name: 'texts that an unescaped key would run together are other machines and other nodes',
    async run(scene) {
      const base = scene.a;
      const alike = [`${base}#b`, `${base}%23b`, `${base}%2523b`, base, base.toUpperCase(), base.replace('#', '/')];
      for (const [index, identity] of alike.entries())
        await scene.done(
          scene.first({}, { identity, nodeName: `${scene.n}${['#', '%23', '%', '', '##', '-'][index]}` }),
        );
      for (const identity of alike) strictEqual((await scene.store.findIdentity(identity))?.identity, identity);
    },
  },
  {
    name: 'another cluster knows nothing of it',
    async run(scene) {
      const claim = whole(scene, scene.first());
      await scene.done(claim);
      const { other, a, n, p, q, x, y } = scene;
      strictEqual(await other.findIdentity(a), undefined);
      strictEqual(await other.findNode(n), undefined);
      strictEqual(await other.findVerdict(claim.verdict.uid, now), undefined);
      const look = { now, identity: a, nodeName: n, once: [p, q], addresses: [x, y], machines: [] };
      const nothing = { once: [undefined, undefined], addresses: [undefined, undefined], listed: false };
      deepStrictEqual(await other.lookup(look), nothing);
    },
  },
  {
    name: 'another handle sees each write as soon as it has returned',
    async run(scene) {
      const again = await scene.reopen();
      const claim = whole(scene, scene.first());
      const record = await scene.done(claim);
      deepStrictEqual(await again.store.findIdentity(scene.a), record);
      deepStrictEqual(await again.store.findNode(scene.n), record);
      deepStrictEqual(await again.store.findVerdict(claim.verdict.uid, now), claim.verdict);
      await gone(scene, record);
      strictEqual(await again.store.findNode(scene.n), undefined);
      deepStrictEqual(await all(again.register.listAudit()), await all(scene.register.listAudit()));
    },
  },
];

const misuse: readonly Case[] = [
  {
    name: 'a claim of no identity writes its verdict alone',
    async run(scene) {
      const verdict = scene.verdict({ mode: 'audit' });
      const before = await scene.state();
      deepStrictEqual(await scene.store.claim(none(verdict), now), written);
      deepStrictEqual(await scene.state(), { ...before, verdicts: [verdict] });
    },
  },
  {
    name: 'a claim whose parts do not fit together throws and writes nothing',
    async run(scene) {
      const { b, m, p, x, y } = scene;
      const record = await scene.done(scene.first());
      const fresh = (change: Partial<Claim> = {}, of: Partial<IdentityRecord> = {}) =>
        scene.first(change, { identity: b, nodeName: m, ...of });
      const misfits: readonly Claim[] = [
        { ...none(scene.verdict()), once: [spent(p)] },
        { ...none(scene.verdict()), newAddresses: [x] },
        { ...none(scene.verdict()), retire: record },
        { ...none(scene.verdict()), audit: [scene.audit()] },
        { ...none(scene.verdict()), entry: 'aws#i-1' },
        fresh({ entry: 'aws#*' }),
        fresh({}, { rev: 2 }),
        fresh({}, { state: 'retired' }),
        fresh({ newAddresses: [x] }),
        fresh({ newAddresses: [] }, { addresses: [x] }),
        fresh({ once: [spent({ kind: 'address', id: y })] }),
        fresh({ retire: record }),
        scene.first({ retire: record }),
        scene.again(record, { retire: { ...record, identity: b } }),
        scene.again(record, {}, { rev: 1 }),
        scene.again(record, {}, { state: 'retired' }),
        { ...scene.again(record), newAddresses: [x] },
      ];
      const before = await scene.state();
      for (const claim of misfits) await rejects(() => scene.store.claim(claim, now), TypeError);
      await rejects(() => scene.store.lookup({ ...lookOf(scene, b), once: [{ kind: 'address', id: x }] }), TypeError);
      deepStrictEqual(await scene.state(), before);
      deepStrictEqual(await scene.audited(), []);
    },
  },
];

/** Many at once, on two handles: what the answers say must have happened in some order. */
const together: readonly Case[] = [
  {
    name: '20 claims of one UID at once: one is written, the others are told that verdict, or to look again',
    async run(scene) {
      const verdict = scene.verdict();
      const claims = Array.from({ length: 20 }, (_, i) => none({ ...verdict, requestDigest: `${i}` }));
      const [answers, winner] = await oneWinner(scene, claims);
      const found = { ...verdict, requestDigest: `${winner}` };
      for (const answer of answers) if (answer.kind === 'verdict') deepStrictEqual(answer.found, found);
      deepStrictEqual(await scene.store.findVerdict(verdict.uid, now), found);
    },
  },
  {
    name: '20 uses of one record at once: one is written, its rev counts by one',
    async run(scene) {
      const record = await scene.done(scene.first());
      const claims = Array.from({ length: 20 }, (_, i) => scene.again(record, {}, { lastUid: `${i}` }));
      const [, winner] = await oneWinner(scene, claims);
      deepStrictEqual(await recordOf(scene, scene.a), {
        ...record,
        lastSeen: now + 1,
        uses: 2,
        rev: 2,
        lastUid: `${winner}`,
      });
    },
  },
  {
    name: 'a use, a takeover and a reset of one record at once: one of them, never two',
    async run(scene) {
      const again = await scene.reopen();
      const record = await scene.done(scene.first({}, { addresses: [scene.x] }));
      const takes = scene.first({ retire: record }, { identity: scene.b });
      const answers = await Promise.all([
        scene.store.claim(scene.again(record), now),
        again.store.claim(takes, now),
        scene.register.reset(record, scene.audit()),
      ]);
      strictEqual(answers.filter((answer) => answer.kind === 'written').length, 1);
      const [used, passed, removed] = answers;
      const states = [
        (await scene.store.findIdentity(scene.a))?.state,
        (await scene.store.findNode(scene.n))?.identity,
      ];
      const { a, b } = scene;
      if (used.kind === 'written') deepStrictEqual(states, ['active', a]);
      if (passed.kind === 'written') deepStrictEqual(states, ['retired', b]);
      if (removed.kind === 'written') deepStrictEqual(states, [undefined, undefined]);
      strictEqual((await scene.audited()).length, removed.kind === 'written' ? 1 : 0);
    },
  },
  {
    name: 'a look during takeovers is of one moment: the machine that has the name has an active record',
    async run(scene) {
      const again = await scene.reopen();
      let record = await scene.done(scene.first());
      let over = false;
      const chain = (async () => {
        for (let i = 0; i < 25; i += 1)
          record = await scene.done(scene.first({ retire: record }, { identity: `${scene.a}-${i}` }));
        over = true;
      })();
      const states = new Set<string | undefined>();
      while (!over) {
        try {
          states.add((await again.store.lookup(lookOf(scene, scene.b))).holder?.state);
          states.add((await again.store.findNode(scene.n))?.state);
        } catch (error) {
          // Too often, one after the other: temporary, and never a wrong answer.
          if ((error as Error).name !== 'ThrottledError') throw error;
        }
        await new Promise((resolve) => setImmediate(resolve));
      }
      await chain;
      states.delete('active');
      deepStrictEqual([...states], []);
    },
  },
];

const observations: readonly Case[] = [
  {
    name: 'what is observed replaces the record, and nothing else',
    async run(scene) {
      const { store, a, n, x } = scene;
      const before = await scene.done(scene.first({ once: [spent(scene.p)] }, { addresses: [x] }));
      const restart = { startedAt: 5, since: now, spkiSha256: '99', contested: false };
      const observed = { ...before, unknownSince: now, restart, rev: 2 };
      const state = await scene.state();
      strictEqual(await store.observe(observed), true);
      deepStrictEqual(await store.findIdentity(a), observed);
      deepStrictEqual(await store.findNode(n), observed);
      const after = await scene.state();
      deepStrictEqual(after.verdicts, state.verdicts);
      deepStrictEqual(after.seen, { ...state.seen, holder: observed });
      deepStrictEqual(await scene.audited(), []);
      // Absent stays absent.
      const { unknownSince: _, restart: __, ...plain } = observed;
      strictEqual(await store.observe({ ...plain, rev: 3 }), true);
      deepStrictEqual(await store.findIdentity(a), { ...before, rev: 3 });
    },
  },
  {
    name: 'what is observed holds only for the active record that was read',
    async run(scene) {
      const { store, a, n } = scene;
      const seen = async (record: IdentityRecord) => {
        const before = await scene.state();
        const is = await store.observe({ ...record, unknownSince: now });
        if (!is) deepStrictEqual(await scene.state(), before);
        return is;
      };
      strictEqual(await seen(scene.record({ rev: 2 })), false);
      const first = await scene.done(scene.first());
      strictEqual(await seen({ ...first, rev: 3 }), false);
      strictEqual(await seen({ ...first, rev: 2, firstSeen: now + 1 }), false);
      strictEqual(await seen({ ...first, rev: 2, nodeName: scene.m }), false);
      const second = await scene.done(scene.again(first));
      strictEqual(await seen({ ...first, rev: 2 }), false);
      await takenOver(scene, second);
      const ended = await recordOf(scene, a);
      strictEqual(await seen({ ...ended, state: 'active', rev: ended.rev + 1 }), false);
      await gone(scene, ended);
      strictEqual(await seen({ ...second, rev: 3 }), false);
      strictEqual(await store.findIdentity(a), undefined);
      strictEqual((await store.findNode(n))?.identity, scene.b);
    },
  },
  {
    name: 'of two observations of one record, and of an observation and a claim, one is written',
    async run(scene) {
      const other = (await scene.reopen()).store;
      const first = await scene.done(scene.first());
      const restart = { startedAt: 5, since: now, contested: false };
      const keysSeen = ['aa', 'bb'].map((spkiSha256) => ({ ...first, restart: { ...restart, spkiSha256 }, rev: 2 }));
      const [one = first, two = first] = keysSeen;
      const both = await Promise.all([scene.store.observe(one), other.observe(two)]);
      strictEqual(both.filter(Boolean).length, 1);
      const standing = await recordOf(scene, scene.a);
      deepStrictEqual(standing, both[0] ? one : two);
      const claim = scene.again(standing);
      const contested = { ...standing, restart: { ...restart, spkiSha256: 'aa', contested: true }, rev: 3 };
      const [claimed, observed] = await Promise.all([scene.store.claim(claim, now), other.observe(contested)]);
      strictEqual(claimed.kind === 'written', !observed);
      deepStrictEqual(await recordOf(scene, scene.a), claimed.kind === 'written' ? recordIn(claim) : contested);
    },
  },
  {
    name: 'what is observed is of a record that is let in: anything else throws',
    async run(scene) {
      const first = await scene.done(scene.first());
      await rejects(scene.store.observe(first), TypeError);
      await rejects(scene.store.observe({ ...first, state: 'retired', rev: 2 }), TypeError);
      deepStrictEqual(await recordOf(scene, scene.a), first);
    },
  },
];

const refusals: readonly Case[] = [
  {
    name: 'refusals are counted for each requester and stretch of time by itself, all that come at once too',
    async run(scene) {
      const other = (await scene.reopen()).store;
      const requester = `system:bootstrap:#%${randomUUID()}`;
      const count = { requester, from: now };
      const refused = async (of = count) => (await scene.store.recall(randomUUID(), of, now)).refusals;
      strictEqual(await refused(), 0);
      await Promise.all(Array.from({ length: 20 }, (_, i) => (i % 2 === 0 ? scene.store : other).countRefusal(count)));
      await scene.store.countRefusal({ requester, from: now + 60_000 });
      await scene.store.countRefusal({ requester: `${requester}a`, from: now });
      strictEqual(await refused(), 20);
      strictEqual(await refused({ requester, from: now + 60_000 }), 1);
      strictEqual(await refused({ requester, from: now - 60_000 }), 0);
      strictEqual(await refused({ requester: requester.toUpperCase(), from: now }), 0);
      strictEqual((await scene.other.recall(randomUUID(), count, now)).refusals, 0);
    },
  },
  {
    name: 'what is recalled is the verdict of that UID, unless it is over, and the count',
    async run(scene) {
      const count = { requester: randomUUID(), from: now };
      await scene.store.countRefusal(count);
      const verdict = scene.verdict({ expiresAt: now + 10 });
      await scene.store.claim(none(verdict), now);
      deepStrictEqual(await scene.store.recall(verdict.uid, count, now + 9), { verdict, refusals: 1 });
      deepStrictEqual(await scene.store.recall(verdict.uid, count, now + 10), { refusals: 1 });
      deepStrictEqual(await scene.store.recall(randomUUID(), count, now), { refusals: 1 });
    },
  },
];

function recordIn({ identity }: Claim): IdentityRecord | undefined {
  return identity.kind === 'none' ? undefined : identity.record;
}

export const storeCases: readonly Case[] = [
  ...verdicts,
  ...firstUses,
  ...laterUses,
  ...proofs,
  ...addresses,
  ...looks,
  ...misuse,
  ...observations,
  ...retirementCases,
  ...refusals,
  ...together,
];

function none(verdict: Verdict): Claim {
  return { verdict, once: [], identity: { kind: 'none' }, newAddresses: [], audit: [] };
}

function lookOf({ n }: Scene, identity: string) {
  return { now, identity, nodeName: n, once: [], addresses: [], machines: [] };
}

async function recordOf(scene: Scene, identity: string): Promise<IdentityRecord> {
  const record = await scene.store.findIdentity(identity);
  ok(record);
  return record;
}

async function oneWinner(scene: Scene, claims: readonly Claim[]): Promise<[readonly ClaimResult[], number]> {
  const stores = [scene.store, (await scene.reopen()).store] as const;
  const answers = await Promise.all(claims.map((claim, i) => stores[i % 2 === 0 ? 0 : 1].claim(claim, now)));
  const winners = answers.flatMap((answer, index) => (answer.kind === 'written' ? [index] : []));
  strictEqual(winners.length, 1);
  return [answers, winners[0] ?? -1];
}
