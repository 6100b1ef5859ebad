/** Machines that run already, over the adapter for EC2, from an EC2 that refuses what the real one does. */
import { EC2Client } from '@aws-sdk/client-ec2';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { ec2Endpoint, ec2Fleet } from '../../../../adapters/aws/ec2.ts';
import { processIo } from '../../../../cli/world.ts';
import type { OpenRegister, RegisterPlace } from '../../../../cli/runtime/io.ts';
import { decideFirstUse } from '../../../../core/attestation/first-use.ts';
import { startFakeEc2, type FakeEc2 } from '../../../harness/fake-aws/ec2.ts';
import type { FakeInstance, InstanceSpec } from '../../../harness/fake-aws/machine/instance.ts';
import { createFakeAws } from '../../../harness/fake-aws/world.ts';
import { audited, newFolder, recordOf, used } from '../register.ts';
import type { Folder } from '../register.ts';
import { now, run } from '../run.ts';

const [account, region] = ['111122223333', 'eu-central-1'];
const tags = { 'kubernetes.io/cluster/prod': 'owned' };

/** Each test has its own world, since a list returns all instances. */
let world = createFakeAws();
let ec2: FakeEc2;
const shared = new Proxy({} as typeof world, { get: (_, key) => Reflect.get(world, key) as unknown });
beforeAll(async () => (ec2 = await startFakeEc2({ aws: shared })));
afterEach(() => {
  world = createFakeAws();
  ec2.mend();
});
afterAll(() => ec2.close());

function launch(spec: InstanceSpec = {}): FakeInstance {
  return world.launch({ account, region, tags, ...spec });
}

const identityOf = ({ instanceId }: FakeInstance): string => `aws#aws/${account}/${region}/${instanceId}`;

function file(change: Readonly<Record<string, unknown>> = {}): string {
  const aws = { accounts: { [account]: {} }, regions: [region], tags, nodeName: ['privateDnsName'], ...change };
  return JSON.stringify({
    version: 1,
    clusters: {
      prod: {
        cas: { ca: { subject: { commonName: 'prod' } } },
        profiles: { 'cluster.x-k8s.io/kube-apiserver-client-kubelet-aws': { ca: 'ca' } },
        attestation: { audience: 'prod', aws },
      },
    },
  });
}

/** As an operator who may look at instances, five at a time. */
async function adopt(
  folder: Folder,
  argv: readonly string[],
  { policy = {}, ...more }: { policy?: object; openRegister?: (place: RegisterPlace) => Promise<OpenRegister> } = {},
) {
  const credentials = world.createUser(account, 'ada', ['ec2:DescribeInstances']);
  const connect = (where: { region: string }) =>
    new EC2Client({ region: where.region, endpoint: ec2.url, credentials, maxAttempts: 1 });
  return run(['tofu', 'adopt', '--data', folder.path, '--config', 'c.yaml', ...argv], {
    files: { 'c.yaml': file({ ...policy }) },
    world: {
      userName: () => 'ada',
      connectEc2: async () => ({ ...ec2Endpoint(connect), ...ec2Fleet(connect, 5) }),
      ...more,
    },
  });
}

async function rowsOf(folder: Folder, argv: readonly string[] = [], policy: object = {}) {
  const { out, ...ran } = await adopt(folder, [...argv, '-o', 'json'], { policy });
  return { ...ran, rows: out === '' ? [] : (JSON.parse(out) as readonly Record<string, string>[]) };
}

const yes = ['--yes', '--reason', 'attestation begins'];

describe('all running machines', () => {
  test('shown first, and nothing is written', async () => {
    const [folder, machine] = [await newFolder(), launch()];
    const ran = await adopt(folder, []);
    expect(ran.code).toBe(0);
    expect(ran.out.split('\n').map((line) => line.split(/ {2,}/))).toEqual([
      ['NODE', 'IDENTITY', 'DECISION', 'WHY'],
      [machine.privateDnsName, identityOf(machine), 'adopt'],
      [''],
    ]);
    expect(ran.err).toBe('countersign: nothing was written; --yes --reason … adopts 1 of 1\n');
    expect(await folder.store.findNode(machine.privateDnsName)).toBeUndefined();
    expect((await adopt(folder, ['--dry-run'])).out).toBe(ran.out);
  });

  test('adopted: a record without a key, which only the node itself can use', async () => {
    const [folder, machine] = [await newFolder(), launch()];
    const { code, err, rows } = await rowsOf(folder, yes);
    const providerId = `aws:///${machine.availabilityZone}/${machine.instanceId}`;
    const [identity, nodeName] = [identityOf(machine), machine.privateDnsName];
    const announced = `countersign: folder ${folder.path}, as ada\n`;
    expect([code, err, rows]).toEqual([0, announced, [{ identity, node: nodeName, providerId, decision: 'adopted' }]]);
    const record = await folder.store.findNode(nodeName);
    expect(record).toEqual({
      identity,
      nodeName,
      providerId,
      state: 'active',
      previousSpkis: [],
      startedAt: machine.launchTime,
      addresses: [],
      firstSeen: now,
      lastSeen: now,
      renewals: 0,
      uses: 0,
      rev: 1,
    });
    expect(await audited(folder)).toMatchObject([
      { action: 'adopt', by: 'ada', subject: identity, nodeName, reason: 'attestation begins' },
    ]);
    const asked = { identity, nodeName, spkiSha256: 'aa', secure: true, allowRestart: true, now, record };
    expect(decideFirstUse({ ...asked, byNodeItself: true, holder: undefined })).toMatchObject({ kind: 'renewal' });
    expect(decideFirstUse({ ...asked, byNodeItself: false, holder: undefined })).toMatchObject({
      kind: 'refused',
      violations: [{ code: 'TofuReuse' }],
    });
    const again = await rowsOf(folder, yes);
    expect([again.code, again.rows[0]?.['decision']]).toEqual([0, 'on record']);
    expect(await audited(folder)).toHaveLength(1);
  });

  test('page by page, only instances that run and have the tag', async () => {
    const folder = await newFolder();
    // Addresses at random may give two machines one name.
    const machines = Array.from({ length: 12 }, (_, index) => launch({ privateIp: `10.0.0.${index + 1}` }));
    launch({ state: 'stopped' });
    launch({ tags: {} });
    launch({ account: '444455556666' });
    launch({ region: 'us-east-1' });
    const { rows } = await rowsOf(folder, yes);
    expect(rows.map(({ identity }) => identity)).toEqual(machines.map(identityOf).toSorted());
    expect(new Set(rows.map(({ decision }) => decision))).toEqual(new Set(['adopted']));
    expect(ec2.calls.at(-1)?.parameters).toMatchObject({ MaxResults: '5', NextToken: expect.any(String) as unknown });
  });

  test('each rule of the policy is checked against the facts of EC2, also when its filters let more through', async () => {
    const folder = await newFolder();
    const weak = { ...launch().metadataOptions, httpTokens: 'optional' } as const;
    const machine = launch({ metadataOptions: weak });
    const { code, rows } = await rowsOf(folder, yes, { vpcs: [machine.vpcId] });
    expect(code).toBe(0);
    expect(rows.find(({ identity }) => identity === identityOf(machine))).toMatchObject({
      decision: 'refused',
      why: 'the instance answers IMDSv1: set HttpTokens to required',
    });
    expect(await folder.store.findIdentity(identityOf(machine))).toBeUndefined();
  });

  test('a tag whose value looks like a pattern is that value only', async () => {
    const folder = await newFolder();
    const [exact, other] = [launch({ tags: { pool: 'a*' } }), launch({ tags: { pool: 'ab' } })];
    const { rows } = await rowsOf(folder, [], { tags: { pool: 'a*' } });
    const decisions = new Map(rows.map(({ identity, decision }) => [identity, decision]));
    expect([decisions.get(identityOf(exact)), decisions.get(identityOf(other))]).toEqual(['adopt', 'refused']);
  });

  test('with a list of machines, those on it', async () => {
    const folder = await newFolder();
    const [listed, other] = [launch(), launch()];
    const allow = ['machines', 'allow', `aws#${listed.instanceId.slice(0, -1)}*`, '--reason', 'x'];
    await run([...allow, '--data', folder.path]);
    const { rows } = await rowsOf(folder, yes, { machines: 'listed' });
    const of = (machine: FakeInstance) => rows.find(({ identity }) => identity === identityOf(machine));
    expect(of(listed)).toMatchObject({ decision: 'adopted' });
    expect(of(other)).toMatchObject({
      decision: 'refused',
      why: expect.stringContaining('not on the list') as unknown,
    });
  });

  test('a name of another machine, a machine under another name, two machines with one name: conflicts', async () => {
    const folder = await newFolder();
    const Name = 'worker-1';
    const [first, second, third, fourth, fifth] = [
      launch({ tags: { ...tags, Name } }),
      launch({ tags: { ...tags, Name: 'worker-2' } }),
      launch({ tags: { ...tags, Name: 'worker-3' } }),
      launch({ tags: { ...tags, Name: 'worker-3' } }),
      launch({ tags: { ...tags, Name: 'worker-4' } }),
    ];
    await used(folder, recordOf(Name, 'a'));
    await used(folder, { ...recordOf('renamed', 'b'), identity: identityOf(second) });
    const retired = { ...recordOf('worker-4', 'c'), identity: identityOf(fifth) };
    await used(folder, retired);
    await used(folder, recordOf('worker-4', 'd'), retired);
    const { code, rows } = await rowsOf(folder, yes, { nodeName: ['tag:Name'] });
    expect(code).toBe(6);
    const why = new Map(rows.map(({ identity, decision, why: text }) => [identity, `${decision}: ${text}`]));
    expect(why.get(identityOf(first))).toBe(`conflict: the name belongs to ${recordOf(Name, 'a').identity}`);
    expect(why.get(identityOf(second))).toBe('conflict: it is on record as renamed, active');
    for (const twin of [third, fourth]) expect(why.get(identityOf(twin))).toBe('conflict: 2 machines have this name');
    expect(why.get(identityOf(fifth))).toBe('conflict: it is on record as worker-4, retired');
    expect(await audited(folder)).toEqual([]);
  });

  test('two rules name a machine: the operator chooses one', async () => {
    const [folder, machine] = [await newFolder(), launch()];
    const policy = { nodeName: ['privateDnsName', 'instanceId', 'pattern:*'] };
    const unsure = await rowsOf(folder, [], policy);
    expect([unsure.code, unsure.rows]).toEqual([0, [expect.objectContaining({ decision: 'no name' })]]);
    const { rows } = await rowsOf(folder, ['--name-rule', 'instanceId', ...yes], policy);
    expect(rows).toMatchObject([{ node: machine.instanceId, decision: 'adopted' }]);
    const wrong = await rowsOf(folder, ['--name-rule', 'tag:Name'], policy);
    expect([wrong.code, wrong.err]).toEqual([
      2,
      expect.stringMatching(/it has privateDnsName, instanceId, pattern:\*/),
    ]);
  });

  test('a name that another machine claimed between the read and the write is left as it is', async () => {
    const [folder, machine] = [await newFolder(), launch()];
    const rival = recordOf(machine.privateDnsName, 'f');
    const ran = await adopt(folder, yes, {
      async openRegister(place) {
        const open = await processIo().openRegister(place);
        const adoptLate: typeof open.register.adopt = async (record, audit) => {
          await used(folder, rival);
          return open.register.adopt(record, audit);
        };
        return { ...open, register: { ...open.register, adopt: adoptLate } };
      },
    });
    expect([ran.code, ran.out]).toEqual([
      6,
      expect.stringContaining(`conflict  the name belongs to ${rival.identity}`),
    ]);
    expect(await audited(folder)).toEqual([]);
  });
});

describe('one, by hand', () => {
  const policy = { nodeName: ['pattern:cp-*'] };
  const one = (machine: FakeInstance, node = 'cp-1') => ['--node', node, '--identity', identityOf(machine), ...yes];

  test('a pattern names no machine: the operator names one within it', async () => {
    const [folder, machine] = [await newFolder(), launch()];
    expect((await rowsOf(folder, [], policy)).rows).toMatchObject([{ decision: 'no name' }]);
    const outside = await rowsOf(folder, one(machine, 'worker-1'), policy);
    expect([outside.code, outside.rows]).toEqual([1, [expect.objectContaining({ decision: 'refused' })]]);
    const { code, rows } = await rowsOf(folder, one(machine), policy);
    expect([code, rows]).toEqual([0, [expect.objectContaining({ node: 'cp-1', decision: 'adopted' })]]);
    const moved = await rowsOf(folder, one(machine, 'cp-2'), policy);
    expect([moved.code, moved.rows[0]?.['why']]).toEqual([6, 'it is on record as cp-1, active']);
  });

  test('one that does not run is refused, one that EC2 does not have is not found', async () => {
    const folder = await newFolder();
    const stopped = launch({ state: 'stopped' });
    const ran = await rowsOf(folder, one(stopped), policy);
    expect([ran.code, ran.rows[0]?.['why']]).toEqual([1, 'the instance is stopped']);
    world.forget(stopped.instanceId);
    expect((await rowsOf(folder, one(stopped), policy)).code).toBe(4);
  });

  test.each([
    ['another account', `aws#aws/999999999999/${region}/i-${'a'.repeat(17)}`, 1],
    ['another region', `aws#aws/${account}/us-east-1/i-${'a'.repeat(17)}`, 1],
    ['another partition', `aws#aws-cn/${account}/${region}/i-${'a'.repeat(17)}`, 2],
    ['an insecure machine', 'insecure#cp-1', 2],
    ['no identity at all', 'cp-1', 2],
  ])('%s is not asked about', async (_, identity, code) => {
    const before = ec2.calls.length;
    const ran = await adopt(await newFolder(), ['--node', 'cp-1', '--identity', identity, ...yes], { policy });
    expect([ran.code, ec2.calls.length]).toEqual([code, before]);
  });
});

test.each<readonly [string, readonly string[], number]>([
  ['--yes without a reason', ['--yes'], 2],
  ['--yes and --dry-run', ['--dry-run', ...yes], 2],
  ['a node without its machine', ['--node', 'cp-1'], 2],
  ['a machine without its node', ['--identity', `aws#aws/${account}/${region}/i-${'a'.repeat(17)}`], 2],
])('%s is a usage error', async (_, argv, code) => {
  expect((await adopt(await newFolder(), argv)).code).toBe(code);
});

test('a refusal or failure of EC2 is not an empty list', async () => {
  const folder = await newFolder();
  ec2.fail(403, 'UnauthorizedOperation', 'no');
  expect(await adopt(folder, [])).toMatchObject({
    code: 3,
    out: '',
    err: expect.stringContaining('UnauthorizedOperation') as unknown,
  });
  ec2.fail(503, 'Unavailable', 'no');
  expect(await adopt(folder, [])).toMatchObject({ code: 5, out: '' });
});

test('a machine with a TPM cannot be adopted, and the operator is told what to do', async () => {
  const folder = await newFolder();
  const told = expect.stringContaining('no API tells which TPM a running node has') as unknown;
  const ran = await adopt(folder, ['--node', 'cp-1', '--identity', `tpm#${'a'.repeat(64)}`, ...yes]);
  expect(ran).toMatchObject({ code: 2, out: '', err: told });
  const profiles = { 'cluster.x-k8s.io/kube-apiserver-client-kubelet-tpm': { ca: 'ca' } };
  const cluster = {
    cas: { ca: { subject: { commonName: 'prod' } } },
    profiles,
    attestation: { audience: 'prod', tpm: {} },
  };
  const files = { 'c.yaml': JSON.stringify({ version: 1, clusters: { prod: cluster } }) };
  const none = await run(['tofu', 'adopt', '--data', folder.path, '--config', 'c.yaml'], { files });
  expect(none).toMatchObject({ code: 3, out: '', err: told });
});

test('without a file the machines that may join are unknown', async () => {
  const folder = await newFolder();
  expect(await run(['tofu', 'adopt', '--data', folder.path])).toMatchObject({ code: 2 });
});
