/** `countersign lock`, `unlock` and `locks` over the real embedded store. */
import { userInfo } from 'node:os';
import { describe, expect, test } from 'vitest';
import { processIo } from '../../../../cli/world.ts';
import type { OpenRegister } from '../../../../cli/runtime/io.ts';
import { audited, hour, machine, newFolder, recordOf, used } from '../register.ts';
import { now, run } from '../run.ts';

/** Printed before a change. */
const announced = (path: string) => `countersign: folder ${path}, as ${by}\n`;
const why = ['--reason', 'stolen, ticket 4711'];
const [by, at] = [userInfo().username, '2026-06-01T12:00:00Z'];
const reason = 'stolen, ticket 4711';

describe('lock', () => {
  test('lock: a node without a record: the name alone, with an audit item, and what to do next', async () => {
    const folder = await newFolder();
    const ran = await run(['lock', 'worker-3', '--data', folder.path, ...why]);
    expect(ran.code).toBe(0);
    const lock = await folder.store.findLock('node#worker-3');
    expect(lock).toEqual({ id: expect.any(String) as string, nodeName: 'worker-3', at: now, by, reason });
    expect(await audited(folder)).toEqual([
      { id: lock?.id, at: now, by, action: 'lock', subject: 'worker-3', nodeName: 'worker-3', reason },
    ]);
    expect(ran.out).toMatch(/^locked: node worker-3 \(audit item [0-9A-Z]{26}, by \S+\)\n/);
    for (const line of [
      'until they expire',
      'kubectl delete node worker-3',
      'countersign cert revoke --node worker-3',
      'docs/lock.md',
    ])
      expect(ran.out).toContain(line);
    expect(ran.err).toBe(
      `${announced(folder.path)}countersign: no machine was locked: no machine is on record under this node name, or it is already locked\n`,
    );
  });

  test('lock: a node on record: node name and machine are locked, by either name', async () => {
    for (const [index, named] of ['worker-1', machine('a')].entries()) {
      const folder = await newFolder();
      await used(folder, recordOf('worker-1', 'a'));
      const ran = await run(['lock', named, '--data', folder.path, ...why, '-o', 'json']);
      expect([ran.code, ran.err]).toEqual([0, announced(folder.path)]);
      const id = (await folder.register.listLocks())[0]?.id;
      expect(JSON.parse(ran.out), String(index)).toEqual({
        id,
        node: 'worker-1',
        identity: machine('a'),
        at,
        by,
        reason,
      });
      expect(await folder.store.findLock('node#worker-1')).toEqual(await folder.store.findLock(`id#${machine('a')}`));
      expect(await audited(folder)).toMatchObject([{ action: 'lock', subject: machine('a'), nodeName: 'worker-1' }]);
      const again = await run(['lock', 'worker-1', '--data', folder.path, ...why]);
      expect(again).toEqual({
        code: 6,
        out: '',
        err: `${announced(folder.path)}countersign: node worker-1 is already locked by ${by}: ${reason}\n`,
      });
    }
  });

  test('lock: the name of a retired machine belongs to another one, and stays free', async () => {
    const folder = await newFolder();
    const old = recordOf('worker-1', 'a');
    await used(folder, old);
    const verdict = { ...recordOf('worker-1', 'b') };
    const { store } = folder;
    const claim = {
      verdict: {
        uid: 'takes-over',
        requestDigest: 'ab'.repeat(32),
        signerName: 's',
        decision: 'approve',
        annotations: {},
        identity: verdict.identity,
        mode: 'enforce',
        decidedAt: now,
        expiresAt: now + hour,
      },
      once: [],
      identity: { kind: 'create', record: verdict },
      newAddresses: [],
      retire: old,
      audit: [],
    } as const;
    expect(await store.claim(claim, now)).toEqual({ kind: 'written' });
    expect((await run(['lock', machine('a'), '--data', folder.path, ...why])).code).toBe(0);
    expect(await store.findLock('node#worker-1')).toBeUndefined();
    expect(await store.findLock(`id#${machine('a')}`)).toBeDefined();
  });

  test('lock: a machine registered after its node name was locked gets a separate lock', async () => {
    const folder = await newFolder();
    await run(['lock', 'worker-1', '--data', folder.path, ...why]);
    await used(folder, recordOf('worker-1', 'a'));
    const { code, out } = await run(['lock', 'worker-1', '--data', folder.path, ...why, '-o', 'json']);
    expect([code, JSON.parse(out)]).toMatchObject([0, { identity: machine('a') }]);
    expect(JSON.parse(out)).not.toHaveProperty('node');
    expect(await folder.register.listLocks()).toHaveLength(2);
    const ended = await run(['unlock', 'worker-1', '--data', folder.path, ...why]);
    expect(ended.err).toBe(
      `${announced(folder.path)}countersign: machine ${machine('a')} is still locked, by another lock\n`,
    );
  });

  test.each([
    ['system:node:worker-1', 'A node name has'],
    ['Worker-1', 'A node name has'],
    ['', 'A node name has'],
    ['aws#', 'A machine looks like'],
    ['#x', 'A machine looks like'],
  ])('lock: %j cannot match any request', async (named, message) => {
    const folder = await newFolder();
    const ran = await run(['lock', named, '--data', folder.path, ...why]);
    expect([ran.code, ran.out]).toEqual([2, '']);
    expect(ran.err).toContain(message);
    expect(await folder.register.listLocks()).toEqual([]);
  });

  test('lock: without a reason nothing is locked', async () => {
    const folder = await newFolder();
    expect((await run(['lock', 'worker-1', '--data', folder.path])).code).toBe(2);
    expect((await run(['unlock', 'worker-1', '--data', folder.path])).code).toBe(2);
    expect(await audited(folder)).toEqual([]);
  });

  test('lock: another operator locks first: the command reads again and prints who it was', async () => {
    const folder = await newFolder();
    const world = {
      async openRegister(place: Parameters<ReturnType<typeof processIo>['openRegister']>[0]): Promise<OpenRegister> {
        const open = await processIo().openRegister(place);
        return {
          ...open,
          register: {
            ...open.register,
            async lock(lock, audit) {
              const first = { ...lock, id: `${lock.id}0`, by: 'eve' };
              await open.register.lock(first, { ...audit, id: first.id, by: 'eve' });
              return open.register.lock(lock, audit);
            },
          },
        };
      },
    };
    const ran = await run(['lock', 'worker-1', '--data', folder.path, ...why], { world });
    const message = `countersign: node worker-1 is already locked by eve: ${reason}\n`;
    expect([ran.code, ran.err]).toEqual([6, `${announced(folder.path)}${message}`]);
  });
});

describe('unlock and locks', () => {
  test('lock: unlock ends the whole lock, by node name or by machine', async () => {
    for (const named of ['worker-1', machine('a')]) {
      const folder = await newFolder();
      await used(folder, recordOf('worker-1', 'a'));
      await run(['lock', 'worker-1', '--data', folder.path, ...why]);
      const later = { world: { now: () => now + 1 } };
      const ran = await run(['unlock', named, '--data', folder.path, '--reason', 'found again'], later);
      expect([ran.code, ran.err]).toEqual([0, announced(folder.path)]);
      expect(ran.out).toMatch(/^unlocked: node worker-1, machine aws#\S+ \(audit item [0-9A-Z]{26}, by \S+\)\n$/);
      expect(await folder.register.listLocks()).toEqual([]);
      expect((await audited(folder)).map(({ action, reason: why }) => [action, why])).toEqual([
        ['lock', reason],
        ['unlock', 'found again'],
      ]);
      expect(await run(['unlock', named, '--data', folder.path, ...why])).toMatchObject({ code: 4, out: '' });
    }
  });

  test('lock: locks lists them, oldest first, and escapes names', async () => {
    const folder = await newFolder();
    const empty = await run(['locks', '--data', folder.path]);
    expect([empty.code, empty.out]).toEqual([0, 'NODE  MACHINE  KEY  SINCE  BY  REASON\n']);
    await run(['lock', 'worker-2', '--data', folder.path, ...why], { world: { now: () => now + 1 } });
    const odd = { id: '0', nodeName: '\u001b[31mx', at: now, by: 'eve\n', reason: '\u202e' };
    await folder.register.lock(odd, { ...odd, action: 'lock', subject: 'x' });
    const { out } = await run(['locks', '--data', folder.path]);
    const lines = out.split('\n');
    expect(lines).toHaveLength(4);
    expect(lines[1]).toContain('\\u{1b}[31mx');
    expect(lines[2]).toMatch(/^worker-2/);
    const json = JSON.parse((await run(['locks', '--data', folder.path, '-o', 'json'])).out) as object[];
    expect(json[1]).toMatchObject({ node: 'worker-2', at, by, reason });
    expect((await run(['locks', '--data', folder.path, '-o', 'yaml'])).out).toContain('"node": "worker-2"\n');
  });

  test('lock: tofu show lists it', async () => {
    const folder = await newFolder();
    await used(folder, recordOf('worker-1', 'a'));
    await run(['lock', 'worker-1', '--data', folder.path, ...why]);
    expect((await run(['tofu', 'show', '--node', 'worker-1', '--data', folder.path])).out).toMatch(
      /lock +aws#\S+ +worker-1 +\S+ +stolen, ticket 4711\n$/,
    );
  });
});
