/** core/ports/attestation-store.ts, sentence by sentence, what operators do. Like attestation-store-cases.ts. */
import { deepStrictEqual, ok, rejects, strictEqual } from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import type { ChangeResult, Claim, IdentityRecord, MachineEntry } from '../../core/ports/attestation-store.ts';
import { lockOfKey, lockOfMachine, lockOfNode } from '../../core/attestation/records/lock-subjects.ts';
import type { Locked } from '../../core/attestation/records/lock-subjects.ts';
import { sha256 } from '../../core/encoding/digest.ts';
import type { Lock } from '../../core/ports/locks.ts';
import { ulid } from '../../core/attestation/records/ulid.ts';
import { all, hour, now, spent } from './attestation-scene.ts';
import type { Scene } from './attestation-scene.ts';
import type { Case } from './attestation-store-cases.ts';

const written: ChangeResult = { kind: 'written' };
const changed: ChangeResult = { kind: 'changed' };
const missing: ChangeResult = { kind: 'missing' };

/** The answer is as told, and nothing at all was written, no audit item either. */
async function refuses(scene: Scene, change: () => Promise<ChangeResult>, answer: ChangeResult): Promise<void> {
  const [before, audited] = [await scene.state(), await scene.audited()];
  deepStrictEqual(await change(), answer);
  deepStrictEqual(await scene.state(), before);
  deepStrictEqual(await scene.audited(), audited);
}

const resets: readonly Case[] = [
  {
    name: 'a reset removes record, name and addresses, and the next use is a first use',
    async run(scene) {
      const { register, store, a, n, p, x, y } = scene;
      const record = await scene.done(scene.first({ once: [spent(p)] }, { addresses: [x, y] }));
      const audit = scene.audit({ action: 'reset', before: record, nodeName: n });
      deepStrictEqual(await register.reset(record, audit), written);
      strictEqual(await store.findIdentity(a), undefined);
      strictEqual(await store.findNode(n), undefined);
      const look = { now, identity: a, nodeName: n, once: [p], addresses: [x, y], machines: [] };
      // A proof that was spent stays spent.
      const once = ['aa'.repeat(32)];
      deepStrictEqual(await store.lookup(look), { once, addresses: [undefined, undefined], listed: false });
      deepStrictEqual(await scene.audited(), [audit]);
      await scene.done(scene.first({}, { identity: scene.b, addresses: [x, y] }));
    },
  },
  {
    name: 'a reset is of the very record that was read',
    async run(scene) {
      const reset = (record: IdentityRecord) => () => scene.register.reset(record, scene.audit({ action: 'reset' }));
      const first = scene.record();
      await refuses(scene, reset(first), missing);
      await scene.done(scene.first());
      await refuses(scene, reset({ ...first, rev: 2 }), changed);
      await refuses(scene, reset({ ...first, firstSeen: now - 1 }), changed);
      const second = await scene.done(scene.again(first));
      await refuses(scene, reset(first), changed);
      deepStrictEqual(await reset(second)(), written);
      await refuses(scene, reset(second), missing);
    },
  },
  {
    name: 'a reset of a machine that lost its name leaves the name with its present machine',
    async run(scene) {
      const { register, store, a, n } = scene;
      const old = await scene.done(scene.first());
      const next = await scene.done(scene.first({ retire: old }, { identity: scene.b }));
      deepStrictEqual(await register.reset({ ...old, state: 'retired', rev: 2 }, scene.audit()), written);
      strictEqual(await store.findIdentity(a), undefined);
      deepStrictEqual(await store.findNode(n), next);
    },
  },
];

const adoptions: readonly Case[] = [
  {
    name: 'an adopted machine has a record without a key, and its first proof replaces it',
    async run(scene) {
      const { register, store, a, n, x } = scene;
      const { spkiSha256: _, lastUid: __, ...bare } = scene.record({ uses: 0, addresses: [x] });
      const audit = scene.audit({ action: 'adopt' });
      deepStrictEqual(await register.adopt(bare, audit), written);
      deepStrictEqual(await store.findIdentity(a), bare);
      deepStrictEqual(await store.findNode(n), bare);
      const look = { now, identity: a, nodeName: n, once: [], addresses: [x], machines: [] };
      deepStrictEqual((await store.lookup(look)).addresses, [a]);
      deepStrictEqual(await scene.audited(), [audit]);
      const proved = await scene.done(scene.again(bare, {}, { spkiSha256: '77' }));
      deepStrictEqual(await store.findIdentity(a), proved);
    },
  },
  {
    name: 'a machine whose identity, name or address has a record is not adopted',
    async run(scene) {
      const { a, b, n, m, x } = scene;
      const adopt = (change: Partial<IdentityRecord>) => () => {
        const { spkiSha256: _, ...bare } = scene.record(change);
        return scene.register.adopt(bare, scene.audit({ action: 'adopt' }));
      };
      const record = await scene.done(scene.first({}, { addresses: [x] }));
      await refuses(scene, adopt({}), changed);
      await refuses(scene, adopt({ identity: a, nodeName: m }), changed);
      await refuses(scene, adopt({ identity: b, nodeName: n }), changed);
      await refuses(scene, adopt({ identity: b, nodeName: m, addresses: [x] }), changed);
      const next = await scene.done(scene.first({ retire: record }, { identity: b }));
      // A retired machine has a record, and its successor the name.
      await refuses(scene, adopt({ identity: a, nodeName: m }), changed);
      deepStrictEqual(await scene.store.findNode(n), next);
    },
  },
  {
    name: 'an adoption that claims a key or a past throws and writes nothing',
    async run(scene) {
      const { spkiSha256: _, ...bare } = scene.record();
      const before = await scene.state();
      const described = { at: now, addresses: [], dnsNames: [] };
      const others = [
        { ...bare, rev: 2 },
        { ...bare, state: 'retired' as const },
        { ...bare, described },
      ];
      for (const wrong of [...others, scene.record()])
        await rejects(() => scene.register.adopt(wrong, scene.audit()), TypeError);
      deepStrictEqual(await scene.state(), before);
    },
  },
];

const machines: readonly Case[] = [
  {
    name: 'the list of machines knows names and patterns, anchored at both ends',
    async run(scene) {
      const { register, store } = scene;
      // In this run's own corner of names: a pattern holds for every machine in the store.
      const corner = randomUUID();
      const add = (name: string) =>
        register.allowMachine(entryOf(name), scene.audit({ action: 'allow', subject: name }));
      const listed = async (...names: readonly string[]) =>
        (await store.lookup({ now, nodeName: scene.n, once: [], addresses: [], machines: names })).listed;
      strictEqual(await listed(`aws#${corner}-1`), false);
      deepStrictEqual(await add(`aws#${corner}-1`), written);
      deepStrictEqual(await add(`aws#${corner}-p*q*`), written);
      deepStrictEqual(await add(`aws#${corner}-*.end`), written);
      const expected = {
        [`aws#${corner}-1`]: true,
        [`aws#${corner}-12`]: false,
        [`xaws#${corner}-1`]: false,
        [`AWS#${corner}-1`]: false,
        [`aws#${corner}-pq`]: true,
        [`aws#${corner}-p1q2`]: true,
        [`aws#${corner}-p`]: false,
        [`aws#${corner}-1.end`]: true,
        [`aws#${corner}-1.end.`]: false,
        [`aws#${corner}-1xend`]: false,
        // Names that look like entries of the store itself.
        '*': false,
        pk: false,
        '': false,
      };
      for (const [name, answer] of Object.entries(expected)) strictEqual(await listed(name), answer, name);
      strictEqual(await listed(), false);
      strictEqual(await listed('aws#other', `aws#${corner}-1`), true);
    },
  },
  {
    name: 'an entry is replaced and removed by its name, pattern or not, each time with an audit item',
    async run(scene) {
      const { register } = scene;
      const corner = randomUUID();
      for (const name of [`aws#${corner}`, `aws#${corner}-*`]) {
        const own = async () => (await register.listMachines()).filter((entry) => entry.name === name);
        const audits = ['allow', 'allow', 'remove', 'remove'].map((action, i) =>
          scene.audit({
            id: ulid(now + i, new Uint8Array(10).fill(name.length)),
            action: action as 'allow',
            subject: name,
          }),
        );
        const [first, second, third, fourth] = audits as [never, never, never, never];
        const entries = [entryOf(name), { ...entryOf(name), by: 'another', reason: 'again', addedAt: now + 1 }];
        deepStrictEqual(await register.allowMachine(entries[0]!, first), written);
        deepStrictEqual(await own(), [entries[0]]);
        deepStrictEqual(await register.allowMachine(entries[1]!, second), written);
        deepStrictEqual(await own(), [entries[1]]);
        deepStrictEqual(await register.removeMachine(name, third), written);
        deepStrictEqual(await own(), []);
        deepStrictEqual(await register.removeMachine(name, fourth), missing);
        const left = (await scene.audited()).filter(({ subject }) => subject === name);
        deepStrictEqual(left, audits.slice(0, 3));
      }
    },
  },
  {
    name: 'the list is in the order of its names, and removing one leaves the others',
    async run(scene) {
      const corner = `aws#${randomUUID()}`;
      const names = [`${corner}-*b`, `${corner}-a`, `${corner}-c*`, `${corner}-d`];
      for (const name of names) await scene.register.allowMachine(entryOf(name), scene.audit({ action: 'allow' }));
      await scene.register.removeMachine(`${corner}-a`, scene.audit({ action: 'remove' }));
      await scene.register.removeMachine(`${corner}-c*`, scene.audit({ action: 'remove' }));
      const own = (await scene.register.listMachines()).filter(({ name }) => name.startsWith(corner));
      deepStrictEqual(own, [`${corner}-*b`, `${corner}-d`].map(entryOf));
    },
  },
];

const entries: readonly Case[] = [
  {
    name: 'an entry is found by exactly its name, with the names of its machine, and no other way',
    async run(scene) {
      const { register, store, other } = scene;
      const corner = `tpm#${randomUUID()}`;
      const names = [corner, `${corner}#`, `${corner}%23`, `${corner}-*`];
      const added = names.map((name, i) => ({ ...entryOf(name), nodeName: `node-${i}`, addresses: [`10.0.0.${i}`] }));
      for (const entry of added) {
        strictEqual(await store.findMachine(entry.name), undefined);
        deepStrictEqual(await register.allowMachine(entry, scene.audit({ action: 'allow' })), written);
      }
      const again = (await scene.reopen()).store;
      for (const reader of [store, again])
        for (const entry of added.slice(0, 3)) deepStrictEqual(await reader.findMachine(entry.name), entry);
      // A pattern holds for names that cannot be told from here, so it says nothing about one machine.
      const absent = [`${corner}-*`, `${corner}-1`, corner.toUpperCase(), corner.slice(0, -1), `${corner}*`, '*', ''];
      for (const name of absent) strictEqual(await store.findMachine(name), undefined, name);
      strictEqual(await other.findMachine(corner), undefined);
      const listed = (await register.listMachines()).filter(({ name }) => name.startsWith(corner));
      deepStrictEqual(byName(listed), byName(added));
    },
  },
  {
    name: 'an entry that replaces another has none of its names, and a removed one is not found',
    async run(scene) {
      const { register, store } = scene;
      const name = `tpm#${randomUUID()}`;
      const whole = { ...entryOf(name), nodeName: 'n', addresses: ['10.0.0.1', 'fd00::1'], dnsNames: ['a.b'] };
      for (const entry of [whole, entryOf(name), { ...whole, dnsNames: ['c.d', 'e.f'] }]) {
        deepStrictEqual(await register.allowMachine(entry, scene.audit({ action: 'allow' })), written);
        deepStrictEqual(await store.findMachine(name), entry);
      }
      deepStrictEqual(await register.removeMachine(name, scene.audit({ action: 'remove' })), written);
      strictEqual(await store.findMachine(name), undefined);
    },
  },
  {
    name: 'a look tells the entry that is a machine’s own, and no pattern',
    async run(scene) {
      const corner = `aws#${randomUUID()}`;
      const look = async (...names: readonly string[]) => {
        const question = { now, nodeName: scene.n, once: [], addresses: [], machines: names };
        const { listed, entry } = await scene.store.lookup(question);
        return [listed, entry];
      };
      for (const name of [`${corner}-1`, `${corner}-*`])
        await scene.register.allowMachine(entryOf(name), scene.audit({ action: 'allow' }));
      deepStrictEqual(await look(`${corner}-1`), [true, `${corner}-1`]);
      deepStrictEqual(await look('aws#other', `${corner}-1`), [true, `${corner}-1`]);
      deepStrictEqual(await look(`${corner}-2`), [true, undefined]);
      deepStrictEqual(await look('aws#other'), [false, undefined]);
      strictEqual((await look(`${corner}-*`))[1], undefined);
      strictEqual((await look('*'))[1], undefined);
    },
  },
  {
    name: 'a claim that depends on an entry is written only while the entry is there',
    async run(scene) {
      const { store, register, n, p, x } = scene;
      const entry = `aws#${randomUUID()}`;
      const allow = () => register.allowMachine(entryOf(entry), scene.audit({ action: 'allow' }));
      const remove = () => register.removeMachine(entry, scene.audit({ action: 'remove' }));
      const first = () => scene.first({ once: [spent(p)], entry }, { addresses: [x] });
      const refused = async (claim: Claim) => {
        const before = await scene.state();
        deepStrictEqual(await store.claim(claim, now), changed);
        deepStrictEqual(await scene.state(), before);
      };
      await refused(first());
      await allow();
      await remove();
      await refused(first());
      await allow();
      const record = await scene.done(first());
      deepStrictEqual(await store.findNode(n), record);
      // Another entry in its place is the same word of the operator.
      await allow();
      const later = await scene.done(scene.again(record, { entry }));
      await remove();
      await refused(scene.again(later, { entry }));
      await refused(scene.first({ entry, retire: later }, { identity: scene.b }));
      // Without the list it is as ever, and another cluster's list is another list.
      await scene.done(scene.again(later));
      await allow();
      deepStrictEqual(await scene.other.claim(first(), now), changed);
    },
  },
  {
    name: 'of a claim and the removal of its entry at once, the claim is never the later one',
    async run(scene) {
      const other = await scene.reopen();
      const outcomes = new Set<string>();
      for (let round = 0; round < 20; round += 1) {
        const entry = `aws#${randomUUID()}`;
        const identity = `${scene.a}-${round}`;
        await scene.register.allowMachine(entryOf(entry), scene.audit({ action: 'allow' }));
        const claim = scene.first({ entry }, { identity, nodeName: `${scene.n}-${round}` });
        let removed = false;
        const remove = async () => {
          deepStrictEqual(await other.register.removeMachine(entry, scene.audit({ action: 'remove' })), written);
          removed = true;
        };
        const attempt = async () => {
          // Half of them begin when the removal is over.
          const late = removed;
          const { kind } = await scene.store.claim(claim, now);
          outcomes.add(kind);
          if (late) strictEqual(kind, 'changed');
          strictEqual((await scene.store.findIdentity(identity)) === undefined, kind === 'changed');
        };
        if (round % 2 === 0) await Promise.all([attempt(), remove()]);
        else await remove().then(attempt);
      }
      ok(outcomes.has('changed'));
    },
  },
  {
    name: 'an entry that an earlier version wrote is one without names',
    async run(scene) {
      const { register, store, putEntry } = scene;
      if (putEntry === undefined) return;
      const corner = `aws#${randomUUID()}`;
      for (const name of [corner, `${corner}-*`]) {
        const { addresses: _, dnsNames: __, ...older } = entryOf(name);
        await putEntry(older);
      }
      deepStrictEqual(await store.findMachine(corner), entryOf(corner));
      const listed = (await register.listMachines()).filter(({ name }) => name.startsWith(corner));
      deepStrictEqual(byName(listed), byName([entryOf(corner), entryOf(`${corner}-*`)]));
      const look = { now, nodeName: scene.n, once: [], addresses: [], machines: [corner] };
      strictEqual((await store.lookup(look)).listed, true);
    },
  },
];

const lists: readonly Case[] = [
  {
    name: 'records are listed, whatever their state, as they stand',
    async run(scene) {
      const old = await scene.done(scene.first());
      const next = await scene.done(scene.first({ retire: old }, { identity: scene.b }));
      const listed = (await all(scene.register.listIdentities())).filter(({ nodeName }) => nodeName === scene.n);
      const expected: readonly IdentityRecord[] = [{ ...old, state: 'retired', retiredAt: now, rev: 2 }, next];
      deepStrictEqual(byIdentity(listed), byIdentity(expected));
    },
  },
  {
    name: 'verdicts are listed until they expire',
    async run(scene) {
      const kept = scene.verdict({ signerName: scene.n, expiresAt: now + hour });
      const over = scene.verdict({ signerName: scene.n, expiresAt: now + 1 });
      for (const verdict of [kept, over])
        await scene.store.claim({ verdict, once: [], identity: { kind: 'none' }, newAddresses: [], audit: [] }, now);
      const own = async (at: number) =>
        (await all(scene.register.listVerdicts(at))).filter(({ signerName }) => signerName === scene.n);
      strictEqual((await own(now)).length, 2);
      deepStrictEqual(await own(now + 1), [kept]);
      deepStrictEqual(await own(now + hour), []);
    },
  },
  {
    name: 'audit items are listed in the order of their ids, exactly as written',
    async run(scene) {
      const record = await scene.done(scene.first());
      const items = [3, 1, 2].map((minute) =>
        scene.audit({
          id: ulid(now + minute * 60_000, crypto.getRandomValues(new Uint8Array(10))),
          at: now + minute * 60_000,
          nodeName: scene.n,
          before: { ...record, previousSpkis: ['a', 'b'], addresses: [scene.x] },
          subject: 'a#b%23',
        }),
      );
      for (const item of items) await scene.register.allowMachine(entryOf(`aws#${randomUUID()}`), item);
      deepStrictEqual(await scene.audited(), [items[1], items[2], items[0]]);
    },
  },
  {
    name: 'an audit item is written once: a change that brings the id of another throws, and is not made',
    async run(scene) {
      const record = await scene.done(scene.first());
      const audit = scene.audit({ action: 'allow', reason: scene.audit().reason });
      await scene.register.allowMachine(entryOf(`aws#${randomUUID()}`), audit);
      const before = await scene.state();
      const other = { ...audit, action: 'reset' as const, by: 'another' };
      await rejects(() => scene.register.reset(record, other));
      const claim = scene.first({ retire: record, audit: [other] }, { identity: scene.b });
      await scene.store.claim(claim, now).catch(() => undefined);
      deepStrictEqual([await scene.store.findIdentity(scene.a), await scene.store.findNode(scene.n)], [record, record]);
      deepStrictEqual(await scene.state(), before);
      deepStrictEqual(await scene.audited(), [audit]);
    },
  },
];

const locks: readonly Case[] = [
  {
    name: 'lock: it bars the node name and the machine that it names, read at once, and listed once',
    async run(scene) {
      const { register, store, a, b, n, m } = scene;
      const lock = lockOf(scene, { nodeName: n, identity: a });
      const audit = scene.audit({ id: lock.id, action: 'lock', nodeName: n });
      strictEqual(await store.findLock(lockOfNode(n)), undefined);
      deepStrictEqual(await register.lock(lock, audit), written);
      const other = (await scene.reopen()).store;
      for (const reader of [store, other])
        for (const subject of [lockOfNode(n), lockOfMachine(a)]) deepStrictEqual(await reader.findLock(subject), lock);
      for (const subject of [lockOfNode(m), lockOfMachine(b)]) strictEqual(await store.findLock(subject), undefined);
      strictEqual(await scene.other.findLock(lockOfNode(n)), undefined);
      deepStrictEqual(await own(scene), [lock]);
      deepStrictEqual(await scene.audited(), [audit]);
      const look = { now, nodeName: m, once: [], addresses: [], machines: [] };
      deepStrictEqual((await store.lookup({ ...look, identity: a })).lock, lock);
      strictEqual((await store.lookup({ ...look, identity: b })).lock, undefined);
      strictEqual((await store.lookup(look)).lock, undefined);
    },
  },
  {
    name: 'lock: nothing is locked twice, and a lock that meets another writes nothing',
    async run(scene) {
      const { register, store, a, n, m } = scene;
      const first = lockOf(scene, { nodeName: n });
      deepStrictEqual(await register.lock(first, scene.audit({ action: 'lock' })), written);
      for (const about of [{ nodeName: n }, { nodeName: n, identity: a }])
        await refuses(scene, () => register.lock(lockOf(scene, about), scene.audit({ action: 'lock' })), changed);
      strictEqual(await store.findLock(lockOfMachine(a)), undefined);
      const second = lockOf(scene, { nodeName: m, identity: a }, 1);
      deepStrictEqual(await register.lock(second, scene.audit({ action: 'lock' })), written);
      deepStrictEqual(await own(scene), [first, second]);
    },
  },
  {
    name: 'lock: it ends as a whole, by its id, and can be made again',
    async run(scene) {
      const { register, store, a, n } = scene;
      const lock = lockOf(scene, { nodeName: n, identity: a });
      const unlock = (which: Lock) => () => register.unlock(which, scene.audit({ action: 'unlock' }));
      await refuses(scene, unlock(lock), missing);
      await register.lock(lock, scene.audit({ action: 'lock' }));
      await refuses(scene, unlock({ ...lock, id: ulid(now, new Uint8Array(10)) }), missing);
      deepStrictEqual(await unlock(lock)(), written);
      for (const subject of [lockOfNode(n), lockOfMachine(a)]) strictEqual(await store.findLock(subject), undefined);
      deepStrictEqual(await own(scene), []);
      await refuses(scene, unlock(lock), missing);
      const again = lockOf(scene, { nodeName: n });
      deepStrictEqual(await register.lock(again, scene.audit({ action: 'lock' })), written);
      await refuses(scene, unlock(lock), missing);
      deepStrictEqual(await store.findLock(lockOfNode(n)), again);
    },
  },
  {
    name: 'lock: it bars a key, and ends',
    async run(scene) {
      const { register, store } = scene;
      const spkiSha256 = sha256(randomBytes(32)).toString('hex');
      const lock = lockOf(scene, { spkiSha256 });
      deepStrictEqual(await register.lock(lock, scene.audit({ action: 'lock' })), written);
      deepStrictEqual(await store.findLock(lockOfKey(spkiSha256)), lock);
      strictEqual(await scene.other.findLock(lockOfKey(spkiSha256)), undefined);
      const twice = () => register.lock(lockOf(scene, { spkiSha256 }), scene.audit({ action: 'lock' }));
      await refuses(scene, twice, changed);
      deepStrictEqual(await register.unlock(lock, scene.audit({ action: 'unlock' })), written);
      strictEqual(await store.findLock(lockOfKey(spkiSha256)), undefined);
    },
  },
  {
    name: 'addAudit: an item about revocations stands alone',
    async run(scene) {
      const before = await scene.state();
      const item = { ...scene.audit({ action: 'revoke' }), certificates: 3 };
      await scene.register.addAudit(item);
      deepStrictEqual(await scene.state(), before);
      deepStrictEqual(await scene.audited(), [item]);
    },
  },
];

function lockOf(scene: Scene, about: Locked, later = 0): Lock {
  const { by, reason } = scene.audit();
  return { ...about, id: ulid(now + later, crypto.getRandomValues(new Uint8Array(10))), at: now + later, by, reason };
}

/** Of this scene: its reason is its own. */
async function own(scene: Scene): Promise<readonly Lock[]> {
  const { reason } = scene.audit();
  return (await scene.register.listLocks()).filter((lock) => lock.reason === reason);
}

export const registerCases: readonly Case[] = [...resets, ...adoptions, ...machines, ...entries, ...lists, ...locks];

function entryOf(name: string): MachineEntry {
  return {
    name,
    addresses: [],
    dnsNames: [],
    addedAt: now,
    by: 'arn:aws:iam::123456789012:user/eve',
    reason: 'a new board, #1 %',
  };
}

function byName(entries: readonly MachineEntry[]): readonly MachineEntry[] {
  return entries.toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

function byIdentity(records: readonly IdentityRecord[]): readonly IdentityRecord[] {
  return records.toSorted((a, b) => (a.identity < b.identity ? -1 : 1));
}
