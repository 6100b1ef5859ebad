/** core/attest.ts and sign's look at its verdict, over the real embedded stores. */
import { afterEach, describe, expect, test } from 'vitest';
import { bindingDigest } from '../../../../../core/attestation/evidence/binding-digest.ts';
import { LaterError } from '../../../../../core/ports/errors.ts';
import { newKey } from '../../../../harness/x509/requests.ts';
import { approvedOf, clientSigner, createWorld, forget, requestOf, said, servingSigner, signed } from '../world.ts';
import type { Asked, World, WorldOptions } from '../world.ts';
import { ranges } from '../../../../harness/attestation/address-ranges.ts';

const hour = 3_600_000;
const open: World[] = [];
async function start(options?: WorldOptions): Promise<World> {
  const world = await createWorld(options);
  world.platform.machines.set('m1', { nodeNames: ['node-1'], addresses: ['10.0.0.1'], startedAt: 1 });
  world.platform.machines.set('m2', { nodeNames: ['node-2', 'free-*'], addresses: ['10.0.0.2'], startedAt: 1 });
  open.push(world);
  return world;
}
afterEach(() => {
  for (const world of open.splice(0)) world.close();
});
const m1 = { machine: 'm1' };
const m2 = { machine: 'm2' };
const minute = 60_000;
const oldKey = newKey('P-256');

/** Stopped and started: EC2 tells when. */
function restart({ platform, clock }: World): void {
  const machine = platform.machines.get('m1')!;
  platform.machines.set('m1', { ...machine, startedAt: clock.now });
}

async function decide(world: World, asked: Asked): Promise<string> {
  return judge(world, requestOf(asked));
}

/** `SecondLook` and `Limited` are thrown: it is asked again later. */
async function judge(world: World, object: object): Promise<string> {
  try {
    return said(await world.attest(object));
  } catch (error) {
    if (error instanceof LaterError) return error.why;
    throw error;
  }
}

describe('first use, row by row', () => {
  test('a machine becomes its node, and its certificate is issued', async () => {
    const world = await start();
    const key = newKey('P-256');
    const object = requestOf({ evidence: m1, key });
    expect(await world.attest(object)).toEqual({
      kind: 'approve',
      identity: 'null#m1',
      annotations: { 'countersign.dev/identity': 'null#m1', 'countersign.dev/evidence': 'null/v1' },
      repeat: false,
    });
    expect(await world.store.findNode('node-1')).toMatchObject({
      identity: 'null#m1',
      state: 'active',
      providerId: 'null:///m1',
      renewals: 0,
      uses: 1,
    });
    expect(signed(await world.issue(approvedOf(object)))).toBe('issued');
    expect((await world.ledger.find(object.metadata.uid))?.identity).toBe('null#m1');
  });
  test('the same object again: the same verdict, no platform is asked, nothing is written', async () => {
    const world = await start();
    const object = requestOf({ evidence: m1 });
    await world.attest(object);
    const before = await world.store.findNode('node-1');
    const asked = world.platform.asked();
    expect(await world.attest(object)).toMatchObject({ kind: 'approve', repeat: true });
    expect(world.platform.asked()).toBe(asked);
    expect(await world.store.findNode('node-1')).toEqual(before);
  });
  test('the same machine, node and key in another object: a repeat', async () => {
    const world = await start();
    const key = newKey('P-256');
    expect(await decide(world, { evidence: m1, key })).toBe('approve');
    expect(await decide(world, { evidence: m1, key })).toBe('approve');
    expect(await world.store.findNode('node-1')).toMatchObject({ uses: 2, renewals: 0, rev: 2 });
  });
  test('a new key by the node itself: a renewal', async () => {
    const world = await start();
    await decide(world, { evidence: m1 });
    expect(await decide(world, { evidence: m1, by: 'node' })).toBe('approve');
    expect(await world.store.findNode('node-1')).toMatchObject({ renewals: 1 });
  });
  test('a new key by a bootstrap user: refused, and so is a reinstall until the reset', async () => {
    const world = await start();
    await decide(world, { evidence: m1 });
    expect(await decide(world, { evidence: m1 })).toBe('TofuReuse');
    const record = await world.store.findNode('node-1');
    if (record === undefined) throw new Error('no record');
    const audit = {
      id: '01',
      at: 1,
      by: 'me',
      action: 'reset',
      subject: record.identity,
      reason: 'reinstalled',
    } as const;
    expect(await world.register.reset(record, audit)).toEqual({ kind: 'written' });
    expect(await decide(world, { evidence: m1 })).toBe('approve');
  });
  test('finding 8: a restart counts where it is allowed, and only a later one, looked at twice', async () => {
    const world = await start({ allowRestart: true });
    await decide(world, { evidence: m1 });
    expect(await decide(world, { evidence: m1 })).toBe('TofuReuse');
    restart(world);
    const object = requestOf({ evidence: m1 });
    expect(await judge(world, object)).toBe('SecondLook');
    const asked = world.platform.asked();
    world.clock.now += 2 * minute - 1;
    expect(await judge(world, object)).toBe('SecondLook');
    expect(world.platform.asked()).toBe(asked);
    world.clock.now += 1;
    expect(await judge(world, object)).toBe('approve');
    expect(await world.store.findNode('node-1')).toMatchObject({ renewals: 1, rev: 3 });
    // Once: the start is on record now.
    expect(await decide(world, { evidence: m1 })).toBe('TofuReuse');
  });
  test('finding 8: another request of the same key is the second look as well', async () => {
    const world = await start({ allowRestart: true });
    await decide(world, { evidence: m1 });
    restart(world);
    const key = newKey('P-256');
    expect(await decide(world, { evidence: m1, key })).toBe('SecondLook');
    world.clock.now += 4 * minute;
    expect(await decide(world, { evidence: m1, key })).toBe('approve');
  });
  test('finding 8: minutes after the start it is over', async () => {
    const world = await start({ allowRestart: true });
    await decide(world, { evidence: m1 });
    restart(world);
    world.clock.now += 15 * minute + 1;
    expect(await decide(world, { evidence: m1 })).toBe('TofuReuse');
  });
  test.each<[string, Asked]>([
    ['a serving certificate of a stock kubelet', { by: 'node', signerName: servingSigner }],
    ['a serving certificate with a proof', { by: 'node', signerName: servingSigner, evidence: m1 }],
    ['a renewal', { by: 'node', evidence: m1 }],
    ['the same key again', { evidence: m1, key: oldKey }],
  ])('finding 8: %s since the start shows that the old key is there: no other is taken', async (_, use) => {
    const world = await start({ allowRestart: true });
    await decide(world, { evidence: m1, key: oldKey });
    restart(world);
    const object = requestOf({ evidence: m1 });
    expect(await judge(world, object)).toBe('SecondLook');
    const used = use.signerName === servingSigner ? { ...use, sans: { dns: ['node-1'] } } : use;
    expect(await decide(world, used)).toBe('approve');
    world.clock.now += 3 * minute;
    expect(await judge(world, object)).toBe('TofuReuse');
  });
  test('finding 8: two keys after one start: neither, until an operator or another start', async () => {
    const world = await start({ allowRestart: true });
    await decide(world, { evidence: m1 });
    restart(world);
    const [one, two] = [requestOf({ evidence: m1 }), requestOf({ evidence: m1 })];
    expect(await judge(world, one)).toBe('SecondLook');
    expect(await judge(world, two)).toBe('TofuReuse');
    world.clock.now += 3 * minute;
    expect(await judge(world, one)).toBe('TofuReuse');
    restart(world);
    const three = requestOf({ evidence: m1 });
    expect(await judge(world, three)).toBe('SecondLook');
    world.clock.now += 3 * minute;
    expect(await judge(world, three)).toBe('approve');
  });
  test('finding 8: two keys at once after one start: at most one is ever taken', async () => {
    const world = await start({ allowRestart: true });
    await decide(world, { evidence: m1 });
    restart(world);
    const both = [requestOf({ evidence: m1 }), requestOf({ evidence: m1 })];
    const first = await Promise.all(both.map((object) => judge(world, object)));
    expect(first.toSorted()).toEqual(['SecondLook', 'TofuReuse']);
    world.clock.now += 3 * minute;
    expect(await Promise.all(both.map((object) => judge(world, object)))).toEqual(['TofuReuse', 'TofuReuse']);
  });
  test('another node name for a known machine', async () => {
    const world = await start();
    expect(await decide(world, { evidence: m2, node: 'node-2' })).toBe('approve');
    expect(await decide(world, { evidence: m2, node: 'free-1' })).toBe('TofuNodeMismatch');
  });
  test('another machine for a known name, while the first one lives', async () => {
    const world = await start();
    await decide(world, { evidence: m2, node: 'free-1' });
    world.platform.machines.set('m3', { nodeNames: ['free-*'] });
    for (const state of [undefined, 'stopped', 'unknown'] as const) {
      world.platform.machines.set('m2', { nodeNames: ['free-*'], ...(state === undefined ? {} : { state }) });
      expect(await decide(world, { evidence: { machine: 'm3' }, node: 'free-1' }), state).toBe('TofuNodeTaken');
    }
  });
  test.each(['gone', 'unknown'] as const)(
    'finding 14: another machine once the first is %s: the old record retires, of an unknown one at the second look',
    async (state) => {
      const world = await start();
      await decide(world, { evidence: m2, node: 'free-1' });
      world.platform.machines.set('m3', { nodeNames: ['free-*'] });
      world.platform.machines.set('m2', { nodeNames: ['free-*'], state });
      world.clock.now += hour + 1;
      const object = requestOf({ evidence: { machine: 'm3' }, node: 'free-1' });
      if (state === 'unknown') {
        expect(await judge(world, object)).toBe('SecondLook');
        const asked = world.platform.asked();
        world.clock.now += 2 * minute - 1;
        expect(await judge(world, object)).toBe('SecondLook');
        expect(world.platform.asked()).toBe(asked);
        world.clock.now += 1;
      }
      expect(await judge(world, object)).toBe('approve');
      expect((await world.store.findIdentity('null#m2'))?.state).toBe('retired');
      expect((await world.store.findNode('free-1'))?.identity).toBe('null#m3');
      const audit: unknown[] = [];
      for await (const item of world.register.listAudit()) audit.push(item);
      expect(audit).toMatchObject([{ action: 'retire', by: 'attest', subject: 'null#m2', nodeName: 'free-1' }]);
      // It may come back, and gets nothing.
      world.platform.machines.set('m2', { nodeNames: ['free-*'] });
      expect(await decide(world, { evidence: m2, node: 'free-1' })).toBe('Revoked');
    },
  );
  test('finding 14: one wrong answer of the platform hands over nothing: what is seen again is not gone', async () => {
    const world = await start();
    await decide(world, { evidence: m2, node: 'free-1' });
    world.platform.machines.set('m3', { nodeNames: ['free-*'] });
    world.clock.now += hour + 1;
    const running = world.platform.machines.get('m2')!;
    world.platform.machines.delete('m2');
    expect(await decide(world, { evidence: { machine: 'm3' }, node: 'free-1' })).toBe('SecondLook');
    world.platform.machines.set('m2', running);
    world.clock.now += 3 * minute;
    expect(await decide(world, { evidence: { machine: 'm3' }, node: 'free-1' })).toBe('TofuNodeTaken');
    expect(await world.store.findNode('free-1')).not.toHaveProperty('unknownSince');
    // Wrong again: it begins anew.
    world.platform.machines.delete('m2');
    expect(await decide(world, { evidence: { machine: 'm3' }, node: 'free-1' })).toBe('SecondLook');
  });
  test('finding 14: a use of the machine erases the first look at it', async () => {
    const world = await start();
    await decide(world, { evidence: m2, node: 'free-1', key: oldKey });
    world.platform.machines.set('m3', { nodeNames: ['free-*'] });
    world.clock.now += hour + 1;
    const running = world.platform.machines.get('m2')!;
    world.platform.machines.delete('m2');
    expect(await decide(world, { evidence: { machine: 'm3' }, node: 'free-1' })).toBe('SecondLook');
    world.platform.machines.set('m2', running);
    expect(
      await decide(world, { by: 'node', node: 'free-1', signerName: servingSigner, sans: { dns: ['free-1'] } }),
    ).toBe('approve');
    world.platform.machines.delete('m2');
    world.clock.now += 3 * minute;
    expect(await decide(world, { evidence: { machine: 'm3' }, node: 'free-1' })).toBe('TofuNodeTaken');
  });
  test('finding 14: of two machines that want the name of one that is gone, one gets it', async () => {
    const world = await start();
    await decide(world, { evidence: m2, node: 'free-1' });
    for (const id of ['m3', 'm4']) world.platform.machines.set(id, { nodeNames: ['free-*'] });
    world.platform.machines.delete('m2');
    world.clock.now += hour + 1;
    const both = ['m3', 'm4'].map((machine) => requestOf({ evidence: { machine }, node: 'free-1' }));
    expect(await Promise.all(both.map((object) => judge(world, object)))).toEqual(['SecondLook', 'SecondLook']);
    world.clock.now += 2 * minute;
    const answers = await Promise.all(both.map((object) => judge(world, object)));
    expect(answers.toSorted()).toEqual(['TofuNodeTaken', 'approve']);
  });
  test('finding 14: what waits for a second look blocks no request where proofs are only audited', async () => {
    const world = await start({ allowRestart: true, attestation: { mode: 'audit' } });
    await decide(world, { evidence: m1 });
    restart(world);
    expect(await decide(world, { evidence: m1 })).toBe('audit unjudged');
  });
  test('a platform that cannot be asked is no answer: nothing is concluded', async () => {
    const world = await start();
    await decide(world, { evidence: m2, node: 'free-1' });
    world.platform.machines.set('m3', { nodeNames: ['free-*'] });
    world.platform.machines.set('m2', { nodeNames: ['free-*'], down: new Error('throttled') });
    const object = requestOf({ evidence: { machine: 'm3' }, node: 'free-1' });
    await expect(world.attest(object)).rejects.toThrow('throttled');
    expect(await world.store.findVerdict(object.metadata.uid, world.clock.now)).toBeUndefined();
    world.platform.machines.set('m2', { nodeNames: ['free-*'], state: 'gone' });
    expect(said(await world.attest(object))).toBe('approve');
  });
  test('a record reset after the verdict: nothing is signed on it', async () => {
    const world = await start();
    const object = requestOf({ evidence: m1 });
    await world.attest(object);
    const record = await world.store.findNode('node-1');
    if (record === undefined) throw new Error('no record');
    const audit = { id: '01', at: 1, by: 'me', action: 'reset', subject: record.identity, reason: 'x' } as const;
    await world.register.reset(record, audit);
    expect(signed(await world.issue(approvedOf(object)))).toBe('Revoked');
  });
  test('an adopted node proves itself with its next renewal; a bootstrap token cannot take its place', async () => {
    const world = await start();
    const adopted = {
      identity: 'null#m1',
      nodeName: 'node-1',
      state: 'active',
      previousSpkis: [],
      providerId: 'null:///m1',
      addresses: [],
      firstSeen: 1,
      lastSeen: 1,
      renewals: 0,
      uses: 0,
      rev: 1,
    } as const;
    const audit = { id: '01', at: 1, by: 'me', action: 'adopt', subject: 'null#m1', reason: 'brownfield' } as const;
    expect(await world.register.adopt(adopted, audit)).toEqual({ kind: 'written' });
    expect(await decide(world, { evidence: m1 })).toBe('TofuReuse');
    expect(await decide(world, { evidence: m1, by: 'node' })).toBe('approve');
    expect(await world.store.findNode('node-1')).toMatchObject({ renewals: 0, uses: 1 });
  });
});

describe('two at once', () => {
  test('two machines that both saw the name free: one gets it, the other is told who has it', async () => {
    const world = await start();
    world.platform.machines.set('m1', { nodeNames: ['free-1'] });
    const both = await Promise.all([
      decide(world, { evidence: m1, node: 'free-1' }),
      decide(world, { evidence: m2, node: 'free-1' }),
    ]);
    expect(both.sort()).toEqual(['TofuNodeTaken', 'approve']);
  });
  test('two keys of one machine: one is trusted', async () => {
    const world = await start();
    const both = await Promise.all([decide(world, { evidence: m1 }), decide(world, { evidence: m1 })]);
    expect(both.sort()).toEqual(['TofuReuse', 'approve']);
  });
  test('one object twice: both are told the same, and one claim is made', async () => {
    const world = await start();
    const object = requestOf({ evidence: { ...m1, proof: 'p1' } });
    const both = await Promise.all([world.attest(object), world.attest(object)]);
    expect(both.map(said)).toEqual(['approve', 'approve']);
    expect(await world.store.findNode('node-1')).toMatchObject({ uses: 1, rev: 1 });
  });
});

test('a verdict on a stock kubelet’s request names its machine, and no evidence', async () => {
  const world = await start();
  await decide(world, { evidence: m1 });
  const outcome = await world.attest(requestOf({ by: 'node', signerName: servingSigner, sans: { dns: ['node-1'] } }));
  expect(outcome).toMatchObject({ kind: 'approve' });
  expect(Object.entries('annotations' in outcome ? outcome.annotations : {})).toEqual([
    ['countersign.dev/identity', 'null#m1'],
  ]);
});

describe('a proof', () => {
  test('is spent once: other bytes with the same proof are refused', async () => {
    const world = await start();
    const key = newKey('P-256');
    expect(await decide(world, { evidence: { ...m1, proof: 'p1' }, key })).toBe('approve');
    const other = { evidence: { ...m1, proof: 'p1' }, key, spec: { hash: 'sha384' } } as const;
    expect(await decide(world, other)).toBe('AttestationInvalid');
  });
  test('the same bytes under another UID are a repeat', async () => {
    const world = await start();
    const object = requestOf({ evidence: { ...m1, proof: 'p1' } });
    expect(said(await world.attest(object))).toBe('approve');
    expect(said(await world.attest({ ...object, metadata: { name: 'again', uid: 'other-uid' } }))).toBe('approve');
  });
  test.each([
    ['another key', { key: newKey('P-256') }],
    ['another node', { node: 'node-2' }],
    ['another signer', { signerName: servingSigner, by: 'node', sans: { ip: ['10.0.0.1'] } }],
  ] as const)('made for this request is nothing for one with %s', async (_, change) => {
    const world = await start();
    const key = newKey('P-256');
    const { audience } = world.cluster.attestation ?? { audience: '' };
    const binding = bindingDigest({
      audience,
      signerName: clientSigner,
      nodeName: 'node-1',
      nonce: '',
      spki: key.spki,
    });
    const evidence = { ...m1, binding };
    expect(await decide(world, { evidence, key, ...change })).toBe('AttestationInvalid');
    expect(await decide(world, { evidence, key })).toBe('approve');
  });
  test.each([{ audience: 'another/audience' }])('nor in a deployment with %o', async (settings) => {
    const [world, other] = [await start(), await start({ settings })];
    const key = newKey('P-256');
    const audience = world.cluster.attestation?.audience ?? '';
    const binding = bindingDigest({
      audience,
      signerName: clientSigner,
      nodeName: 'node-1',
      nonce: '',
      spki: key.spki,
    });
    expect(await decide(other, { evidence: { ...m1, binding }, key })).toBe('AttestationInvalid');
    expect(await decide(world, { evidence: { ...m1, binding }, key })).toBe('approve');
  });
});

describe('a verdict', () => {
  test('speaks about one request: the UID with anything else changed is refused by attest and by sign', async () => {
    const world = await start();
    const key = newKey('P-256');
    const uid = 'one-uid';
    expect(said(await world.attest(requestOf({ evidence: m1, key, uid })))).toBe('approve');
    const changes: readonly Asked[] = [
      { key: newKey('P-256') },
      { node: 'node-2', evidence: m2 },
      { by: 'node' },
      { usages: ['digital signature', 'key encipherment', 'client auth'] },
      { signerName: servingSigner, by: 'node', sans: { ip: ['10.0.0.1'] } },
    ];
    for (const change of changes) {
      const object = requestOf({ evidence: m1, key, uid, ...change });
      expect(said(await world.attest(object))).toBe('UidReused');
      expect(signed(await world.issue(approvedOf(object)))).toBe('UidReused');
    }
  });
  test('is kept 25 hours, however old the evidence grows, and then judged anew', async () => {
    const world = await start();
    const object = requestOf({ evidence: m1 });
    await world.attest(object);
    world.clock.now += 25 * hour - 1;
    expect(await world.attest(object)).toMatchObject({ kind: 'approve', repeat: true });
    world.clock.now += 1;
    expect(await world.attest(object)).toMatchObject({ kind: 'approve', repeat: false });
  });
  test('a denial is remembered too, and sign says the same', async () => {
    const world = await start();
    const object = requestOf({ evidence: { machine: 'unlisted' } });
    expect(said(await world.attest(object))).toBe('IdentityNotAllowed');
    world.platform.machines.set('unlisted', { nodeNames: ['node-1'] });
    expect(await world.attest(object)).toMatchObject({ kind: 'deny', repeat: true });
    expect(signed(await world.issue(approvedOf(object)))).toBe('IdentityNotAllowed');
  });
  test('is asked for by sign itself where the relay did not ask', async () => {
    const world = await start();
    expect(signed(await world.issue(requestOf({ evidence: m1, approved: true })))).toBe('issued');
    expect(signed(await world.issue(requestOf({ approved: true, node: 'node-9' })))).toBe('AttestationMissing');
  });
  test('sign believes only the stored verdict: an attest that answers and stores nothing leaves the request unanswered', async () => {
    const world = await start();
    const store = { ...world.store, claim: async () => ({ kind: 'written' }) as const };
    await expect(world.change({ store }).issue(requestOf({ evidence: m1, approved: true }))).rejects.toThrow(
      'no verdict',
    );
  });
  test('once issued, a certificate stays issued: a reset changes what comes after', async () => {
    const world = await start();
    const object = requestOf({ evidence: m1, approved: true });
    expect(signed(await world.issue(object))).toBe('issued');
    await forget(world, 'null#m1');
    expect(await world.issue(object)).toMatchObject({ kind: 'issued', repeat: true });
  });
});

describe('what a request must be', () => {
  test.each<readonly [string, Asked, string]>([
    ['no evidence', {}, 'AttestationMissing'],
    ['an unknown provider', { evidence: m1, version: 'gce/v1' }, 'AttestationVersion'],
    ['an unknown version', { evidence: m1, version: 'null/v3' }, 'AttestationVersion'],
    ['an invalid provider block', { evidence: m1, version: 'null' }, 'AttestationInvalid'],
    ['no provider ID extension', { evidence: m1, providerId: null }, 'AttestationInvalid'],
    ["another machine's provider ID", { evidence: m1, providerId: 'null:///m2' }, 'AttestationInvalid'],
    ['a node name that is not its own', { evidence: m1, node: 'node-2' }, 'IdentityNotAllowed'],
    ['a machine that does not run', { evidence: { machine: 'm9' } }, 'IdentityNotAllowed'],
    [
      'another node as requester',
      { evidence: m1, by: { username: 'system:node:node-2', groups: ['system:nodes'] } },
      'RequesterNotAllowed',
    ],
    [
      'the node by name without its group',
      { evidence: m1, by: { username: 'system:node:node-1', groups: [] } },
      'RequesterNotAllowed',
    ],
    [
      'a broken self-signature',
      {
        evidence: m1,
        spec: {
          subject: { O: ['system:nodes'], CN: 'system:node:node-1' },
          signature: (s) => Buffer.from(s).fill(1, 8, 12),
        },
      },
      'SignatureInvalid',
    ],
    ['what is no request', { request: 'hello' }, 'RequestMalformed'],
    ['names it may not have', { evidence: m1, sans: { dns: ['node-1'] } }, 'SignerValidationFailure'],
  ])('%s → %s', async (_, asked, code) => {
    const world = await start();
    const object = requestOf(asked);
    const outcome = await world.attest(object);
    expect(said(outcome)).toBe(code);
    expect(signed(await world.issue(approvedOf(object)))).toBe(code);
    expect(await world.store.findNode('node-1')).toBeUndefined();
  });
  test('the versions that are taken stand in the annotation', async () => {
    const world = await start();
    const outcome = await world.attest(requestOf({ evidence: m1, version: 'null/v9' }));
    expect(outcome).toMatchObject({
      annotations: { 'countersign.dev/supported-attestation-versions': 'null/v2,null/v1' },
    });
  });
  test('a machine that an operator takes off the list between look and claim', async () => {
    const world = await start({ listed: true });
    const about = { by: 'me', reason: 'new board' };
    const audit = (id: string, action: 'allow' | 'remove') => ({ id, at: 1, action, subject: 'null#m1', ...about });
    const entry = { name: 'null#m1', addresses: [], dnsNames: [], addedAt: 1, ...about };
    let removals = 0;
    const store = {
      ...world.store,
      claim: async (...given: Parameters<typeof world.store.claim>) => {
        removals += 1;
        if (removals === 1) await world.register.removeMachine('null#m1', audit('2', 'remove'));
        return world.store.claim(...given);
      },
    };
    await world.register.allowMachine(entry, audit('1', 'allow'));
    expect(await decide(world.change({ store }), { evidence: m1 })).toBe('IdentityNotAllowed');
    expect(removals).toBe(2);
    expect(await world.store.findIdentity('null#m1')).toBeUndefined();
  });

  test('a serving certificate without evidence, for a machine that is taken off the list meanwhile', async () => {
    const world = await start();
    expect(await decide(world, { evidence: m1 })).toBe('approve');
    // Its platform is the list, as that of a TPM.
    const machine = world.platform.machines.get('m1')!;
    world.platform.machines.set('m1', { ...machine, entry: 'null#m1' });
    const audit = { id: '1', at: 1, by: 'me', action: 'allow', subject: 'null#m1', reason: 'x' } as const;
    const entry = { name: 'null#m1', addresses: [], dnsNames: [], addedAt: 1, by: 'me', reason: 'x' };
    await world.register.allowMachine(entry, audit);
    const serving = { by: 'node', signerName: servingSigner, sans: { ip: ['10.0.0.1'] } } as const;
    expect(await decide(world, serving)).toBe('approve');
    const store = {
      ...world.store,
      claim: async (...given: Parameters<typeof world.store.claim>) => {
        if (!world.platform.machines.has('m1')) return world.store.claim(...given);
        await world.register.removeMachine('null#m1', { ...audit, id: '2', action: 'remove' });
        world.platform.machines.delete('m1');
        return world.store.claim(...given);
      },
    };
    expect(await decide(world.change({ store }), serving)).toBe('IdentityNotAllowed');
    expect((await world.store.findIdentity('null#m1'))?.uses).toBe(2);
  });

  test('a machine that must be listed', async () => {
    const world = await start({ listed: true });
    expect(await decide(world, { evidence: m1 })).toBe('IdentityNotAllowed');
    const about = { addedAt: 1, by: 'me', reason: 'new board' };
    const entry = { name: 'null#m1', addresses: [], dnsNames: [], ...about };
    await world.register.allowMachine(entry, {
      id: '1',
      at: 1,
      by: 'me',
      action: 'allow',
      subject: 'null#m1',
      reason: 'x',
    });
    expect(await decide(world, { evidence: m1 })).toBe('approve');
    expect(await decide(world, { evidence: m2, node: 'node-2' })).toBe('IdentityNotAllowed');
  });
  test.each(['Denied', 'Failed'])('a request that is %s already is ignored', async (type) => {
    const world = await start();
    const object = { ...requestOf({ evidence: m1 }), status: { conditions: [{ type, status: 'True' }] } };
    expect(said(await world.attest(object))).toBe(type);
    expect(await world.store.findNode('node-1')).toBeUndefined();
  });
});

describe('serving certificates', () => {
  const serve = { signerName: servingSigner, by: 'node' } as const;
  test('a stock kubelet gets the names of the machine on record, and no others', async () => {
    const world = await start();
    const own = { ...serve, sans: { ip: ['10.0.0.1'], dns: ['node-1'] } };
    expect(await decide(world, own)).toBe('AttestationMissing');
    await decide(world, { evidence: m1 });
    expect(await decide(world, own)).toBe('approve');
    expect(signed(await world.issue(approvedOf(requestOf(own))))).toBe('issued');
    expect(await decide(world, { ...serve, sans: { ip: ['10.0.0.2'] } })).toBe('NameNotOwned');
    expect(await decide(world, { ...serve, sans: { dns: ['node-2'] } })).toBe('NameNotOwned');
    expect(await decide(world, { ...serve, sans: { dns: ['kubernetes.default.svc'] } })).toBe('NameReserved');
    // The client key is what it was.
    expect(await world.store.findNode('node-1')).toMatchObject({ renewals: 0 });
  });
  test('of another node are not to be had', async () => {
    const world = await start();
    await decide(world, { evidence: m1 });
    const by = { username: 'system:node:node-2', groups: ['system:nodes'] };
    expect(await decide(world, { ...serve, by, sans: { ip: ['10.0.0.1'] } })).toBe('RequesterNotAllowed');
    expect(await decide(world, { ...serve, by: 'bootstrap', sans: { ip: ['10.0.0.1'] } })).toBe('RequesterNotAllowed');
  });
  test.each([
    ['stopped', 'IdentityNotAllowed'],
    ['gone', 'IdentityNotAllowed'],
  ] as const)('of a machine that is %s: %s', async (state, code) => {
    const world = await start();
    await decide(world, { evidence: m1 });
    world.platform.machines.set('m1', { nodeNames: ['node-1'], state });
    expect(await decide(world, { ...serve, sans: { dns: ['node-1'] } })).toBe(code);
  });
  test('a range address is the first user’s, until the reset', async () => {
    const settings = { addressRanges: ranges('192.168.0.0/24') };
    const reserved = { names: [], addresses: ranges('192.168.0.1'), clusterDomain: 'cluster.local' };
    const world = await start({ settings, profile: { reserved } });
    await decide(world, { evidence: m1 });
    await decide(world, { evidence: m2, node: 'node-2' });
    const sans = { ip: ['192.168.0.7'] };
    expect(await decide(world, { ...serve, sans })).toBe('approve');
    expect(await decide(world, { ...serve, sans })).toBe('approve');
    expect(await decide(world, { ...serve, node: 'node-2', sans })).toBe('NameNotOwned');
    expect(await decide(world, { ...serve, sans: { ip: ['192.168.0.1'] } })).toBe('NameReserved');
    const record = await world.store.findNode('node-1');
    expect(record?.addresses).toEqual(['192.168.0.7']);
    if (record === undefined) throw new Error('no record');
    await world.register.reset(record, { id: '1', at: 1, by: 'me', action: 'reset', subject: 'null#m1', reason: 'x' });
    expect(await decide(world, { ...serve, node: 'node-2', sans })).toBe('approve');
  });
  test('more range addresses than a record can hold are refused, at once or one after the other', async () => {
    const settings = { addressRanges: ranges('192.168.0.0/16') };
    const world = await start({ settings });
    await decide(world, { evidence: m1 });
    const ip = Array.from({ length: 41 }, (_, i) => `192.168.1.${i}`);
    expect(await decide(world, { ...serve, sans: { ip } })).toBe('NameNotOwned');
    expect(await decide(world, { ...serve, evidence: m1, sans: { ip } })).toBe('NameNotOwned');
    expect(await decide(world, { ...serve, sans: { ip: ip.slice(0, 40) } })).toBe('approve');
    expect(await decide(world, { ...serve, sans: { ip: ip.slice(0, 40) } })).toBe('approve');
    expect(await decide(world, { ...serve, sans: { ip: ip.slice(40) } })).toBe('NameNotOwned');
  });
  test('two at once for one range address: one has it', async () => {
    const settings = { addressRanges: ranges('192.168.0.0/24') };
    const world = await start({ settings });
    await decide(world, { evidence: m1 });
    await decide(world, { evidence: m2, node: 'node-2' });
    const sans = { ip: ['192.168.0.9'] };
    const both = await Promise.all([
      decide(world, { ...serve, sans }),
      decide(world, { ...serve, node: 'node-2', sans }),
    ]);
    expect(both.sort()).toEqual(['NameNotOwned', 'approve']);
  });
  test('with evidence the same, and the machine must be registered', async () => {
    const world = await start();
    const own = { ...serve, evidence: m1, sans: { ip: ['10.0.0.1'] } };
    expect(await decide(world, own)).toBe('AttestationMissing');
    await decide(world, { evidence: m1 });
    expect(await decide(world, own)).toBe('approve');
    expect(await decide(world, { ...own, evidence: m2 })).toBe('AttestationMissing');
    expect(await decide(world, { ...own, sans: { ip: ['10.0.0.2'] } })).toBe('NameNotOwned');
    expect(await decide(world, { ...own, providerId: null })).toBe('AttestationInvalid');
  });
  test('machines that cannot prove who they are get none', async () => {
    const world = await start({ secure: false });
    await decide(world, { evidence: m1 });
    expect(await decide(world, { ...serve, sans: { dns: ['node-1'] } })).toBe('IdentityNotAllowed');
    expect(await decide(world, { ...serve, evidence: m1, sans: { dns: ['node-1'] } })).toBe('IdentityNotAllowed');
  });
});

describe('audit mode', () => {
  const audit = { attestation: { mode: 'audit' } } as const;
  test('says what it would refuse, refuses nothing and claims nothing', async () => {
    const world = await start(audit);
    const object = requestOf({ node: 'node-2', evidence: m1 });
    expect(said(await world.attest(object))).toBe('audit IdentityNotAllowed');
    expect(await world.store.findNode('node-2')).toBeUndefined();
    expect(await world.store.findVerdict(object.metadata.uid, world.clock.now)).toMatchObject({
      mode: 'audit',
      decision: 'deny',
    });
    expect(signed(await world.issue(approvedOf(object)))).toBe('issued');
    expect(said(await world.attest(requestOf()))).toBe('audit AttestationMissing');
  });
  test('a proof that holds is a first use', async () => {
    const world = await start(audit);
    expect(await decide(world, { evidence: m1 })).toBe('approve');
    expect((await world.store.findNode('node-1'))?.identity).toBe('null#m1');
  });
  test('all other rules refuse as always', async () => {
    const world = await start(audit);
    expect(await decide(world, { by: { username: 'eve', groups: [] } })).toBe('RequesterNotAllowed');
    expect(await decide(world, { request: 'x' })).toBe('RequestMalformed');
  });
  test('blocks no request when the platform is down', async () => {
    const world = await start(audit);
    world.platform.machines.set('m1', { nodeNames: [], down: new Error('no route') });
    expect(await decide(world, { evidence: m1 })).toBe('audit unjudged');
  });
  test('a denial of audit days is a denial once it is enforced', async () => {
    const world = await start(audit);
    const object = requestOf({ node: 'node-2', evidence: m1 });
    await world.attest(object);
    const profiles = new Map(
      [...world.cluster.profiles].map(([name, profile]) => [
        name,
        profile.attestation === undefined
          ? profile
          : { ...profile, attestation: { ...profile.attestation, mode: 'enforce' as const } },
      ]),
    );
    Object.assign(world.cluster, { profiles });
    // Of attest too: an approval that names no machine would leave the request pending.
    expect(await world.attest(object)).toMatchObject({ kind: 'deny', repeat: true });
    expect(signed(await world.issue(approvedOf(object)))).toBe('IdentityNotAllowed');
  });
});

test('a first key may be certified again only until it was replaced, whenever that verdict was reached', async () => {
  const world = await start({ profile: { freshKeys: true } });
  const key = newKey('P-256');
  const [early, late] = [requestOf({ evidence: m1, key }), requestOf({ evidence: m1, key, spec: { hash: 'sha384' } })];
  for (const object of [early, late]) expect(said(await world.attest(object))).toBe('approve');
  expect(signed(await world.issue(approvedOf(early)))).toBe('issued');
  expect(signed(await world.issue(requestOf({ evidence: m1, by: 'node', approved: true })))).toBe('issued');
  expect(signed(await world.issue(approvedOf(late)))).toBe('KeyReused');
});

test('evidence that is not required: without it as unattested, with it it must hold', async () => {
  const world = await start({ attestation: { required: false } });
  expect(signed(await world.issue(requestOf({ approved: true })))).toBe('issued');
  expect(signed(await world.issue(requestOf({ approved: true, evidence: m1, node: 'node-2' })))).toBe(
    'IdentityNotAllowed',
  );
});
