/** What the roles must not do, tried with sessions of theirs; and beside it what they may, so that a refusal means something. */
import {
  DeleteItemCommand,
  DynamoDBClient,
  GetItemCommand,
  PutItemCommand,
  ScanCommand,
  UpdateItemCommand,
} from '@aws-sdk/client-dynamodb';
import {
  CreateGrantCommand,
  DescribeKeyCommand,
  DisableKeyCommand,
  KMSClient,
  PutKeyPolicyCommand,
  ScheduleKeyDeletionCommand,
  SignCommand,
} from '@aws-sdk/client-kms';
import { GetFunctionConfigurationCommand, InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  createRole,
  deployOnMiniStack,
  synthesiseClusters,
  type MiniStackDeployment,
  type SessionCredentials,
} from '../../../harness/aws/ministack-deployment.ts';
import { requireTools } from '../../../tools/tools.ts';

const { skip } = await requireTools('ministack');

type Who = 'sign' | 'ca' | 'caller' | 'administrator';
interface Clients {
  readonly kms: KMSClient;
  readonly dynamodb: DynamoDBClient;
  readonly lambda: LambdaClient;
}
interface Target {
  readonly key: string;
  readonly table: string;
}
type Try = (clients: Clients, own: Target, others: Target) => Promise<unknown>;

const item = (pk: string) => ({ pk: { S: pk } });
const sign = (clients: Clients, key: string) =>
  clients.kms.send(
    new SignCommand({
      KeyId: key,
      Message: new Uint8Array(32),
      MessageType: 'DIGEST',
      SigningAlgorithm: 'ECDSA_SHA_256',
    }),
  );
const get = ({ dynamodb }: Clients, table: string) =>
  dynamodb.send(new GetItemCommand({ TableName: table, Key: item('uid#none') }));
const put = ({ dynamodb }: Clients, table: string, pk: string) =>
  dynamodb.send(new PutItemCommand({ TableName: table, Item: item(pk) }));
const invoke = ({ lambda }: Clients, name: string) => lambda.send(new InvokeCommand({ FunctionName: name }));

const keyActions = {
  'kms:ScheduleKeyDeletion': ({ kms }, { key }) => kms.send(new ScheduleKeyDeletionCommand({ KeyId: key })),
  'kms:DisableKey': ({ kms }, { key }) => kms.send(new DisableKeyCommand({ KeyId: key })),
  'kms:PutKeyPolicy': ({ kms }, { key }) => kms.send(new PutKeyPolicyCommand({ KeyId: key, Policy: '{}' })),
  'kms:CreateGrant': ({ kms }, { key }) =>
    kms.send(
      new CreateGrantCommand({
        KeyId: key,
        GranteePrincipal: 'arn:aws:iam::000000000000:role/relay-demo',
        Operations: ['Sign'],
      }),
    ),
} as const satisfies Record<string, Try>;

const tableActions = {
  'dynamodb:DeleteItem': ({ dynamodb }, { table }) =>
    dynamodb.send(new DeleteItemCommand({ TableName: table, Key: item('uid#none') })),
  'dynamodb:Scan': ({ dynamodb }, { table }) => dynamodb.send(new ScanCommand({ TableName: table })),
} as const satisfies Record<string, Try>;

const elsewhere = {
  "another cluster's key: kms:Sign": (clients, _, { key }) => sign(clients, key),
  "another cluster's table: dynamodb:GetItem": (clients, _, { table }) => get(clients, table),
  "another cluster's table: dynamodb:PutItem": (clients, _, { table }) => put(clients, table, 'uid#mine'),
} as const satisfies Record<string, Try>;

const functions = {
  'the sign function: lambda:InvokeFunction': (clients) => invoke(clients, 'countersign-demo-sign'),
  'the ca function: lambda:InvokeFunction': (clients) => invoke(clients, 'countersign-demo-ca'),
} as const satisfies Record<string, Try>;

const permitted: Partial<Record<Who, Readonly<Record<string, Try>>>> = {
  sign: {
    'kms:Sign': (clients, { key }) => sign(clients, key),
    'dynamodb:PutItem': (clients, { table }) => put(clients, table, 'uid#suite'),
  },
  ca: {
    'kms:Sign': (clients, { key }) => sign(clients, key),
    'dynamodb:GetItem': (clients, { table }) => get(clients, table),
    'a CRL: dynamodb:DeleteItem': ({ dynamodb }, { table }) =>
      dynamodb.send(new DeleteItemCommand({ TableName: table, Key: item('crl#none') })),
  },
  administrator: { 'kms:DescribeKey': ({ kms }, { key }) => kms.send(new DescribeKeyCommand({ KeyId: key })) },
};

/**
 * Not here: items under another prefix in their own table, since MiniStack does not tell policies about
 * dynamodb:LeadingKeys, and other messages than digests, since it does not know the kms: conditions either.
 */
const forbidden: Readonly<Record<Who, Readonly<Record<string, Try>>>> = {
  sign: { ...keyActions, ...tableActions, ...elsewhere, ...functions },
  ca: {
    ...keyActions,
    'dynamodb:Scan': tableActions['dynamodb:Scan'],
    'dynamodb:UpdateItem': ({ dynamodb }, { table }) =>
      dynamodb.send(new UpdateItemCommand({ TableName: table, Key: item('ca#ca#none') })),
    ...elsewhere,
    ...functions,
  },
  caller: {
    ...keyActions,
    ...tableActions,
    ...elsewhere,
    ...functions,
    'kms:Sign': (clients, { key }) => sign(clients, key),
    'dynamodb:GetItem': (clients, { table }) => get(clients, table),
    'dynamodb:PutItem': (clients, { table }) => put(clients, table, 'uid#suite'),
  },
  // IAM lets them do everything: it is the key's own policy that refuses.
  administrator: {
    'kms:ScheduleKeyDeletion': keyActions['kms:ScheduleKeyDeletion'],
    'kms:CreateGrant': keyActions['kms:CreateGrant'],
    'kms:Sign': (clients, { key }) => sign(clients, key),
  },
};

/** How the names of the roles begin. */
const roleNames: Readonly<Record<Who, string>> = {
  sign: 'countersign-demo-state-SignRole',
  ca: 'countersign-demo-state-CaRole',
  caller: 'countersign-demo-caller',
  administrator: 'administrator',
};

describe.skipIf(skip)('roles of the stacks', () => {
  let deployment: MiniStackDeployment;
  const sessions = new Map<Who, Clients>();
  const targets = new Map<string, Target>();
  beforeAll(async () => {
    deployment = await deployOnMiniStack(synthesiseClusters({ demo: {}, other: {} }));
    const { client } = deployment.emulator;
    const root = { ...client.credentials, sessionToken: '' };
    const lambda = new LambdaClient(client);
    const settings = (name: string) => lambda.send(new GetFunctionConfigurationCommand({ FunctionName: name }));
    for (const cluster of ['demo', 'other']) {
      const { Environment: { Variables: set = {} } = {} } = await settings(`countersign-${cluster}-sign`);
      const { ca: key = '' } = JSON.parse(set['COUNTERSIGN_CA_KEYS'] ?? '{}') as { ca?: string };
      targets.set(cluster, { key, table: set['COUNTERSIGN_CERTIFICATES_TABLE'] ?? '' });
    }
    const add = (who: Who, credentials: SessionCredentials) => {
      // Once: a refusal does not pass by itself.
      const options = { ...client, credentials, maxAttempts: 1 };
      sessions.set(who, {
        kms: new KMSClient(options),
        dynamodb: new DynamoDBClient(options),
        lambda: new LambdaClient(options),
      });
    };
    for (const who of ['sign', 'ca'] as const) {
      const { Role: role = '' } = await settings(`countersign-demo-${who}`);
      add(who, await deployment.assume(role, root));
    }
    add('caller', await deployment.caller('demo'));
    // As many accounts have one.
    add('administrator', await deployment.assume(await createRole(deployment.emulator, 'administrator', '*'), root));
    lambda.destroy();
  });
  afterAll(async () => {
    for (const { kms, dynamodb, lambda } of sessions.values())
      for (const client of [kms, dynamodb, lambda]) client.destroy();
    await deployment?.stop();
  });

  const attempt = (who: Who, action: Try) => action(sessions.get(who)!, targets.get('demo')!, targets.get('other')!);
  const cases = (of: Partial<Record<Who, Readonly<Record<string, Try>>>>) =>
    Object.entries(of).flatMap(([who, tries]) =>
      Object.entries(tries).map(([name, action]) => [who as Who, name, action] as const),
    );

  test.each(cases(permitted))('%s may: %s', async (who, _, action) => {
    await expect(attempt(who, action)).resolves.toBeDefined();
  });

  test.each(cases(forbidden))('%s may not: %s', async (who, name, action) => {
    const error: unknown = await attempt(who, action).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ name: 'AccessDeniedException' });
    expect((error as Error).message).toContain(`assumed-role/${roleNames[who]}`);
    expect((error as Error).message).toContain(`not authorized to perform: ${name.split(': ').at(-1)}`);
  });
});
