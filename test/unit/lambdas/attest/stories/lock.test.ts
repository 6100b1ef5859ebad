/** A locked node or machine gets nothing, of no signer, at once, and all of it again when the lock is ended. */
import { afterEach, describe, expect, test } from 'vitest';
import type { Lock, LockReader } from '../../../../../core/ports/locks.ts';
import { sha256 } from '../../../../../core/encoding/digest.ts';
import { newKey } from '../../../../harness/x509/requests.ts';
import { approvedOf, createWorld, requestOf, said, servingSigner, signed } from '../world.ts';
import type { Asked, World, WorldOptions } from '../world.ts';

const open: World[] = [];
async function start(options?: WorldOptions): Promise<World> {
  const world = await createWorld(options);
  world.platform.machines.set('m1', { nodeNames: ['node-1', 'node-2'], addresses: ['10.0.0.1'], startedAt: 1 });
  open.push(world);
  return world;
}
afterEach(() => {
  for (const world of open.splice(0)) world.close();
});

const m1 = { machine: 'm1' };
const user = 'kubernetes.io/kube-apiserver-client';
const node1 = { nodeName: 'node-1' };
const machine1 = { identity: 'null#m1' };
let made = 0;

type About = Pick<Lock, 'nodeName' | 'identity' | 'spkiSha256'>;

function lockOf(world: World, about: About) {
  made += 1;
  return { ...about, id: `lock-${made}`, at: world.clock.now, by: 'operator', reason: 'stolen: case 4711' };
}

async function lock(world: World, about: About) {
  const lock = lockOf(world, about);
  const audit = { ...lock, action: 'lock', subject: about.identity ?? about.nodeName ?? '' } as const;
  expect(await world.register.lock(lock, audit)).toEqual({ kind: 'written' });
  return {
    end: async () => {
      const item = { ...audit, id: `${lock.id}-end`, action: 'unlock' } as const;
      expect(await world.register.unlock(lock, item)).toEqual({ kind: 'written' });
    },
  };
}

/** What attest says of a request, and sign of the same once it is approved. */
async function both(world: World, object: ReturnType<typeof requestOf>): Promise<readonly string[]> {
  return [said(await world.attest(object)), signed(await world.issue(approvedOf(object)))];
}

const pod = (node: string): Partial<Asked> => ({
  by: {
    username: 'system:serviceaccount:shop:web',
    groups: ['system:serviceaccounts', 'system:authenticated'],
    extra: { 'authentication.kubernetes.io/node-name': [node] },
  } as Asked['by'] & object,
  signerName: user,
  spec: { subject: { CN: 'web' } },
});

const kinds: readonly (readonly [string, () => Asked])[] = [
  ['a client certificate with evidence', () => ({ evidence: m1 })],
  ['its renewal by the node itself', () => ({ evidence: m1, by: 'node' })],
  [
    'a serving certificate by the record of its machine',
    () => ({ signerName: servingSigner, by: 'node', sans: { ip: ['10.0.0.1'] } }),
  ],
  [
    'any other signer, asked by the node',
    () => ({
      signerName: user,
      by: { username: 'system:node:node-1', groups: ['system:nodes', 'system:authenticated'] },
      spec: { subject: { CN: 'metrics' } },
    }),
  ],
  ['any other signer, asked by a pod on the node', () => pod('node-1')],
];

describe('lock: a node name', () => {
  test.each(kinds)('lock: %s is refused by attest and sign, and given after the lock has ended', async (_, asked) => {
    const world = await start();
    expect(said(await world.attest(requestOf({ evidence: m1, key: newKey('P-256') })))).toBe('approve');
    const key = newKey('P-256');
    const ended = await lock(world, node1);
    expect(await both(world, requestOf({ ...asked(), key }))).toEqual(['Locked', 'Locked']);
    await ended.end();
    const object = requestOf({ ...asked(), key, ...(asked().evidence === undefined ? {} : { by: 'node' }) });
    expect(await both(world, object)).toEqual(['approve', 'issued']);
  });

  test('lock: it holds for a node that has no record yet, and registers nothing', async () => {
    const world = await start();
    await lock(world, node1);
    expect(await both(world, requestOf({ evidence: m1 }))).toEqual(['Locked', 'Locked']);
    expect(await world.store.findNode('node-1')).toBeUndefined();
  });

  test('lock: it holds where nothing is attested, and where all is only audited', async () => {
    const audited = await start({ attestation: { mode: 'audit' } });
    await lock(audited, node1);
    expect(await both(audited, requestOf())).toEqual(['Locked', 'Locked']);
    // No attestation at all: the profile of a cluster that knows none.
    const world = await start();
    await lock(world, node1);
    expect(signed(await world.issueBlindly(approvedOf(requestOf({ ...pod('node-1') }))))).toBe('Locked');
  });

  test('lock: locked between attest and sign, nothing is signed', async () => {
    const world = await start();
    const object = requestOf({ evidence: m1 });
    expect(said(await world.attest(object))).toBe('approve');
    await lock(world, node1);
    expect(signed(await world.issue(approvedOf(object)))).toBe('Locked');
    expect(await world.ledger.find(object.metadata.uid)).toBeUndefined();
  });

  test('lock: a certificate that was issued before is not given out again, and is after the lock has ended', async () => {
    const world = await start();
    const object = requestOf({ evidence: m1 });
    expect(await both(world, object)).toEqual(['approve', 'issued']);
    const ended = await lock(world, node1);
    expect(await both(world, object)).toEqual(['Locked', 'Locked']);
    await ended.end();
    expect(await world.issue(approvedOf(object))).toMatchObject({ kind: 'issued', repeat: true });
  });

  test('lock: the message tells neither who locked it nor why', async () => {
    const world = await start();
    await lock(world, node1);
    const outcome = JSON.stringify(await world.attest(requestOf({ evidence: m1 })));
    expect(outcome).toContain('node \\"node-1\\" is locked by an operator');
    expect(outcome).not.toContain('4711');
    expect(outcome).not.toContain('by operator:');
  });

  test('lock: other nodes, and users who are no node, get what they asked for; for users the key alone is read', async () => {
    const world = await start();
    await lock(world, { nodeName: 'node-2' });
    expect(await both(world, requestOf({ evidence: m1 }))).toEqual(['approve', 'issued']);
    expect(await both(world, requestOf(pod('node-3')))).toEqual(['approve', 'issued']);
    const read: string[] = [];
    const counted = world.change({
      store: { ...world.store, findLock: (subject) => (read.push(subject), world.store.findLock(subject)) },
    });
    const alice = requestOf({
      signerName: user,
      by: { username: 'alice', groups: ['system:authenticated'] },
      spec: { subject: { CN: 'alice' } },
    });
    expect(await both(counted, alice)).toEqual(['approve', 'issued']);
    expect(read).toEqual([expect.stringMatching(/^key#[0-9a-f]{64}$/), read[0]]);
  });

  test('lock: locks that cannot be read leave the request unanswered', async () => {
    const world = await start();
    const broken = world.change({ store: { ...world.store, findLock: () => Promise.reject(new Error('down')) } });
    const object = requestOf({ evidence: m1 });
    await expect(broken.attest(object)).rejects.toThrow('down');
    await expect(broken.issue(approvedOf(object))).rejects.toThrow('down');
    expect(await world.ledger.find(object.metadata.uid)).toBeUndefined();
  });

  test('lock: a signature that was under way may end; the next delivery is refused', async () => {
    const world = await start();
    const object = requestOf({ evidence: m1 });
    await world.attest(object);
    let locked = 0;
    const ledger = {
      ...world.ledger,
      async open(...asked: Parameters<typeof world.ledger.open>) {
        locked += 1;
        await lock(world, node1);
        return world.ledger.open(...asked);
      },
    } as typeof world.ledger;
    expect(signed(await world.change({ ledger }).issue(approvedOf(object)))).toBe('issued');
    expect(locked).toBe(1);
    expect(signed(await world.issue(approvedOf(object)))).toBe('Locked');
  });
});

describe('lock: a machine', () => {
  test('lock: it gets no certificate under any name, and no record', async () => {
    const world = await start();
    await lock(world, machine1);
    for (const node of ['node-1', 'node-2']) {
      const asked = requestOf({ evidence: m1, node });
      expect(said(await world.attest(asked))).toBe('Locked');
      expect(signed(await world.issue(approvedOf(asked)))).toBe('Locked');
    }
    expect(await world.store.findIdentity('null#m1')).toBeUndefined();
  });

  test('lock: between attest and sign; and what was issued before is not given out again', async () => {
    const world = await start();
    const [before, between] = [requestOf({ evidence: m1 }), requestOf({ evidence: m1, by: 'node' })];
    expect(await both(world, before)).toEqual(['approve', 'issued']);
    expect(said(await world.attest(between))).toBe('approve');
    const ended = await lock(world, machine1);
    expect(signed(await world.issue(approvedOf(between)))).toBe('Locked');
    expect(signed(await world.issue(approvedOf(before)))).toBe('Locked');
    expect(await world.ledger.find(between.metadata.uid)).toBeUndefined();
    await ended.end();
    expect(signed(await world.issue(approvedOf(between)))).toBe('issued');
  });

  test('lock: a serving certificate that rests on its record is not signed', async () => {
    const world = await start();
    expect(said(await world.attest(requestOf({ evidence: m1 })))).toBe('approve');
    await lock(world, machine1);
    const serving = requestOf({ signerName: servingSigner, by: 'node', sans: { ip: ['10.0.0.1'] } });
    await world.attest(serving);
    expect(signed(await world.issue(approvedOf(serving)))).toBe('Locked');
  });
});

describe('lock: a key', () => {
  const keyOf = (key: ReturnType<typeof newKey>) => ({ spkiSha256: sha256(key.spki).toString('hex') });

  test.each(kinds)('lock: for it %s is refused by attest and sign, and given for another key', async (_, asked) => {
    const world = await start();
    const first = requestOf({ evidence: m1, key: newKey('P-256') });
    expect(await both(world, first)).toEqual(['approve', 'issued']);
    const [revoked, other] = [newKey('P-256'), newKey('P-256')];
    const ended = await lock(world, keyOf(revoked));
    const by = asked().evidence === undefined ? {} : { by: 'node' as const };
    expect(await both(world, requestOf({ ...asked(), ...by, key: revoked }))).toEqual(['Locked', 'Locked']);
    expect(await both(world, requestOf({ ...asked(), ...by, key: other }))).toEqual(['approve', 'issued']);
    await ended.end();
    expect(said(await world.attest(requestOf({ ...asked(), ...by, key: revoked })))).toBe('approve');
  });

  test('lock: a user asks again with it; what was issued before is not given out again', async () => {
    const world = await start();
    const key = newKey('P-256');
    const alice = (of: ReturnType<typeof newKey>) =>
      requestOf({
        signerName: user,
        by: { username: 'alice', groups: ['system:authenticated'] },
        spec: { subject: { CN: 'alice' } },
        key: of,
      });
    const before = alice(key);
    expect(await both(world, before)).toEqual(['approve', 'issued']);
    await lock(world, keyOf(key));
    expect(await both(world, before)).toEqual(['Locked', 'Locked']);
    expect(await both(world, alice(key))).toEqual(['Locked', 'Locked']);
    expect(await both(world, alice(newKey('P-256')))).toEqual(['approve', 'issued']);
  });
});

test('lock: spec.extra that that is no map of lists is invalid', async () => {
  const { decodeRequestObject } = await import('../../../../../core/kubernetes/certificate-signing-request.ts');
  const name = 'authentication.kubernetes.io/node-name';
  const decoded = (extra: unknown) => {
    const object = requestOf();
    return decodeRequestObject({ ...object, spec: { ...(object['spec'] as object), extra } });
  };
  for (const fine of [undefined, null, {}, { other: ['x'] }, { [name]: [] }]) {
    const read = decoded(fine);
    expect(read.ok && read.value.requesterNodes).toEqual([]);
  }
  const one = decoded({ [name]: ['n1'] });
  expect(one.ok && one.value.requesterNodes).toEqual(['n1']);
  for (const wrong of ['x', [], 7, { [name]: 'n1' }, { [name]: [7] }])
    expect(decoded(wrong)).toMatchObject({ ok: false });
});

test('lock: a lock of nothing is a mistake and throws', async () => {
  const world = await start();
  const nothing = lockOf(world, {});
  await expect(world.register.lock(nothing, { ...nothing, action: 'lock', subject: 'x' })).rejects.toThrow(TypeError);
  expect(await world.register.listLocks()).toEqual([]);
  const reader: LockReader = world.store;
  expect(await reader.findLock('node#node-1')).toBeUndefined();
});

test('lock: a name that no Node can have is refused by the rules, and no lock of it is read', async () => {
  const names = ['a'.repeat(3_000), '#'.repeat(700), 'Node-1', ''];
  const read: string[] = [];
  const world = await start();
  const counted = world.change({
    store: { ...world.store, findLock: (subject) => (read.push(subject), world.store.findLock(subject)) },
  });
  for (const node of names) expect(await both(counted, requestOf({ node }))).toEqual(['NameReserved', 'NameReserved']);
  expect(read.filter((subject) => !subject.startsWith('key#'))).toEqual([]);
});

test('lock: a requester that names more than eight nodes is refused, and nothing is read for it', async () => {
  const world = await start();
  const unread = world.change({ store: { ...world.store, findLock: () => Promise.reject(new Error('read')) } });
  const asked = pod('node-1');
  const by = asked.by as { readonly username: string; readonly groups: readonly string[] };
  const nodes = Array.from({ length: 9 }, (_, index) => `n${index}`);
  const many = { ...by, extra: { 'authentication.kubernetes.io/node-name': nodes } };
  expect(await both(unread, requestOf({ ...asked, by: many }))).toEqual(['RequesterNotAllowed', 'RequesterNotAllowed']);
});
