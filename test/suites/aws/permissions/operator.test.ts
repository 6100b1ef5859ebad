/** What an operator with the operator policy may do: each statement is left out in turn, and the command that needs it names it. */
import { randomBytes, randomUUID } from 'node:crypto';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { CreateTagsCommand, EC2Client, RunInstancesCommand } from '@aws-sdk/client-ec2';
import {
  GetPolicyVersionCommand,
  GetRolePolicyCommand,
  IAMClient,
  ListRolePoliciesCommand,
  ListRolesCommand,
  PutRolePolicyCommand,
} from '@aws-sdk/client-iam';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { dynamoDbAttestationAdmin } from '../../../../adapters/dynamodb/attestation-admin.ts';
import { dynamoDbAttestations } from '../../../../adapters/dynamodb/attestations.ts';
import { ask, questionFor } from '../../../conformance/questions.ts';
import { emulatedRegion } from '../../../harness/aws/emulator.ts';
import {
  assumeRole,
  createRole,
  deployOnMiniStack,
  synthesiseClusters,
  type MiniStackDeployment,
} from '../../../harness/aws/ministack-deployment.ts';
import { operatorLogin } from '../../../harness/aws/operator-login.ts';
import { makeRequest, newKey } from '../../../harness/x509/requests.ts';
import { requireTools } from '../../../tools/tools.ts';
import { recordOf, used } from '../../../unit/cli/register.ts';
import { run } from '../../../unit/cli/run.ts';
import { doors, postAt } from '../ministack/doors.ts';
import { operatorTable } from './tables.ts';
import { permissionsOf } from './statements.ts';

const { skip } = await requireTools('ministack');

const account = '000000000000';
const look = `arn:aws:iam::${account}:role/look`;
const settingsOf = (audience: string, accounts: object) => ({
  profiles: {
    'kubernetes.io/kube-apiserver-client': { ca: 'ca', maxTtl: '1d' },
    'cluster.x-k8s.io/kube-apiserver-client-kubelet-aws': { ca: 'ca', maxTtl: '1d' },
  },
  attestation: {
    audience,
    aws: {
      accounts,
      regions: [emulatedRegion],
      tags: { cluster: 'demo' },
      nodeName: ['tag:Name'],
      // MiniStack tells nothing of metadata options and interfaces.
      instance: { httpTokensRequired: false, maxHopLimit: 'any', maxAttachSkewSeconds: 'any' },
    },
  },
});
/** `far`: its instances are described by another role, as those of other accounts are. */
const settings = {
  demo: settingsOf('demo', { [account]: {} }),
  far: settingsOf('far', { [account]: { assumeRole: look } }),
} as const;
type Cluster = keyof typeof settings;

interface Statement {
  readonly Sid: string;
  readonly Action: string | readonly string[];
  readonly Resource: unknown;
  readonly Condition?: object;
}

describe.skipIf(skip)('an operator with the operator policy', () => {
  const assembly = skip ? undefined : synthesiseClusters(settings);
  let deployment: MiniStackDeployment;
  const statements = new Map<Cluster, readonly Statement[]>();
  let serial: string;
  const uid = randomUUID();

  beforeAll(async () => {
    deployment = await deployOnMiniStack(assembly!);
    const { client } = deployment.emulator;
    for (const cluster of ['demo', 'far'] as const) statements.set(cluster, await policyOf(deployment, cluster));
    await createRole(deployment.emulator, 'look', 'ec2:DescribeInstances');
    const options = {
      client: new DynamoDBClient(client),
      tableName: deployment.outputs['demo']?.['AttestationsTable'] ?? '',
      randomBytes,
    };
    const made = { store: dynamoDbAttestations(options), register: dynamoDbAttestationAdmin(options) };
    await used(made, recordOf('worker-1', 'a'));
    await used(made, recordOf('worker-2', 'b'));
    options.client.destroy();
    await launchMachine(deployment);
    const { object } = ask(questionFor('kubernetes.io/kube-apiserver-client', { username: 'suite', groups: [] }));
    const { metadata } = object as { readonly metadata: object };
    const request = { ...object, metadata: { ...metadata, uid } };
    const answer = await postAt(deployment, doors.httpApi, 'sign', request, await doors.httpApi.authorize(deployment));
    if (answer.outcome !== 'issued') throw new Error(answer.text);
    const { out } = await countersign(['trace', uid, '-o', 'json'], []);
    serial = (JSON.parse(out) as { readonly certificate: { readonly serial: string } }).certificate.serial;
  });
  afterAll(() => deployment?.stop());
  afterEach(() => vi.unstubAllEnvs());

  /** By a role that has the policy without these statements. */
  async function countersign(argv: readonly string[], left: readonly string[], cluster: Cluster = 'demo') {
    const { emulator } = deployment;
    const name = `operator-${randomUUID().slice(0, 8)}`;
    // The policy of operators does not contain the right to have a CRL issued.
    const arn = await createRole(
      emulator,
      name,
      ...(left.includes('lambda:InvokeFunction') ? [] : ['lambda:InvokeFunction']),
    );
    const kept = statements
      .get(cluster)!
      .filter(({ Sid, Action }) => !left.includes(`OperatorPolicy ${Sid} ${String(Action)}`));
    const iam = new IAMClient(emulator.client);
    await iam.send(
      new PutRolePolicyCommand({ RoleName: name, PolicyName: 'operator', PolicyDocument: documentOf(kept) }),
    );
    iam.destroy();
    const session = await deployment.assume(arn, await deployment.relay('demo'));
    for (const [key, value] of Object.entries(operatorLogin(emulator, session))) vi.stubEnv(key, value);
    const clusters = { [cluster]: { cas: { ca: { subject: { commonName: 'ca' } } }, ...settings[cluster] } };
    return run([...argv, '--cluster', cluster], {
      environment: { KUBECONFIG: '/nonexistent/kubeconfig' },
      files: { 'c.yaml': JSON.stringify({ version: 1, clusters }) },
      world: { now: Date.now },
    });
  }

  const why = ['--reason', 'suite'];
  const final = ['--reason', 'privilegeWithdrawn', '--note', 'suite'];
  const status = ['status', '--skip-kubernetes'];
  const adopt = ['tofu', 'adopt', '--config', 'c.yaml'];
  /** In an order in which each finds what it needs. */
  const commands: Readonly<Record<string, () => readonly string[]>> = {
    'OperatorPolicy FindRegister cloudformation:DescribeStacks': () => ['tofu', 'list'],
    'OperatorPolicy ListRegister dynamodb:Scan': () => ['tofu', 'list'],
    'OperatorPolicy ReadRegister dynamodb:GetItem': () => ['tofu', 'show', '--node', 'worker-1'],
    'OperatorPolicy WriteRegister dynamodb:PutItem': () => ['lock', 'worker-1', ...why],
    'OperatorPolicy ClearRegister dynamodb:DeleteItem': () => ['unlock', 'worker-1', ...why],
    'OperatorPolicy ChangeRegister dynamodb:UpdateItem': () => ['machines', 'allow', 'aws#i-0*', ...why],
    'OperatorPolicy LookAtInstances ec2:DescribeInstances': () => adopt,
    'OperatorPolicy LookElsewhere sts:AssumeRole': () => adopt,
    'OperatorPolicy ReadLedger dynamodb:GetItem': () => ['trace', uid],
    'OperatorPolicy ReadLogs logs:FilterLogEvents': () => ['trace', uid],
    'OperatorPolicy FindSerial dynamodb:Query': () => ['trace', '--serial', serial],
    'OperatorPolicy ListCertificates dynamodb:Query': () => ['cert', 'list'],
    'OperatorPolicy LookAtTables dynamodb:DescribeTable': () => status,
    'OperatorPolicy LookAtBackups dynamodb:DescribeContinuousBackups': () => status,
    'OperatorPolicy Revoke dynamodb:PutItem': () => ['cert', 'revoke', '--serial', serial, ...final],
  };
  const { 'AttestPolicy LookElsewhere sts:AssumeRole': _, ...exercised } = operatorTable.exercised;

  test('has the statements that are tried here, and those with a written reason', () => {
    const given = [...assembly!.templates.values()].flatMap(permissionsOf);
    const own = new Set(given.filter((permission) => permission.startsWith('OperatorPolicy ')));
    const reviewed = Object.keys(operatorTable.reviewed);
    expect([...own].toSorted()).toEqual([...Object.keys(exercised), ...reviewed].toSorted());
  });

  test.each(Object.entries(exercised))('without %s a command is told: %s', async (left, says) => {
    const argv = commands[left]?.() ?? [];
    const cluster = left.includes('LookElsewhere') ? 'far' : 'demo';
    const refused = await countersign(argv, [left], cluster);
    expect(`${refused.out}\n${refused.err}`).toContain(says);
    const done = await countersign(argv, [], cluster);
    // The exit code of status also says that MiniStack has no endpoint under the name that the stack gives.
    expect(done.code, done.err).toBe(argv === status ? 1 : 0);
    expect(`${done.out}\n${done.err}`).not.toContain(says);
  });

  test('the right to have a CRL issued is apart: without it the revocation is recorded, listed, and has no CRL', async () => {
    const invoke = 'lambda:InvokeFunction';
    const refused = await countersign(commands['OperatorPolicy Revoke dynamodb:PutItem']!(), [invoke]);
    expect([refused.code === 0, refused.err]).toEqual([false, expect.stringContaining(invoke)]);
    const listed = await countersign(['cert', 'revoked', '-o', 'json'], [invoke]);
    const by = expect.stringMatching(/:assumed-role\/operator-/) as string;
    expect(JSON.parse(listed.out)).toMatchObject([
      { serial, reason: 'privilegeWithdrawn', by, matchedBy: `serial#${serial}` },
    ]);
  });

  test('a revoked node gets nothing from attest and sign within a minute, with any signer; another node goes on', async () => {
    const authorize = await doors.httpApi.authorize(deployment);
    const asks = (node: string) => [
      requestBy(node, 'kubernetes.io/kube-apiserver-client', { CN: 'metrics' }),
      requestBy(node, 'cluster.x-k8s.io/kube-apiserver-client-kubelet-aws', {
        O: 'system:nodes',
        CN: `system:node:${node}`,
      }),
    ];
    const answersTo = async (node: string) => {
      const texts: string[] = [];
      for (const object of asks(node))
        for (const path of ['attest', 'sign'] as const) {
          const body = path === 'attest' ? { request: object } : object;
          texts.push((await postAt(deployment, doors.httpApi, path, body, authorize)).text);
        }
      return texts.map((text) => text.includes('Locked'));
    };
    const unlocked = [false, false, false, false];
    expect([await answersTo('w7'), await answersTo('w8')]).toEqual([unlocked, unlocked]);
    const begun = Date.now();
    const done = await countersign(['cert', 'revoke', '--node', 'w7', ...final], []);
    expect([done.code, done.out]).toEqual([0, expect.stringContaining('locked: node w7')]);
    expect([await answersTo('w7'), await answersTo('w8')]).toEqual([[true, true, true, true], unlocked]);
    expect(Date.now() - begun).toBeLessThan(60_000);
  });

  test('and attest assumes the role of another account by a statement of its own', async () => {
    const { emulator } = deployment;
    const iam = new IAMClient(emulator.client);
    const { Roles: roles = [] } = await iam.send(new ListRolesCommand({}));
    const { RoleName = '', Arn = '' } =
      roles.find(({ RoleName: name = '' }) => /far-state-AttestRole/.test(name)) ?? {};
    const assumeLook = async () =>
      assumeRole({ ...emulator.client, credentials: await assumeRole(emulator.client, Arn) }, look);
    await expect(assumeLook()).resolves.toBeDefined();
    const { PolicyNames: [PolicyName = ''] = [] } = await iam.send(new ListRolePoliciesCommand({ RoleName }));
    const { PolicyDocument: text = '' } = await iam.send(new GetRolePolicyCommand({ RoleName, PolicyName }));
    const kept = readStatements(text).filter(({ Sid }) => Sid !== 'LookElsewhere');
    await iam.send(new PutRolePolicyCommand({ RoleName, PolicyName, PolicyDocument: documentOf(kept) }));
    iam.destroy();
    await expect(assumeLook()).rejects.toThrow('not authorized to perform: sts:AssumeRole');
  });
});

/** An approved request of a node, which attest and sign both take. */
function requestBy(node: string, signerName: string, subject: Readonly<Record<string, string>>): object {
  const { pem } = makeRequest({ subject, key: newKey('P-256') });
  return {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name: 'suite', uid: randomUUID() },
    spec: {
      request: Buffer.from(pem).toString('base64'),
      signerName,
      usages: ['digital signature', 'client auth'],
      username: `system:node:${node}`,
      groups: ['system:nodes', 'system:authenticated'],
    },
    status: { conditions: [{ type: 'Approved', status: 'True', reason: 'Suite', message: '' }] },
  };
}

const documentOf = (statements: readonly Statement[]): string =>
  JSON.stringify({ Version: '2012-10-17', Statement: statements });

function readStatements(text: string): readonly Statement[] {
  const document = JSON.parse(text.startsWith('%') ? decodeURIComponent(text) : text) as { Statement: Statement[] };
  return document.Statement;
}

/** The deployed statements, as MiniStack can judge them. */
async function policyOf({ emulator, outputs }: MiniStackDeployment, cluster: Cluster): Promise<readonly Statement[]> {
  const iam = new IAMClient(emulator.client);
  const wanted = { PolicyArn: outputs[cluster]?.['OperatorPolicyArn'], VersionId: 'v1' };
  const { PolicyVersion: version } = await iam.send(new GetPolicyVersionCommand(wanted));
  iam.destroy();
  return readStatements(version?.Document ?? '').map(({ Condition: condition, ...statement }) => ({
    ...statement,
    // MiniStack compares the ARN of a log group without its end `:*` (trace.test.ts), and tells policies no region.
    ...(statement.Sid === 'ReadLogs'
      ? { Resource: [statement.Resource].flat().map((arn) => String(arn).replace(/:\*$/, '')) }
      : {}),
    ...(condition === undefined || statement.Sid === 'LookAtInstances' ? {} : { Condition: condition }),
  }));
}

async function launchMachine({ emulator }: MiniStackDeployment): Promise<void> {
  const ec2 = new EC2Client(emulator.client);
  const { Instances: [made] = [] } = await ec2.send(
    new RunInstancesCommand({ ImageId: 'ami-00000000', MinCount: 1, MaxCount: 1 }),
  );
  const tags = Object.entries({ cluster: 'demo', Name: 'w1' }).map(([Key, Value]) => ({ Key, Value }));
  await ec2.send(new CreateTagsCommand({ Resources: [made?.InstanceId ?? ''], Tags: tags }));
  ec2.destroy();
}
