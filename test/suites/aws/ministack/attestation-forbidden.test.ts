/**
 * Where machines prove themselves: what attest, sign and an operator must not do, tried with sessions of theirs; and
 * beside it what they may, so that a refusal means something.
 */
import {
  DeleteItemCommand,
  DynamoDBClient,
  GetItemCommand,
  PutItemCommand,
  ScanCommand,
  UpdateItemCommand,
} from '@aws-sdk/client-dynamodb';
import { DescribeInstancesCommand, EC2Client, TerminateInstancesCommand } from '@aws-sdk/client-ec2';
import { AttachRolePolicyCommand, IAMClient } from '@aws-sdk/client-iam';
import { GetPublicKeyCommand, KMSClient, SignCommand } from '@aws-sdk/client-kms';
import { GetFunctionConfigurationCommand, InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import { AssumeRoleCommand, STSClient } from '@aws-sdk/client-sts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  createRole,
  deployOnMiniStack,
  synthesiseClusters,
  type MiniStackDeployment,
  type SessionCredentials,
} from '../../../harness/aws/ministack-deployment.ts';
import { emulatedRegion } from '../../../harness/aws/emulator.ts';
import { requireTools } from '../../../tools/tools.ts';

const { skip } = await requireTools('ministack');

const account = '000000000000';
const settings = {
  profiles: { 'cluster.x-k8s.io/kube-apiserver-client-kubelet-aws': { ca: 'ca', maxTtl: '1d' } },
  attestation: {
    aws: {
      accounts: { [account]: {} },
      regions: [emulatedRegion],
      tags: { cluster: 'demo' },
      nodeName: ['instanceId'],
    },
  },
};

type Who = 'attest' | 'sign' | 'operator';
interface Clients {
  readonly kms: KMSClient;
  readonly dynamodb: DynamoDBClient;
  readonly lambda: LambdaClient;
  readonly ec2: EC2Client;
  readonly elsewhere: EC2Client;
  readonly sts: STSClient;
}
interface Target {
  readonly key: string;
  readonly certificates: string;
  readonly attestations: string;
}
type Try = (clients: Clients, target: Target) => Promise<unknown>;

const item = (pk: string) => ({ pk: { S: pk } });
const put =
  (table: 'certificates' | 'attestations', pk: string): Try =>
  ({ dynamodb }, target) =>
    dynamodb.send(new PutItemCommand({ TableName: target[table], Item: item(pk) }));
const get =
  (table: 'certificates' | 'attestations', pk: string): Try =>
  ({ dynamodb }, target) =>
    dynamodb.send(new GetItemCommand({ TableName: target[table], Key: item(pk) }));
const scan =
  (table: 'certificates' | 'attestations'): Try =>
  ({ dynamodb }, target) =>
    dynamodb.send(new ScanCommand({ TableName: target[table] }));
const invoke =
  (service: string): Try =>
  ({ lambda }) =>
    lambda.send(new InvokeCommand({ FunctionName: `countersign-demo-${service}` }));
const look: Try = ({ ec2 }) => ec2.send(new DescribeInstancesCommand({}));

const keys = {
  'kms:Sign': ({ kms }, { key }) =>
    kms.send(
      new SignCommand({
        KeyId: key,
        Message: new Uint8Array(32),
        MessageType: 'DIGEST',
        SigningAlgorithm: 'ECDSA_SHA_256',
      }),
    ),
  'kms:GetPublicKey': ({ kms }, { key }) => kms.send(new GetPublicKeyCommand({ KeyId: key })),
} as const satisfies Record<string, Try>;

const permitted: Readonly<Record<Who, Readonly<Record<string, Try>>>> = {
  attest: {
    'dynamodb:GetItem': get('attestations', 'id#none'),
    'dynamodb:PutItem': put('attestations', 'verdict#suite'),
    'ec2:DescribeInstances': look,
  },
  sign: { 'dynamodb:GetItem': get('attestations', 'verdict#none') },
  operator: {
    'dynamodb:Scan': scan('attestations'),
    'dynamodb:PutItem': put('attestations', 'audit#suite'),
    'one record of the ledger: dynamodb:GetItem': get('certificates', 'uid#none'),
    'a revocation: dynamodb:PutItem': put('certificates', 'revoked#suite'),
    'ec2:DescribeInstances': look,
  },
};

const forbidden: Readonly<Record<Who, Readonly<Record<string, Try>>>> = {
  attest: {
    ...keys,
    'the certificates table: dynamodb:GetItem': get('certificates', 'uid#none'),
    'the certificates table: dynamodb:PutItem': put('certificates', 'uid#suite'),
    'dynamodb:Scan': scan('attestations'),
    'the sign function: lambda:InvokeFunction': invoke('sign'),
    'the ca function: lambda:InvokeFunction': invoke('ca'),
    'another region: ec2:DescribeInstances': ({ elsewhere }) => elsewhere.send(new DescribeInstancesCommand({})),
    'ec2:TerminateInstances': ({ ec2 }) =>
      ec2.send(new TerminateInstancesCommand({ InstanceIds: ['i-0123456789abcdef0'] })),
    'a role that is not configured: sts:AssumeRole': ({ sts }) =>
      sts.send(new AssumeRoleCommand({ RoleArn: `arn:aws:iam::${account}:role/relay-demo`, RoleSessionName: 'suite' })),
  },
  // The function that may use the CA key cannot write the verdicts that it believes.
  sign: {
    'the attestations table: dynamodb:PutItem': put('attestations', 'verdict#made-up'),
    'the attestations table: dynamodb:UpdateItem': ({ dynamodb }, { attestations }) =>
      dynamodb.send(new UpdateItemCommand({ TableName: attestations, Key: item('id#none') })),
    'the attestations table: dynamodb:DeleteItem': ({ dynamodb }, { attestations }) =>
      dynamodb.send(new DeleteItemCommand({ TableName: attestations, Key: item('id#none') })),
    'the attestations table: dynamodb:Scan': scan('attestations'),
    'ec2:DescribeInstances': look,
    'the ca function: lambda:InvokeFunction': invoke('ca'),
  },
  operator: {
    ...keys,
    'the certificates table: dynamodb:Scan': scan('certificates'),
    'the certificates table: dynamodb:UpdateItem': ({ dynamodb }, { certificates }) =>
      dynamodb.send(new UpdateItemCommand({ TableName: certificates, Key: item('uid#none') })),
    'the certificates table: dynamodb:DeleteItem': ({ dynamodb }, { certificates }) =>
      dynamodb.send(new DeleteItemCommand({ TableName: certificates, Key: item('uid#none') })),
    'the attest function: lambda:InvokeFunction': invoke('attest'),
    'the sign function: lambda:InvokeFunction': invoke('sign'),
  },
};

describe.skipIf(skip)('roles of stacks where machines prove themselves', () => {
  let deployment: MiniStackDeployment;
  let target: Target;
  const sessions = new Map<Who, Clients>();
  beforeAll(async () => {
    deployment = await deployOnMiniStack(synthesiseClusters({ demo: settings }));
    const { client } = deployment.emulator;
    const root = { ...client.credentials, sessionToken: '' };
    const [lambda, iam] = [new LambdaClient(client), new IAMClient(client)];
    const configured = (name: string) => lambda.send(new GetFunctionConfigurationCommand({ FunctionName: name }));
    const { Environment: { Variables: set = {} } = {} } = await configured('countersign-demo-sign');
    const { ca: key = '' } = JSON.parse(set['COUNTERSIGN_CA_KEYS'] ?? '{}') as { ca?: string };
    target = {
      key,
      certificates: set['COUNTERSIGN_CERTIFICATES_TABLE'] ?? '',
      attestations: set['COUNTERSIGN_ATTESTATIONS_TABLE'] ?? '',
    };
    const add = (who: Who, credentials: SessionCredentials) => {
      // Once: a refusal does not pass by itself.
      const options = { ...client, credentials, maxAttempts: 1 };
      sessions.set(who, {
        kms: new KMSClient(options),
        dynamodb: new DynamoDBClient(options),
        lambda: new LambdaClient(options),
        ec2: new EC2Client(options),
        elsewhere: new EC2Client({ ...options, region: 'ap-south-1' }),
        sts: new STSClient(options),
      });
    };
    for (const who of ['attest', 'sign'] as const) {
      const { Role: role = '' } = await configured(`countersign-demo-${who}`);
      add(who, await deployment.assume(role, root));
    }
    const operator = await createRole(deployment.emulator, 'operator');
    const policy = deployment.outputs['demo']?.['OperatorPolicyArn'] ?? '';
    await iam.send(new AttachRolePolicyCommand({ RoleName: 'operator', PolicyArn: policy }));
    add('operator', await deployment.assume(operator, root));
    lambda.destroy();
    iam.destroy();
  });
  afterAll(async () => {
    for (const clients of sessions.values())
      for (const client of Object.values(clients) as { destroy(): void }[]) client.destroy();
    await deployment?.stop();
  });

  const cases = (of: Readonly<Record<Who, Readonly<Record<string, Try>>>>) =>
    Object.entries(of).flatMap(([who, tries]) =>
      Object.entries(tries).map(([name, action]) => [who as Who, name, action] as const),
    );

  test.each(cases(permitted))('%s may: %s', async (who, _, action) => {
    await expect(action(sessions.get(who)!, target)).resolves.toBeDefined();
  });

  test.each(cases(forbidden))('%s may not: %s', async (who, name, action) => {
    const error: unknown = await action(sessions.get(who)!, target).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(Error);
    expect((error as Error).message).toContain(`not authorized to perform: ${name.split(': ').at(-1)}`);
  });
});
