/**
 * Requests that one check alone stands against: everything else about them is as it should be. Between them, the story and
 * the tables, no check of core/attest.ts and of what it calls can go unnoticed (test/suites/adversarial/mutants/requests/heart.ts).
 */
import { afterEach, describe, expect, test } from 'vitest';
import { decodeEvidence, evidenceLabels } from '../../../../../core/attestation/evidence/evidence.ts';
import { descriptionLasts } from '../../../../../core/attestation/evidence/last-description.ts';
import { mostDescribed } from '../../../../../core/attestation/records/stored-records.ts';
import { violation } from '../../../../../core/outcome/outcome.ts';
import { ThrottledError } from '../../../../../core/ports/errors.ts';
import type { NullMachine } from '../../../../harness/attestation/null-provider.ts';
import { clusterApi, contextOf, machineObject } from '../../../../harness/attestation/machine-objects.ts';
import { makeRequest, newKey, pemBlock } from '../../../../harness/x509/requests.ts';
import { adopt, approvedOf, createWorld, requestOf, retire, said, servingSigner, signed } from '../world.ts';
import type { Asked, World, WorldOptions } from '../world.ts';
import { ranges } from '../../../../harness/attestation/address-ranges.ts';

const m1 = { machine: 'm1' };
const m1Machine: NullMachine = { nodeNames: ['node-1'], addresses: ['10.0.0.1'], startedAt: 1 };
const open: World[] = [];
afterEach(() => {
  for (const world of open.splice(0)) world.close();
});

async function start(options?: WorldOptions): Promise<World> {
  const world = await createWorld(options);
  world.platform.machines.set('m1', m1Machine);
  open.push(world);
  return world;
}

/** With m1 on record as node-1. */
async function startRegistered(options?: WorldOptions): Promise<World> {
  const world = await start(options);
  expect(await decide(world, { evidence: m1 })).toBe('approve');
  return world;
}

async function decide(world: World, asked: Asked): Promise<string> {
  return said(await world.attest(requestOf(asked)));
}

function withProfiles(world: World, change: (profiles: Map<string, unknown>) => void): World {
  const profiles = new Map<string, unknown>(world.cluster.profiles);
  change(profiles);
  Object.assign(world.cluster, { profiles });
  return world;
}

/** As v1beta1 allows it: the signer is told from the request. */
function withoutSigner(asked: Asked): object {
  const object = requestOf(asked);
  const { signerName: _, ...spec } = object['spec'] as { readonly signerName: string };
  return { ...object, apiVersion: 'certificates.k8s.io/v1beta1', spec };
}

describe('whose it is', () => {
  test('a request for an unconfigured signer is ignored, readable or not', async () => {
    const world = await start();
    expect(await decide(world, { signerName: 'example.com/theirs', request: 'hello' })).toBe('UnknownSigner');
  });
  test('no signer and no readable request: there is no default, and the request is malformed', async () => {
    const world = await start();
    expect(said(await world.attest(withoutSigner({ request: 'hello' })))).toBe('RequestMalformed');
  });
  test('no signer: it is the one that is defaulted, if that is configured', async () => {
    const world = await start();
    expect(said(await world.attest(withoutSigner({ evidence: m1 })))).toBe('approve');
    const legacy = withoutSigner({ spec: { subject: { CN: 'jane' } } });
    expect(said(await world.attest(legacy))).toBe('approve');
    withProfiles(world, (profiles) => profiles.delete('kubernetes.io/legacy-unknown'));
    expect(said(await world.attest(legacy))).toBe('UnknownSigner');
  });
  test('of a signer that demands no proof nothing is recorded, and sign asks for nothing', async () => {
    const world = await start();
    const signerName = 'kubernetes.io/kube-apiserver-client';
    const object = requestOf({ signerName, spec: { subject: { CN: 'jane' } } });
    expect(said(await world.attest(object))).toBe('approve');
    expect(await world.store.findVerdict(object.metadata.uid, world.clock.now)).toBeUndefined();
    expect(signed(await world.issue(approvedOf(object)))).toBe('issued');
  });
  test('nor where evidence is not required and none is sent', async () => {
    const world = await start({ attestation: { required: false } });
    const object = requestOf();
    expect(await world.attest(object)).toEqual({ kind: 'approve', annotations: {}, repeat: false });
    expect(await world.store.findVerdict(object.metadata.uid, world.clock.now)).toBeUndefined();
  });
  test('a cluster without its attestation settings answers no request', async () => {
    const world = await start();
    Object.assign(world.cluster, { attestation: undefined });
    await expect(world.attest(requestOf())).rejects.toThrow('no attestation configured');
  });
  test('nor does one without a provider that a profile names', async () => {
    const world = await start({ attestation: { providers: ['elsewhere'] } });
    await expect(world.attest(requestOf({ evidence: m1 }))).rejects.toThrow('elsewhere is not configured');
  });
  test('who is audited waits as well where a platform asks for slowness', async () => {
    const world = await start({ attestation: { mode: 'audit' } });
    world.platform.machines.set('m1', { ...m1Machine, down: new ThrottledError('slower') });
    await expect(world.attest(requestOf({ evidence: m1 }))).rejects.toThrow('slower');
  });
});

describe('the evidence', () => {
  test('cannot be left out by a node that is registered', async () => {
    const world = await startRegistered();
    expect(await decide(world, { by: 'node' })).toBe('AttestationMissing');
  });
  test('nor for a serving signer of our own, which no stock kubelet asks', async () => {
    const world = await startRegistered();
    const signerName = 'cluster.x-k8s.io/kubelet-serving-null';
    withProfiles(world, (profiles) => profiles.set(signerName, world.cluster.profiles.get(servingSigner)));
    const asked = { signerName, by: 'node', sans: { ip: ['10.0.0.1'] } } as const;
    expect(await decide(world, asked)).toBe('AttestationMissing');
    expect(await decide(world, { ...asked, evidence: m1 })).toBe('approve');
    // The evidence is verified. The description by which a stock kubelet is judged does not replace it.
    const unwanted = violation('IdentityNotAllowed', 'its tag is gone');
    world.platform.machines.set('m1', { ...m1Machine, unwanted });
    expect(await decide(world, { ...asked, evidence: m1 })).toBe('approve');
  });
  test('nor where no provider can judge it', async () => {
    expect(await decide(await start({ attestation: { providers: [] } }), {})).toBe('AttestationMissing');
  });
  test('nor where one provider of two asks for nothing', async () => {
    const options = { secure: false, others: [{ name: 'other' }], attestation: { providers: ['null', 'other'] } };
    expect(await decide(await start(options), {})).toBe('AttestationMissing');
    expect(await decide(await start({ secure: false }), {})).toBe('IdentityNotAllowed');
  });
  test('is two blocks, each known by its label', async () => {
    const world = await start();
    const [provider, data] = [
      { label: evidenceLabels.provider, content: Buffer.from('null/v1') },
      { label: evidenceLabels.data, content: Buffer.from(JSON.stringify({ v: 1, ...m1 })) },
    ] as const;
    const { pem } = makeRequest({
      key: newKey('P-256'),
      subject: { O: ['system:nodes'], CN: 'system:node:node-1' },
    });
    for (const one of [provider, data])
      expect(await decide(world, { request: pem + pemBlock(one.label, one.content) })).toBe('AttestationInvalid');
    expect(decodeEvidence([data, provider])).toEqual({ ok: true, value: { version: 'null/v1', data: data.content } });
  });
  test('says which extension is missing', async () => {
    const world = await start();
    expect(await world.attest(requestOf({ evidence: m1, providerId: null }))).toMatchObject({
      violations: [{ message: expect.stringContaining('lacks the provider ID extension') as string }],
    });
  });
  test('is asked about once, however often the record has to be read', async () => {
    const world = await start();
    const key = newKey('P-256');
    const both = await Promise.all([decide(world, { evidence: m1, key }), decide(world, { evidence: m1, key })]);
    expect([both, world.platform.asked()]).toEqual([['approve', 'approve'], 2]);
    expect(await world.store.findNode('node-1')).toMatchObject({ uses: 2 });
  });
});

describe('the machine', () => {
  test('is the one that was examined, or there is no answer', async () => {
    const world = await start();
    world.platform.machines.set('m1', { ...m1Machine, identity: 'null#m2' });
    await expect(world.attest(requestOf({ evidence: m1 }))).rejects.toThrow('describes another machine');
  });
  test('whose provider proves nothing cannot renew, not even by the node itself', async () => {
    const world = await startRegistered({ secure: false });
    expect(await decide(world, { evidence: m1, by: 'node' })).toBe('TofuReuse');
  });
  test('that was started anew cannot renew, unless that is allowed', async () => {
    const world = await startRegistered();
    world.platform.machines.set('m1', { ...m1Machine, startedAt: 2 });
    expect(await decide(world, { evidence: m1 })).toBe('TofuReuse');
  });
  test('that has the name keeps it while no provider can say that it is gone', async () => {
    const world = await start();
    await adopt(world, { identity: 'elsewhere#m0', nodeName: 'node-1' });
    world.clock.now += 48 * 3_600_000;
    expect(await decide(world, { evidence: m1 })).toBe('TofuNodeTaken');
  });
});

describe('a serving certificate with evidence', () => {
  const serve = { signerName: servingSigner, by: 'node', evidence: m1, sans: { ip: ['10.0.0.1'] } } as const;
  const cases: Readonly<Record<string, readonly [code: string, before: (world: World) => unknown, asked?: Asked]>> = {
    'of a machine that was retired': ['Revoked', (world) => retire(world, 'm1', 'node-1')],
    'for another node': ['TofuNodeMismatch', () => undefined, { node: 'node-2' }],
    'of a machine that is stopped': [
      'IdentityNotAllowed',
      (world) => world.platform.machines.set('m1', { ...m1Machine, state: 'stopped' }),
    ],
    'of a machine that must not be called so any more': [
      'IdentityNotAllowed',
      (world) => world.platform.machines.set('m1', { ...m1Machine, nodeNames: ['node-9'] }),
    ],
    'with a proof that is spent': [
      'AttestationInvalid',
      (world) => decide(world, { ...serve, evidence: { ...m1, proof: 'p1' } }),
      { evidence: { ...m1, proof: 'p1' } },
    ],
  };
  test.each(Object.entries(cases))('%s', async (_, [code, before, asked]) => {
    const world = await startRegistered();
    expect(await decide(world, serve)).toBe('approve');
    await before(world);
    expect(await decide(world, { ...serve, ...asked })).toBe(code);
  });
});

describe('a serving certificate of a stock kubelet', () => {
  const serve = { signerName: servingSigner, by: 'node', sans: { ip: ['10.0.0.1'] } } as const;
  const both = { attestation: { providers: ['null', 'other'] } };
  test.each<readonly [string, string, (world: World) => unknown]>([
    [
      'of a machine that would not be let in today',
      'IdentityNotAllowed',
      (world) => {
        const unwanted = violation('IdentityNotAllowed', 'its tag is gone');
        world.platform.machines.set('m1', { ...m1Machine, unwanted });
      },
    ],
    [
      'of a machine that must not be called so any more',
      'IdentityNotAllowed',
      (world) => world.platform.machines.set('m1', { ...m1Machine, nodeNames: ['node-9'] }),
    ],
  ])('%s', async (_, code, before) => {
    const world = await startRegistered();
    expect(await decide(world, serve)).toBe('approve');
    await before(world);
    expect(await decide(world, serve)).toBe(code);
  });
  test.each<readonly [string, string, WorldOptions]>([
    ['that is not configured', 'IdentityNotAllowed', {}],
    ['that the profile does not take', 'IdentityNotAllowed', { others: [{ name: 'other' }] }],
    ['that proves nothing', 'IdentityNotAllowed', { ...both, others: [{ name: 'other', secure: false }] }],
    ['that it takes', 'approve', { ...both, others: [{ name: 'other' }] }],
  ])('of a machine on record by a provider %s: %s', async (_, code, options) => {
    const world = await start(options);
    world.others[0]?.machines.set('m0', m1Machine);
    await adopt(world, { identity: 'other#m0', nodeName: 'node-1' });
    expect(await decide(world, serve)).toBe(code);
  });
  test('a Machine object that does not have the address narrows', async () => {
    const world = await start({ settings: { clusterApi } });
    expect(said(await world.attest(requestOf({ evidence: m1 }), contextOf()))).toBe('approve');
    for (const [addresses, answer] of [
      [['10.0.0.9'], 'NameNotOwned'],
      [['10.0.0.1'], 'approve'],
    ] as const)
      expect(said(await world.attest(requestOf(serve), contextOf([machineObject({ addresses })])))).toBe(answer);
  });
  test('an interface’s address is the machine’s, and is not claimed though a range has it', async () => {
    const world = await startRegistered({ settings: { addressRanges: ranges('10.0.0.0/24') } });
    expect(await decide(world, { ...serve, sans: { ip: ['10.0.0.1', '10.0.0.7'] } })).toBe('approve');
    expect((await world.store.findNode('node-1'))?.addresses).toEqual(['10.0.0.7']);
  });
});

describe('what the platform said moments ago', () => {
  const ip = ['10.0.0.1'];
  const stock = { signerName: servingSigner, by: 'node', sans: { ip } } as const;
  const own = { ...stock, signerName: 'cluster.x-k8s.io/kubelet-serving-null', evidence: m1 } as const;

  /** m1 is on record, and how often the platform was asked since. */
  async function seen(options: WorldOptions = {}) {
    const world = await startRegistered({ reuses: true, ...options });
    withProfiles(world, (profiles) => profiles.set(own.signerName, world.cluster.profiles.get(servingSigner)));
    const before = world.platform.asked();
    return { world, asked: () => world.platform.asked() - before };
  }

  test('decides about a serving certificate for two minutes', async () => {
    const { world, asked } = await seen();
    world.clock.now += descriptionLasts - 1;
    expect([await decide(world, stock), await decide(world, own), asked()]).toEqual(['approve', 'approve', 0]);
    world.clock.now += 1;
    expect([await decide(world, own), asked()]).toEqual(['approve', 1]);
    // That answer is on record now; and again the one for a request without evidence.
    expect([await decide(world, stock), asked()]).toEqual(['approve', 1]);
    world.clock.now += descriptionLasts;
    expect([await decide(world, stock), asked()]).toEqual(['approve', 2]);
    expect([await decide(world, own), asked()]).toEqual(['approve', 2]);
  });
  test('also at the same instant, but not before it', async () => {
    const { world, asked } = await seen();
    expect([await decide(world, stock), asked()]).toEqual(['approve', 0]);
    world.clock.now -= 1;
    expect([await decide(world, stock), asked()]).toEqual(['approve', 1]);
  });
  test('is not kept by a provider that asks every time, nor read by it', async () => {
    const { world, asked } = await seen({ reuses: false });
    const record = await world.store.findIdentity('null#m1');
    expect(record?.described).toBeUndefined();
    if (record === undefined) throw new Error('no record');
    const described = { at: world.clock.now, addresses: ip, dnsNames: [] };
    expect(await world.store.observe({ ...record, described, rev: record.rev + 1 })).toBe(true);
    expect([await decide(world, stock), asked()]).toEqual(['approve', 1]);
  });
  test.each([
    ['unknown', { unknownSince: 1 }],
    ['asked for with another key', { restart: { startedAt: 1, since: 1, spkiSha256: '00', contested: false } }],
  ])('does not count for a machine that is %s', async (_, mark) => {
    const { world, asked } = await seen();
    const record = await world.store.findIdentity('null#m1');
    if (record === undefined) throw new Error('no record');
    expect(await world.store.observe({ ...record, ...mark, rev: record.rev + 1 })).toBe(true);
    expect([await decide(world, stock), asked()]).toEqual(['approve', 1]);
  });
  test('admits, and refuses nothing: of another name the platform is asked', async () => {
    const { world, asked } = await seen();
    const more = { ...stock, sans: { ip: ['10.0.0.2'] } };
    expect([await decide(world, more), asked()]).toEqual(['NameNotOwned', 1]);
    world.platform.machines.set('m1', { ...m1Machine, addresses: ['10.0.0.2'] });
    expect([await decide(world, more), asked()]).toEqual(['approve', 2]);
    // The former address is not on record any more.
    expect([await decide(world, stock), asked()]).toEqual(['NameNotOwned', 3]);
  });
  test('does not replace the evidence’s own provider ID', async () => {
    const { world, asked } = await seen();
    expect([await decide(world, { ...own, providerId: 'null:///m2' }), asked()]).toEqual(['AttestationInvalid', 1]);
  });
  test('is kept of so many names and no more, and then nothing that was kept before', async () => {
    const { world, asked } = await seen();
    const many = Array.from({ length: mostDescribed - 1 }, (_, index) => `10.0.1.${index}`);
    world.platform.machines.set('m1', { ...m1Machine, addresses: [...ip, ...many] });
    expect([await decide(world, { evidence: m1, by: 'node' }), asked()]).toEqual(['approve', 1]);
    expect([await decide(world, stock), asked()]).toEqual(['approve', 1]);
    world.platform.machines.set('m1', { ...m1Machine, addresses: [...ip, ...many], dnsNames: ['a.example'] });
    expect([await decide(world, { evidence: m1, by: 'node' }), asked()]).toEqual(['approve', 2]);
    expect([await decide(world, stock), asked()]).toEqual(['approve', 3]);
    expect((await world.store.findIdentity('null#m1'))?.described).toBeUndefined();
  });
  test('leaves the start on record', async () => {
    const { world } = await seen();
    expect(await decide(world, stock)).toBe('approve');
    expect((await world.store.findIdentity('null#m1'))?.startedAt).toBe(m1Machine.startedAt);
  });
});
