import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest';
import { openEmbeddedAttestations } from '../../../../adapters/embedded/attestations.ts';
import { openEmbeddedLedger } from '../../../../adapters/embedded/ledger.ts';
import { raceKinds, raceMany } from '../../../contract/attestation-races.ts';
import { hour, now, sceneOf, spent } from '../../../contract/attestation-scene.ts';
import { attestationStoreContract } from '../../../contract/attestation-store.ts';
import { embeddedUnderTest } from '../../../contract/embedded-attestations.ts';

const folder = mkdtempSync(join(tmpdir(), 'countersign-attestations-'));
afterAll(() => rmSync(folder, { recursive: true }));
let files = 0;
const newFile = (): string => join(folder, `${++files}.sqlite`);
const onFile = () => embeddedUnderTest(openEmbeddedAttestations, newFile);

attestationStoreContract('embedded, on a file', async () => onFile());
attestationStoreContract('embedded, in memory', async () => {
  const [first, second] = [openEmbeddedAttestations(':memory:'), openEmbeddedAttestations(':memory:')];
  return {
    store: first.store,
    register: first.register,
    other: second.store,
    // A memory store has no second handle: the same one must still be right. Nothing outside can reach it.
    reopen: async () => first,
    close: async () => [first, second].forEach((each) => each.close()),
  };
});

describe('two first uses, both having looked before either writes', () => {
  // Two processes race in test/suites/process/concurrency; here two handles of one, in memory's speed.
  test.each(raceKinds)('of one %s, 100 times: exactly one wins', async (kind) => {
    const made = onFile();
    const wins = await raceMany(kind, made, { rounds: 100, atOnce: 10 });
    expect(wins[0] + wins[1]).toBe(100);
    expect(Math.min(...wins)).toBeGreaterThan(0);
    await made.close();
  });
});

describe('the file', () => {
  test('is its owner’s alone, and so are those beside it', async () => {
    const file = newFile();
    const { register, store, close } = openEmbeddedAttestations(file);
    const handles = { store, register };
    const scene = sceneOf({ ...handles, other: store, reopen: async () => handles, close: async () => {} });
    await scene.done(scene.first());
    for (const each of [file, `${file}-wal`, `${file}-shm`]) expect(statSync(each).mode & 0o777).toBe(0o600);
    close();
  });

  test('keeps everything when closed and opened again', async () => {
    const file = newFile();
    const before = openEmbeddedAttestations(file);
    const scene = sceneOf({ ...before, other: before.store, reopen: async () => before, close: async () => {} });
    const record = await scene.done(scene.first({ once: [spent(scene.p)] }, { addresses: [scene.x] }));
    before.close();
    const { store, close } = openEmbeddedAttestations(file);
    const look = { now, identity: scene.a, nodeName: scene.n, once: [scene.p], addresses: [scene.x], machines: [] };
    const expected = { identity: record, once: ['aa'.repeat(32)], addresses: [scene.a], listed: false };
    expect(await store.lookup(look)).toEqual(expected);
    close();
  });

  test('of something else is refused and left as it was', () => {
    const file = newFile();
    openEmbeddedLedger(file).close();
    expect(() => openEmbeddedAttestations(file)).toThrow(/not a Countersign attestation store/);
    openEmbeddedLedger(file).close();
    writeFileSync(`${file}.txt`, 'not a database at all, but long enough to be looked at'.repeat(40));
    expect(() => openEmbeddedAttestations(`${file}.txt`)).toThrow(/not a database/);
  });

  test('of a later version is refused', () => {
    const file = newFile();
    openEmbeddedAttestations(file).close();
    const later = new DatabaseSync(file);
    later.exec('PRAGMA user_version = 5');
    later.close();
    expect(() => openEmbeddedAttestations(file)).toThrow(/schema 5; this program knows 4/);
  });

  test('itself refuses what no record may do, and to change the past', async () => {
    const made = onFile();
    const file = join(folder, `${files - 1}.sqlite`);
    const scene = sceneOf(made);
    const record = await scene.done(scene.first());
    // The name of `a` passes on, which retires it, with an audit item.
    await scene.done(scene.first({ retire: record, audit: [scene.audit()] }, { identity: scene.b }));
    const raw = new DatabaseSync(file);
    for (const statement of [
      `UPDATE identity SET rev = rev + 1, state = 'active' WHERE identity = '${scene.a}'`,
      `UPDATE identity SET rev = rev + 1 WHERE identity = '${scene.a}'`,
      `UPDATE identity SET rev = rev + 2 WHERE identity = '${scene.b}'`,
      `UPDATE identity SET record = '{}' WHERE identity = '${scene.b}'`,
      `UPDATE identity SET rev = rev + 1, node_name = 'n' WHERE identity = '${scene.b}'`,
      `UPDATE identity SET rev = rev + 1, first_seen = 1 WHERE identity = '${scene.b}'`,
      `UPDATE audit SET item = '{}'`,
      `DELETE FROM audit`,
    ])
      expect(() => raw.exec(statement)).toThrow(/only move forward|never changes|never deleted/);
    const invented = `UPDATE identity SET rev = rev + 1, state = 'other' WHERE identity = '${scene.b}'`;
    expect(() => raw.exec(invented)).toThrow(/CHECK/);
    raw.close();
    await made.close();
  });

  test('with a record that this program did not write: a fault, never a guess', async () => {
    const made = onFile();
    const raw = new DatabaseSync(join(folder, `${files - 1}.sqlite`));
    const scene = sceneOf(made);
    await scene.done(scene.first());
    for (const [index, wrong] of [
      { state: 'lost' },
      { rev: '1' },
      { previousSpkis: [1] },
      { addresses: undefined },
      { spkiSha256: null },
      { firstSeen: 1.5 },
    ].entries()) {
      const text = JSON.stringify({ ...scene.record(), ...wrong });
      raw.prepare(`UPDATE identity SET rev = ?, record = ? WHERE identity = ?`).run(index + 2, text, scene.a);
      await expect(made.store.findIdentity(scene.a)).rejects.toThrow(/cannot be read/);
      await expect(made.store.findNode(scene.n)).rejects.toThrow(/cannot be read/);
    }
    raw.exec('DELETE FROM identity');
    await expect(made.store.findNode(scene.n)).rejects.toThrow(/without a record/);
    raw.close();
    await made.close();
  });

  test('has no expired rows an hour later: the next claim removes them, a limited number at once', async () => {
    const made = onFile();
    const raw = new DatabaseSync(join(folder, `${files - 1}.sqlite`));
    const scene = sceneOf(made);
    const count = (table: string) => Number(raw.prepare(`SELECT count(*) AS n FROM ${table}`).get()?.['n']);
    const record = await scene.done(
      scene.first({ once: [spent(scene.p)], verdict: scene.verdict({ expiresAt: now }) }),
    );
    await made.store.countRefusal({ requester: 'someone', from: now });
    await made.store.retire(record, { nameFreeAt: now, audit: scene.audit({ action: 'retire' }) });
    const expired = Array.from({ length: 150 }, () => scene.verdict({ expiresAt: now + hour }));
    for (const verdict of expired)
      await made.store.claim({ verdict, once: [], identity: { kind: 'none' }, newAddresses: [], audit: [] }, now);
    const counts = () => ['verdict', 'once', 'refused', 'node', 'identity', 'audit'].map(count);
    expect(counts()).toEqual([151, 1, 1, 1, 1, 1]);
    const claimAt = (at: number) =>
      made.store.claim(
        { verdict: scene.verdict(), once: [], identity: { kind: 'none' }, newAddresses: [], audit: [] },
        at,
      );
    await claimAt(now + hour - 1);
    expect(counts()).toEqual([152, 1, 1, 1, 1, 1]);
    await claimAt(now + hour);
    expect(counts()).toEqual([152, 1, 0, 0, 1, 1]);
    await claimAt(now + 2 * hour);
    expect(counts()).toEqual([53, 0, 0, 0, 1, 1]);
    await claimAt(now + 2 * hour);
    expect(counts()).toEqual([4, 0, 0, 0, 1, 1]);
    raw.close();
    await made.close();
  });

  test('waits for another process that holds the lock, and says so when it waits in vain', async () => {
    const file = newFile();
    const { store, register, close } = openEmbeddedAttestations(file, 100);
    const scene = sceneOf({
      store,
      register,
      other: store,
      reopen: async () => ({ store, register }),
      close: async () => {},
    });
    const holder = new DatabaseSync(file);
    holder.exec('BEGIN IMMEDIATE');
    const claim = scene.first();
    await expect(store.claim(claim, now)).rejects.toThrow(/locked/);
    holder.exec('ROLLBACK');
    expect(await store.claim(claim, now)).toEqual({ kind: 'written' });
    holder.close();
    close();
    await expect(store.findIdentity(scene.a)).rejects.toThrow();
    await expect(store.claim(scene.first(), now)).rejects.toThrow();
  });
});

describe('writes that share a commit', () => {
  test('succeed or fail separately: only the rows of the failed write are rolled back', async () => {
    const made = onFile();
    const scene = sceneOf(made);
    const audit = scene.audit();
    const one = scene.first({ audit: [audit] }, { addresses: [scene.x] });
    const two = scene.first({ audit: [audit] }, { identity: scene.b, nodeName: scene.m, addresses: [scene.y] });
    const three = scene.first({}, { identity: `${scene.a}-c`, nodeName: `c-${scene.n}`, addresses: [scene.y] });
    // The second fails at its very end: its audit item is there already.
    const answers = await Promise.allSettled([one, two, three].map((claim) => made.store.claim(claim, now)));
    expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(await made.store.findNode(scene.m)).toBeUndefined();
    const look = { now, identity: scene.b, nodeName: scene.m, once: [], addresses: [scene.x, scene.y], machines: [] };
    expect(await made.store.lookup(look)).toEqual({ once: [], addresses: [scene.a, `${scene.a}-c`], listed: false });
    await made.close();
  });
});

describe('inside Lambda', () => {
  afterEach(() => vi.unstubAllEnvs());
  test('refuses to start and leaves no file', () => {
    vi.stubEnv('LAMBDA_TASK_ROOT', '/var/task');
    const file = newFile();
    expect(() => openEmbeddedAttestations(file)).toThrow('refuses to start inside AWS Lambda');
    expect(existsSync(file)).toBe(false);
  });
});
