/** `attestation.machines: clusterApi`: each precondition that is missing has its own reason, and is mended without a new node. */
import { afterEach, describe, expect, test } from 'vitest';
import type { RefusalCode } from '../../../../../core/outcome/outcome.ts';
import type { AttestContext, ClusterObject, MachineObject } from '../../../../../core/ports/signing-endpoint.ts';
import { ranges } from '../../../../harness/attestation/address-ranges.ts';
import { clusterApi, contextOf, machineObject } from '../../../../harness/attestation/machine-objects.ts';
import { newKey } from '../../../../harness/x509/requests.ts';
import { approvedOf, createWorld, requestOf, said, servingSigner, signed } from '../world.ts';
import type { Asked, World, WorldOptions } from '../world.ts';

const open: World[] = [];
async function start(options: WorldOptions = {}): Promise<World> {
  const world = await createWorld({ ...options, settings: { clusterApi, ...options.settings } });
  open.push(world);
  world.platform.machines.set('m1', {
    nodeNames: ['node-1'],
    addresses: ['10.0.0.1', 'fd00::1'],
    dnsNames: ['own.internal'],
  });
  world.platform.machines.set('m2', { nodeNames: ['node-2'], addresses: ['10.0.0.2'] });
  return world;
}
afterEach(() => {
  for (const world of open.splice(0)) world.close();
});

const m1 = { machine: 'm1' };
const key = newKey('P-256');
/** A client certificate: the first use of m1, and later its renewal. */
const client: Asked = { evidence: m1, key };
const stockServing: Asked = { by: 'node', signerName: servingSigner, sans: { ip: ['10.0.0.1'] } };
const provedServing: Asked = { ...stockServing, evidence: m1 };

const objects = (...changes: readonly Partial<MachineObject>[]) => contextOf(changes.map(machineObject));
const ofCluster = (cluster: ClusterObject | null) => contextOf(undefined, cluster);

/** What is missing, the reason, and what its message tells the operator. */
const missing: Readonly<Record<string, readonly [AttestContext, RefusalCode, RegExp]>> = {
  'the caller did not look': [{}, 'MachineNotFound', /only a watch-relay that reads Cluster API/],
  'no Machine': [
    contextOf([]),
    'MachineNotFound',
    /no Machine and no MachinePool of Cluster API has (provider ID "null:\/\/\/m1"|node "node-1")/,
  ],
  'no Cluster': [
    ofCluster(null),
    'MachineNotFound',
    /Cluster "default\/demo" of attestation\.clusterApi does not exist/,
  ],
  'no bootstrap data': [
    objects({ bootstrapReady: false }),
    'MachineNotReady',
    /Machine "default\/demo-md-0-x7k2p" has no bootstrap data/,
  ],
  'a MachinePool without bootstrap data': [
    objects({ kind: 'MachinePool', bootstrapReady: false }),
    'MachineNotReady',
    /^MachinePool/,
  ],
  'two Machines': [
    objects({}, { name: 'other' }),
    'MachineAmbiguous',
    /kind Machine have.*"default\/demo-md-0-x7k2p", "default\/other"/,
  ],
  'two Machines, one of another Cluster': [
    objects({}, { clusterName: 'other' }),
    'MachineAmbiguous',
    /same provider ID/,
  ],
  'two MachinePools': [objects({ kind: 'MachinePool' }, { kind: 'MachinePool', name: 'p2' }), 'MachineAmbiguous', /p2/],
  'a Machine of another Cluster': [
    objects({ clusterName: 'other' }),
    'MachineOfOtherCluster',
    /Cluster "default\/other".*"default\/demo"/,
  ],
  'a Machine of another namespace': [
    objects({ namespace: 'team-b' }),
    'MachineOfOtherCluster',
    /Cluster "team-b\/demo"/,
  ],
  'a Machine that is being deleted': [objects({ deleting: true }), 'MachineDeleting', /is being deleted/],
  'a Cluster that is being deleted': [ofCluster({ deleting: true }), 'MachineDeleting', /^Cluster "default\/demo"/],
  'a Machine with the provider ID of another machine': [
    objects({ providerId: 'null:///m2' }),
    'MachineMismatch',
    /"null:\/\/\/m2".*"null:\/\/\/m1"/,
  ],
  'a Machine without a provider ID': [objects({ providerId: '' }), 'MachineMismatch', /provider ID ""/],
  'a Machine with another nodeRef': [objects({ nodeName: 'node-2' }), 'MachineMismatch', /nodeRef "node-2".*"node-1"/],
  'kubeletAuthentication is false': [
    ofCluster({ deleting: false, kubeletAuthentication: false }),
    'AttestorNotAuthorized',
    /set it to true/,
  ],
  'the provider is not listed': [
    ofCluster({ deleting: false, authorizedAttestors: ['aws', 'Null'] }),
    'AttestorNotAuthorized',
    /are "aws", "Null", and this machine is attested by "null"/,
  ],
  'no provider is listed': [
    ofCluster({ deleting: false, kubeletAuthentication: true, authorizedAttestors: [] }),
    'AttestorNotAuthorized',
    /are none/,
  ],
};
const certificates: readonly (readonly [string, Asked, boolean])[] = [
  ['first client certificate', client, false],
  ['renewed client certificate', { evidence: m1, by: 'node' }, true],
  ['serving certificate with evidence', provedServing, true],
  ['serving certificate of a stock kubelet', stockServing, true],
];

describe.each(Object.entries(missing))('%s', (_, [context, code, message]) => {
  test.each(certificates)(
    'the %s is refused, and the next request gets it once this is mended',
    async (__, asked, joined) => {
      const world = await start();
      if (joined) expect(said(await world.attest(requestOf(client), contextOf()))).toBe('approve');
      const before = await world.store.findNode('node-1');
      const refusal = await world.attest(requestOf(asked), context);
      expect(refusal).toMatchObject({
        kind: 'deny',
        violations: [{ code, message: expect.stringMatching(message) as unknown }],
      });
      expect(await world.store.findNode('node-1')).toEqual(before);
      expect(said(await world.attest(requestOf(asked), contextOf()))).toBe('approve');
    },
  );
});

test('with evidence its own provider must be authorized, without evidence the one that registered the machine', async () => {
  const providers = ['null', 'other'];
  const world = await start({ others: [{ name: 'other', platform: 'null' }], attestation: { providers } });
  for (const [id, machine] of world.platform.machines) world.others[0]?.machines.set(id, machine);
  expect(said(await world.attest(requestOf(client), contextOf()))).toBe('approve');
  const ask = async (asked: Asked, ...authorizedAttestors: readonly string[]): Promise<string> =>
    said(await world.attest(requestOf(asked), ofCluster({ deleting: false, authorizedAttestors })));
  const proved = { ...provedServing, version: 'other/v1' };
  expect([await ask(proved, 'null'), await ask(proved, 'other')]).toEqual(['AttestorNotAuthorized', 'approve']);
  expect([await ask(stockServing, 'null'), await ask(stockServing, 'other')]).toEqual([
    'approve',
    'AttestorNotAuthorized',
  ]);
});

describe('what is admitted', () => {
  test.each<[string, AttestContext]>([
    ['a Machine without a nodeRef', contextOf()],
    ['a Machine with the nodeRef of this node', objects({ nodeName: 'node-1' })],
    ['a member of a MachinePool', objects({ kind: 'MachinePool' })],
    ['a MachinePool Machine counts as its Machine', objects({}, { kind: 'MachinePool', deleting: true })],
    [
      'the Cluster authorizes the provider',
      ofCluster({ deleting: false, kubeletAuthentication: true, authorizedAttestors: ['aws', 'null'] }),
    ],
    ['kubeletAuthentication is not set', ofCluster({ deleting: false, authorizedAttestors: ['null'] })],
  ])('%s', async (_, context) => {
    const world = await start();
    for (const [, asked] of certificates) expect(said(await world.attest(requestOf(asked), context))).toBe('approve');
  });

  test('without `machines` nothing of this is asked for, and a context narrows nothing', async () => {
    const world = await createWorld();
    open.push(world);
    world.platform.machines.set('m1', { nodeNames: ['node-1'], addresses: ['10.0.0.1'] });
    const context = objects({ deleting: true, providerId: 'null:///m2', addresses: ['10.0.0.2'] });
    for (const asked of [client, stockServing])
      expect(said(await world.attest(requestOf(asked), context))).toBe('approve');
  });
});

test.each<[string, AttestContext, string]>([
  ['a Machine', contextOf(), 'Machine default/demo-md-0-x7k2p'],
  [
    'a Machine and its MachinePool',
    objects({ kind: 'MachinePool', name: 'pool' }, {}),
    'Machine default/demo-md-0-x7k2p',
  ],
  ['a MachinePool', objects({ kind: 'MachinePool', name: 'pool' }), 'MachinePool default/pool'],
  ['a name that no object can have', objects({ name: 'a\n\u001b[2J' }), 'Machine default/a\\u{a}\\u{1b}[2J'],
])('an approval names the object: %s', async (_, context, machine) => {
  const world = await start();
  const approval = await world.attest(requestOf(client), context);
  expect(approval).toMatchObject({ kind: 'approve', annotations: { 'countersign.dev/machine': machine } });
});

test('the message says by what no Machine was found', async () => {
  const world = await start();
  const messages = async (asked: Asked): Promise<unknown> =>
    world
      .attest(requestOf(asked), contextOf([]))
      .then((outcome) => ('violations' in outcome ? outcome.violations : []));
  const none = 'no Machine and no MachinePool of Cluster API has';
  expect(await messages(client)).toMatchObject([{ message: `${none} provider ID "null:///m1": wait, or create one` }]);
  await world.attest(requestOf(client), contextOf());
  expect(await messages(stockServing)).toMatchObject([{ message: `${none} node "node-1": wait, or create one` }]);
});

describe('the objects add nothing', () => {
  test.each<[string, Asked, AttestContext, string]>([
    ['no evidence', {}, contextOf(), 'AttestationMissing'],
    ['another machine’s evidence', { evidence: { machine: 'm2' } }, contextOf(), 'IdentityNotAllowed'],
    [
      'a name that the platform does not give',
      { evidence: m1, node: 'node-2' },
      objects({ nodeName: 'node-2' }),
      'IdentityNotAllowed',
    ],
    [
      'a machine that its platform does not know',
      { evidence: { machine: 'm9' } },
      objects({ providerId: 'null:///m9' }),
      'IdentityNotAllowed',
    ],
    ['a serving certificate without a record', stockServing, objects({ nodeName: 'node-1' }), 'AttestationMissing'],
  ])('%s', async (_, asked, context, code) => {
    const world = await start();
    expect(said(await world.attest(requestOf(asked), context))).toBe(code);
  });

  const served = (ip: readonly string[], dns: readonly string[] = []): Asked => ({
    ...stockServing,
    sans: { ip, dns },
  });
  test.each<[string, Asked, readonly string[] | undefined, string]>([
    ['an address of the machine that it lists', served(['10.0.0.1']), ['10.0.0.1'], 'approve'],
    ['an address in another form', served(['fd00::1']), ['FD00:0:0::0001'], 'approve'],
    ['an address of the machine that it does not list', served(['fd00::1']), ['10.0.0.1'], 'NameNotOwned'],
    ['an address of another machine that it lists', served(['10.0.0.2']), ['10.0.0.2'], 'NameNotOwned'],
    ['a DNS name that it lists', served([], ['own.internal']), ['OWN.internal'], 'approve'],
    ['a DNS name that it does not list', served([], ['own.internal']), ['10.0.0.1'], 'NameNotOwned'],
    ['the node name needs no entry', served([], ['node-1']), ['10.0.0.1'], 'approve'],
    ['an address of a range, which no infrastructure provider knows', served(['192.168.0.7']), ['10.0.0.1'], 'approve'],
    ['a Machine that lists no address yet', served(['10.0.0.1']), [], 'approve'],
    ['a Machine that says nothing of addresses', served(['10.0.0.1']), undefined, 'approve'],
  ])('addresses: %s', async (_, asked, addresses, answer) => {
    const world = await start({ settings: { addressRanges: ranges('192.168.0.0/24') } });
    await world.attest(requestOf(client), contextOf());
    const context = objects(addresses === undefined ? {} : { addresses });
    expect(said(await world.attest(requestOf(asked), context))).toBe(answer);
  });
});

describe('a machine that is not listed yet', () => {
  test('costs no call of its platform and no write, and holds back no other machine with the same token', async () => {
    const world = await start();
    for (let count = 0; count < 200; count += 1) {
      const context = count % 2 === 0 ? contextOf([]) : objects({ bootstrapReady: false });
      const object = requestOf(client);
      expect(said(await world.attest(object, context))).toMatch(/^Machine(NotFound|NotReady)$/);
      expect(await world.store.findVerdict(object.metadata.uid, world.clock.now)).toBeUndefined();
    }
    expect(world.platform.asked()).toBe(0);
    expect(
      said(
        await world.attest(
          requestOf({ evidence: { machine: 'm2' }, node: 'node-2' }),
          objects({ providerId: 'null:///m2' }),
        ),
      ),
    ).toBe('approve');
    expect(said(await world.attest(requestOf(client), contextOf()))).toBe('approve');
  });

  test('other refusals are stored and counted as ever', async () => {
    const world = await start();
    const object = requestOf(client);
    expect(said(await world.attest(object, objects({ deleting: true })))).toBe('MachineDeleting');
    expect(await world.attest(object, contextOf())).toMatchObject({ kind: 'deny', repeat: true });
    for (let count = 1; count < 120; count += 1)
      await world.attest(requestOf(client), objects({ clusterName: 'other' }));
    await expect(world.attest(requestOf(client), contextOf())).rejects.toThrow('refused');
  });
});

test('sign, which knows no Machine, refuses what the relay did not have approved before', async () => {
  const world = await start();
  const object = approvedOf(requestOf(client));
  expect(signed(await world.issue(object))).toBe('MachineNotFound');
  const next = requestOf(client);
  expect(said(await world.attest(next, contextOf()))).toBe('approve');
  expect(signed(await world.issue(approvedOf(next)))).toBe('issued');
});

test('audit mode names the code and refuses nothing', async () => {
  const world = await start({ attestation: { mode: 'audit' } });
  expect(said(await world.attest(requestOf(client), contextOf([])))).toBe('audit MachineNotFound');
  expect(said(await world.attest(requestOf(client), objects({ deleting: true })))).toBe('audit MachineDeleting');
});
