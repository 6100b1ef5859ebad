/** `countersign machines prune` over the real embedded stores, from an EC2 that refuses what the real one does. */
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { EC2Client } from '@aws-sdk/client-ec2';
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { ec2Endpoint, ec2Fleet } from '../../../../adapters/aws/ec2.ts';
import { openEmbeddedAttestations } from '../../../../adapters/embedded/attestations.ts';
import { attestationsFileIn } from '../../../../adapters/embedded/data.ts';
import { openEmbeddedRevocations } from '../../../../adapters/embedded/revocations.ts';
import { revocationsFileIn } from '../../../../adapters/embedded/data.ts';
import type { Io } from '../../../../cli/runtime/io.ts';
import type { IdentityRecord } from '../../../../core/ports/attestation-store.ts';
import { secondLookAfter } from '../../../../core/attestation/second-look.ts';
import { startFakeEc2 } from '../../../harness/fake-aws/ec2.ts';
import type { FakeEc2 } from '../../../harness/fake-aws/ec2.ts';
import { createFakeAws } from '../../../harness/fake-aws/world.ts';
import { day, ledgerFolder } from '../inventory/ledger.ts';
import { hour, recordOf, used } from '../register.ts';
import { now, run } from '../run.ts';

const [account, region] = ['111122223333', 'eu-central-1'];
const tags = { 'kubernetes.io/cluster/prod': 'owned' };
const configuration = JSON.stringify({
  version: 1,
  clusters: {
    prod: {
      cas: { ca: { subject: { commonName: 'prod' } } },
      profiles: { 'cluster.x-k8s.io/kube-apiserver-client-kubelet-aws': { ca: 'ca' } },
      attestation: {
        audience: 'prod',
        aws: { accounts: { [account]: {} }, regions: [region], tags, nodeName: ['tag:Name'] },
      },
    },
  },
});

let aws = createFakeAws();
let ec2: FakeEc2;
const shared = new Proxy({} as typeof aws, { get: (_, key) => Reflect.get(aws, key) as unknown });
beforeAll(async () => (ec2 = await startFakeEc2({ aws: shared })));
afterEach(() => {
  aws = createFakeAws();
  ec2.mend();
});
afterAll(() => ec2.close());

type Row = Readonly<Record<string, unknown>>;

/** The records of a cluster. `during`: what happens between the two looks. */
async function site() {
  const ledger = await ledgerFolder();
  const attestations = openEmbeddedAttestations(attestationsFileIn(ledger.folder));
  onTestFinished(attestations.close);
  const clock = { now, waited: 0 };
  async function prune(
    argv: readonly string[],
    { during, world = {} }: { during?: () => unknown; world?: Partial<Io> } = {},
  ) {
    const credentials = aws.createUser(account, 'ada', ['ec2:DescribeInstances']);
    const connect = (where: { region: string }) =>
      new EC2Client({ region: where.region, endpoint: ec2.url, credentials, maxAttempts: 1 });
    const ran = await run(['machines', 'prune', '--data', ledger.folder, '--config', 'c.yaml', '-o', 'json', ...argv], {
      files: { 'c.yaml': configuration },
      world: {
        userName: () => 'ada',
        now: () => clock.now,
        async pause(milliseconds) {
          clock.waited += milliseconds;
          clock.now += milliseconds;
          await during?.();
        },
        connectEc2: async () => ({ ...ec2Endpoint(connect), ...ec2Fleet(connect, 5) }),
        ...world,
      },
    });
    return { ...ran, rows: ran.out === '' ? [] : (JSON.parse(ran.out) as readonly Row[]) };
  }
  return {
    ...ledger,
    ...attestations,
    clock,
    prune,
    /** A machine that has joined under this name, three hours ago. */
    join: async (node: string, change: Partial<IdentityRecord> = {}) => {
      const { instanceId, availabilityZone } = aws.launch({ account, region, tags: { ...tags, Name: node } });
      const identity = `aws#aws/${account}/${region}/${instanceId}`;
      const providerId = `aws:///${availabilityZone}/${instanceId}`;
      const record = recordOf(node, 'a', { identity, providerId, lastSeen: now - 3 * hour, ...change });
      await used(attestations, record);
      return { instanceId, identity, providerId, record };
    },
    nodes: async () =>
      (await Array.fromAsync(attestations.register.listIdentities())).map(({ nodeName }) => nodeName).toSorted(),
    resets: async () =>
      (await Array.fromAsync(attestations.register.listAudit()))
        .filter(({ action }) => action === 'reset')
        .toSorted((a, b) => ((a.nodeName ?? '') < (b.nodeName ?? '') ? -1 : 1)),
  };
}

const yes = ['--yes', '--reason', 'scaled in'];

describe('without --yes', () => {
  test('says what it would do after one look, and changes nothing', async () => {
    const { join, prune, nodes, resets, clock } = await site();
    const [ended, forgotten] = [await join('ended'), await join('forgotten')];
    await join('running');
    const stopped = await join('stopped');
    aws.terminate(ended.instanceId);
    aws.forget(forgotten.instanceId);
    aws.stop(stopped.instanceId);
    const ran = await prune([]);
    expect(ran.code).toBe(1);
    expect(ran.rows).toMatchObject([
      { node: 'ended', identity: ended.identity, found: 'terminated', decision: 'prune' },
      { node: 'forgotten', identity: forgotten.identity, found: 'unknown', decision: 'prune' },
    ]);
    expect(ran.err).toBe(
      'countersign: 4 machines of EC2 on record, of which 2 no longer exist\ncountersign: nothing was changed; --yes --reason … removes 2 records\n',
    );
    expect([await nodes(), await resets(), clock.waited]).toEqual([
      ['ended', 'forgotten', 'running', 'stopped'],
      [],
      0,
    ]);
    expect((await prune(['--dry-run'])).out).toBe(ran.out);
  });

  test('exit code 0 where every machine exists', async () => {
    const { join, prune } = await site();
    await join('running');
    expect(await prune([])).toMatchObject({ code: 0, rows: [] });
  });
});

describe('with --yes', () => {
  test('waits for the second look, removes the records with an audit item each, and keeps the others', async () => {
    const { join, prune, nodes, resets, clock, store } = await site();
    const [ended, forgotten] = [await join('ended'), await join('forgotten')];
    await join('running');
    aws.terminate(ended.instanceId);
    aws.forget(forgotten.instanceId);
    const ran = await prune(yes);
    expect([ran.code, clock.waited]).toEqual([0, secondLookAfter]);
    expect(ran.rows).toMatchObject([
      { node: 'ended', decision: 'pruned' },
      { node: 'forgotten', decision: 'pruned' },
    ]);
    expect(await nodes()).toEqual(['running']);
    expect(await store.findNode('ended')).toBeUndefined();
    expect(await resets()).toMatchObject([
      { by: 'ada', subject: ended.identity, nodeName: 'ended', reason: 'scaled in', before: { nodeName: 'ended' } },
      { by: 'ada', subject: forgotten.identity, nodeName: 'forgotten' },
    ]);
    // Run again, it has nothing to do and does not wait.
    expect(await prune(yes)).toMatchObject({ code: 0, rows: [] });
    expect(clock.waited).toBe(secondLookAfter);
  });

  test('needs no wait where attest made the first look', async () => {
    const { join, prune, clock, store } = await site();
    const { instanceId, record } = await join('ended');
    aws.terminate(instanceId);
    await store.observe({ ...record, unknownSince: now - secondLookAfter, rev: record.rev + 1 });
    expect(await prune(yes)).toMatchObject({ code: 0, rows: [{ decision: 'pruned' }] });
    expect(clock.waited).toBe(0);
  });

  test('a machine that was seen within the last hour is not pruned because EC2 does not know it', async () => {
    const { join, prune, nodes } = await site();
    const { instanceId } = await join('new', { lastSeen: now - hour });
    aws.forget(instanceId);
    expect(await prune(yes)).toMatchObject({ code: 0, rows: [] });
    expect(await nodes()).toEqual(['new']);
  });

  test('a machine that exists at the second look stays: exit code 6', async () => {
    const { join, prune, nodes } = await site();
    const { instanceId } = await join('back');
    aws.change(instanceId, { state: 'terminated' });
    const ran = await prune(yes, { during: () => aws.change(instanceId, { state: 'running' }) });
    expect(ran).toMatchObject({
      code: 6,
      rows: [{ node: 'back', decision: 'kept', why: 'at the second look: it exists' }],
    });
    expect(await nodes()).toEqual(['back']);
  });

  test('a machine that was used between the looks stays', async () => {
    const { join, prune, nodes, register, store, clock } = await site();
    const { instanceId, record } = await join('used');
    aws.forget(instanceId);
    const ran = await prune(yes, {
      during: async () => {
        const audit = {
          id: 'a',
          at: clock.now,
          by: 'eve',
          action: 'reset',
          subject: record.identity,
          reason: 'r',
        } as const;
        expect(await register.reset(record, audit)).toEqual({ kind: 'written' });
        const anew = { ...record, firstSeen: clock.now, lastSeen: clock.now };
        await used({ store }, anew);
      },
    });
    expect(ran).toMatchObject({
      code: 6,
      rows: [{ decision: 'kept', why: 'its record changed since the first look' }],
    });
    expect(await nodes()).toEqual(['used']);
  });

  test('if EC2 does not answer, nothing is pruned', async () => {
    const { join, prune, nodes } = await site();
    const { instanceId } = await join('ended');
    aws.terminate(instanceId);
    const denied = aws.createUser(account, 'bob', []);
    const connect = (where: { region: string }) =>
      new EC2Client({ region: where.region, endpoint: ec2.url, credentials: denied, maxAttempts: 1 });
    const world = { connectEc2: async () => ({ ...ec2Endpoint(connect), ...ec2Fleet(connect, 5) }) };
    const ran = await prune(yes, { world });
    expect([ran.code === 0, ran.out]).toEqual([false, '']);
    expect(await nodes()).toEqual(['ended']);
  });
});

describe('a machine about which EC2 cannot be asked', () => {
  test.each([
    ['of another platform', `tpm#${'a'.repeat(64)}`],
    ['of an account that the configuration does not have', `aws#aws/999988887777/${region}/i-0123456789abcdef0`],
    ['of a region that the configuration does not have', `aws#aws/${account}/eu-west-1/i-0123456789abcdef0`],
  ])('%s stays, retired or not', async (_, identity) => {
    const { prune, nodes, ...open } = await site();
    await used(open, recordOf('other', 'a', { identity, lastSeen: now - 99 * hour }));
    const retired = recordOf('old', 'b', { identity: `${identity}0`, lastSeen: now - 99 * hour });
    await used(open, retired);
    expect(await prune(yes)).toMatchObject({ code: 0, rows: [] });
    expect(await nodes()).toEqual(['old', 'other']);
  });
});

describe('retired machines', () => {
  const retire = async ({ store, clock }: Awaited<ReturnType<typeof site>>, record: IdentityRecord) => {
    const at = clock.now;
    const audit = {
      id: randomUUID(),
      at,
      by: 'attest',
      action: 'retire',
      subject: record.identity,
      reason: 'r',
    } as const;
    expect(await store.retire(record, { nameFreeAt: at + hour, audit })).toEqual({ kind: 'written' });
  };

  test('keep their record within the grace, and lose it afterwards, without a wait', async () => {
    const open = await site();
    const { instanceId, record } = await open.join('ended');
    aws.terminate(instanceId);
    await retire(open, record);
    const during = await open.prune(yes);
    expect(during).toMatchObject({ code: 0, rows: [{ node: 'ended', found: 'retired', decision: 'kept' }] });
    open.clock.now += hour;
    aws.forget(instanceId);
    expect(await open.prune([])).toMatchObject({
      code: 1,
      rows: [{ node: 'ended', found: 'retired', decision: 'prune' }],
    });
    expect(await open.prune(yes)).toMatchObject({ code: 0, rows: [{ decision: 'pruned' }] });
    expect([await open.nodes(), open.clock.waited]).toEqual([[], 0]);
  });

  test('whose successor has the name: the record goes, and the successor keeps the name', async () => {
    const open = await site();
    const { instanceId, record } = await open.join('web');
    const next = aws.launch({ account, region, tags: { ...tags, Name: 'web' } });
    const identity = `aws#aws/${account}/${region}/${next.instanceId}`;
    await used(open, recordOf('web', 'b', { identity, firstSeen: now, lastSeen: now }), record);
    aws.terminate(instanceId);
    open.clock.now += 2 * hour;
    expect(await open.prune(yes)).toMatchObject({ code: 0, rows: [{ identity: record.identity, decision: 'pruned' }] });
    expect((await open.store.findNode('web'))?.identity).toBe(identity);
  });

  test('that run are kept: their record is what refuses them', async () => {
    const open = await site();
    const { record } = await open.join('back');
    await retire(open, record);
    open.clock.now += 9 * hour;
    expect(await open.prune(yes)).toMatchObject({
      code: 0,
      rows: [{ found: 'retired', decision: 'kept', why: 'it exists' }],
    });
    expect(await open.nodes()).toEqual(['back']);
  });
});

describe('--revoke', () => {
  test('revokes the certificates of these machines and of no other, and locks nothing', async () => {
    const open = await site();
    const [ended, running] = [await open.join('ended'), await open.join('running')];
    const issue = (node: string, identity: string) =>
      open.issued(now - day, {
        identity,
        metadata: { uid: randomUUID() },
        request: { subject: { O: 'system:nodes', CN: `system:node:${node}` } },
      });
    const record = await issue('ended', ended.identity);
    await issue('running', running.identity);
    aws.terminate(ended.instanceId);
    const ran = await open.prune([...yes, '--revoke']);
    expect(ran).toMatchObject({ code: 0, rows: [{ node: 'ended', decision: 'pruned', revoked: 1 }] });
    const { revocations, close } = openEmbeddedRevocations(revocationsFileIn(open.folder));
    onTestFinished(close);
    const listed = await Array.fromAsync(revocations.list(record.caKeyId, open.clock.now));
    expect(listed).toMatchObject([
      { serial: record.serial, reason: 'cessationOfOperation', note: 'scaled in', by: 'ada' },
    ]);
    expect(await open.register.listLocks()).toEqual([]);
    expect(await open.nodes()).toEqual(['running']);
  });

  test('needs --yes, and --yes a reason', async () => {
    const { prune } = await site();
    expect(await prune(['--revoke'])).toMatchObject({ code: 2, err: /--yes/ });
    expect(await prune(['--yes'])).toMatchObject({ code: 2, err: /--reason/ });
    expect((await prune([...yes, '--dry-run'])).code).toBe(2);
  });
});

describe('Node objects', () => {
  interface ApiNode {
    readonly metadata: { readonly name: string; readonly uid: string };
    readonly spec: { readonly providerID?: string };
  }

  /** An API server with these Nodes: a DELETE demands the UID of the object, as the real one does. */
  async function apiWith(folder: string, nodes: Map<string, ApiNode>) {
    const server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const [path = ''] = (request.url ?? '').split('?');
        const name = /^\/api\/v1\/nodes\/(.+)$/.exec(path)?.[1];
        const send = (status: number, body: object) => {
          response.statusCode = status;
          response.end(JSON.stringify(body));
        };
        if (path === '/api/v1/nodes') return send(200, { kind: 'NodeList', metadata: {}, items: [...nodes.values()] });
        const node = nodes.get(name ?? '');
        if (request.method !== 'DELETE' || node === undefined)
          return send(404, { kind: 'Status', code: 404, message: 'no' });
        const { preconditions } = JSON.parse(Buffer.concat(chunks).toString()) as { preconditions: { uid: string } };
        if (preconditions.uid !== node.metadata.uid)
          return send(409, { kind: 'Status', code: 409, reason: 'Conflict' });
        nodes.delete(node.metadata.name);
        send(200, { kind: 'Status', status: 'Success' });
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const file = join(folder, 'kubeconfig');
    const { port } = server.address() as AddressInfo;
    const text = JSON.stringify({
      clusters: [{ name: 'c', cluster: { server: `http://127.0.0.1:${port}` } }],
      users: [{ name: 'u', user: { token: 't' } }],
      contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
      'current-context': 'x',
    });
    writeFileSync(file, text);
    return ['--kubeconfig', file];
  }
  const nodeOf = (name: string, providerID?: string): readonly [string, ApiNode] => [
    name,
    { metadata: { name, uid: `uid-of-${name}` }, spec: providerID === undefined ? {} : { providerID } },
  ];

  test('of machines that ended are deleted by their provider ID; those of others stay', async () => {
    const open = await site();
    const [ended, replaced, running] = [
      await open.join('ended'),
      await open.join('replaced'),
      await open.join('running'),
    ];
    const bare = await open.join('bare');
    for (const { instanceId } of [ended, replaced, bare]) aws.terminate(instanceId);
    const nodes = new Map([
      nodeOf('ended', ended.providerId),
      nodeOf('replaced', 'aws:///eu-central-1a/i-0fedcba9876543210'),
      nodeOf('running', running.providerId),
      nodeOf('bare'),
    ]);
    const access = await apiWith(open.folder, nodes);
    expect((await open.prune(access)).rows).toMatchObject([
      { node: 'bare' },
      { node: 'ended', nodeObject: 'found' },
      { node: 'replaced' },
    ]);
    expect(nodes.size).toBe(4);
    const ran = await open.prune([...yes, ...access]);
    expect([ran.code, ran.rows.map(({ node, nodeObject }) => [node, nodeObject])]).toEqual([
      0,
      [
        ['bare', undefined],
        ['ended', 'deleted'],
        ['replaced', undefined],
      ],
    ]);
    expect([...nodes.keys()]).toEqual(['replaced', 'running', 'bare']);
  });

  test('that are another object by now stay, and so do all without a cluster', async () => {
    const open = await site();
    const { instanceId, providerId } = await open.join('ended');
    aws.terminate(instanceId);
    const nodes = new Map([nodeOf('ended', providerId)]);
    const access = await apiWith(open.folder, nodes);
    const get = nodes.get.bind(nodes);
    // Registered again between the list and the deletion.
    nodes.get = (name) => {
      const found = get(name);
      return found === undefined ? undefined : { ...found, metadata: { ...found.metadata, uid: 'another' } };
    };
    const ran = await open.prune([...yes, ...access]);
    expect(ran).toMatchObject({ code: 0, rows: [{ decision: 'pruned' }] });
    expect(ran.rows[0]).not.toHaveProperty('nodeObject');
    expect(nodes.size).toBe(1);
  });
});

test('which cluster, and where its machines are, must be known', async () => {
  const none = await run(['machines', 'prune', '--cluster', 'prod'], { environment: {} });
  expect([none.code, none.err]).toEqual([2, expect.stringContaining('--config')]);
  const { attestation: _, ...rest } = (JSON.parse(configuration) as { clusters: { prod: Record<string, unknown> } })
    .clusters.prod;
  const tpm = {
    ...rest,
    profiles: { 'cluster.x-k8s.io/kube-apiserver-client-kubelet-tpm': { ca: 'ca' } },
    attestation: { audience: 'prod', tpm: { machines: 'listed' } },
  };
  const files = { 'c.yaml': JSON.stringify({ version: 1, clusters: { prod: tpm } }) };
  const ran = await run(['machines', 'prune', '--cluster', 'prod', '--config', 'c.yaml'], { files, environment: {} });
  expect([ran.code, ran.err]).toEqual([3, expect.stringContaining('has no attestation.aws')]);
});
