/** The state stack by itself: what its roles may do outside their functions, and which keys another Region may have. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DynamoDBClient, GetItemCommand } from '@aws-sdk/client-dynamodb';
import { DescribeInstancesCommand, EC2Client } from '@aws-sdk/client-ec2';
import { DeleteRolePolicyCommand, IAMClient, ListRolePoliciesCommand, PutRolePolicyCommand } from '@aws-sdk/client-iam';
import {
  DescribeKeyCommand,
  GenerateMacCommand,
  GetKeyPolicyCommand,
  GetPublicKeyCommand,
  KMSClient,
  PutKeyPolicyCommand,
  ReplicateKeyCommand,
  ScheduleKeyDeletionCommand,
  SignCommand,
} from '@aws-sdk/client-kms';
import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import { AssumeRoleCommand, STSClient } from '@aws-sdk/client-sts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  assumeRole,
  createRole,
  synthesiseClusters,
  withoutKmsConditions,
} from '../../../harness/aws/ministack-deployment.ts';
import type { Emulator } from '../../../harness/aws/emulator.ts';
import { startMiniStack } from '../../../harness/aws/ministack.ts';
import { createStack, publishAssets, type Template } from '../../../harness/aws/sdk-stacks.ts';
import { stackNames } from '../../../../core/configuration/resolve/deployment.ts';
import { requireTools } from '../../../tools/tools.ts';
import { stateTable } from './tables.ts';

const { skip } = await requireTools('ministack');

const attested = {
  profiles: { 'kubernetes.io/kubelet-serving': { attestation: { providers: ['aws'] } } },
  attestation: {
    audience: 'demo',
    aws: {
      accounts: { '000000000000': {} },
      regions: ['eu-central-1'],
      tags: { cluster: 'demo' },
      nodeName: ['instanceId'],
    },
    tpm: { machines: 'listed' },
  },
};

type Role = 'SignRole' | 'CaRole' | 'AttestRole';

describe.skipIf(skip)('a role of the state stack', () => {
  let emulator: Emulator;
  let made: Readonly<Record<string, string>>;
  let probe: string;
  beforeAll(async () => {
    emulator = await startMiniStack({ auth: true });
    const assembly = synthesiseClusters({ demo: attested });
    await publishAssets(emulator, assembly);
    const template = withoutKmsConditions(assembly.templates.get('countersign-demo-state')!);
    made = await createStack(emulator, 'countersign-demo-state', withOutputs(template));
    probe = await createRole(emulator, 'probe');
    // Other policies allow everything, as careless ones of the account might.
    for (const role of ['SignRole', 'CaRole', 'AttestRole'] as const) await change(role, allowEverything);
  });
  afterAll(() => emulator?.stop());

  /** Each action of the statement, and what has to be possible besides. */
  const attempts: Readonly<Record<string, (options: Emulator['client']) => Promise<unknown>>> = {
    'kms:Sign': (options) =>
      send(new KMSClient(options), (kms) =>
        kms.send(
          new SignCommand({
            KeyId: made['Key'],
            Message: new Uint8Array(32),
            MessageType: 'DIGEST',
            SigningAlgorithm: 'ECDSA_SHA_256',
          }),
        ),
      ),
    'kms:GenerateMac': (options) =>
      send(new KMSClient(options), (kms) =>
        kms.send(
          new GenerateMacCommand({
            KeyId: made['ChallengeKey'],
            Message: new Uint8Array(32),
            MacAlgorithm: 'HMAC_SHA_256',
          }),
        ),
      ),
    'kms:GetPublicKey': (options) =>
      send(new KMSClient(options), (kms) => kms.send(new GetPublicKeyCommand({ KeyId: made['Key'] }))),
    'dynamodb:GetItem': (options) =>
      send(new DynamoDBClient(options), (dynamodb) =>
        dynamodb.send(new GetItemCommand({ TableName: made['Table'], Key: { pk: { S: 'uid#none' } } })),
      ),
    'lambda:InvokeFunction': (options) =>
      send(new LambdaClient(options), (lambda) =>
        lambda.send(new InvokeCommand({ FunctionName: 'countersign-demo-attest' })),
      ),
    'ec2:DescribeInstances': (options) =>
      send(new EC2Client(options), (ec2) => ec2.send(new DescribeInstancesCommand({}))),
    'sts:AssumeRole': (options) =>
      send(new STSClient(options), (sts) =>
        sts.send(new AssumeRoleCommand({ RoleArn: probe, RoleSessionName: 'suite' })),
      ),
  };

  /** Tries each action as another function with this role would. */
  async function denied(role: Role): Promise<string[]> {
    const credentials = await assumeRole(emulator.client, made[role] ?? '');
    const actions: string[] = [];
    for (const [action, attempt] of Object.entries(attempts))
      try {
        await attempt({ ...emulator.client, credentials });
      } catch (error) {
        const { name, message } = error as Error;
        // No function is deployed here: to be told so is to be let through.
        if (name === 'ResourceNotFoundException') continue;
        expect(message).toContain(`not authorized to perform: ${action} `);
        actions.push(action);
      }
    return actions;
  }

  async function change(role: Role, act: (iam: IAMClient, name: string) => Promise<unknown>): Promise<void> {
    await send(new IAMClient(emulator.client), (iam) => act(iam, made[role]?.split('/').at(-1) ?? ''));
  }

  test.each(['SignRole', 'CaRole', 'AttestRole'] as const)(
    '%s passed to another function can neither sign nor make a challenge nor touch a record',
    async (role) => {
      const all = Object.keys(stateTable.exercised).flatMap((permission) => {
        const [of, , , action = ''] = permission.split(' ');
        return of === `${role.replace('Role', '')}OnlyInItsFunction` ? [action.replace('*', 'GetItem')] : [];
      });
      expect(all).toHaveLength(6);
      expect(await denied(role)).toEqual(all);
      // It is that statement and no other that refuses; but no CA key's policy knows attest's role, and only attest's may make challenges.
      await change(role, removeDenial);
      expect(await denied(role)).toEqual(role === 'AttestRole' ? ['kms:Sign'] : ['kms:GenerateMac']);
    },
  );
});

describe.skipIf(skip)('the key of a CA', () => {
  let emulator: Emulator;
  const keys = new Map<string, string>();
  beforeAll(async () => {
    emulator = await startMiniStack({ auth: true });
    const ca = (more: object) => ({ cas: { ca: { subject: { commonName: 'ca' }, ...more } } });
    const assembly = synthesiseClusters({ one: ca({}), many: ca({ multiRegion: true }) });
    await publishAssets(emulator, assembly);
    for (const cluster of assembly.clusters) {
      const stack = stackNames(cluster).state;
      const template = withoutKmsConditions(assembly.templates.get(stack)!);
      keys.set(cluster, (await createStack(emulator, stack, withOutputs(template)))['Key'] ?? '');
    }
  });
  afterAll(() => emulator?.stop());

  const west = 'eu-west-1';
  async function asOwner<T>(act: (kms: KMSClient) => Promise<T>, region = emulator.client.region): Promise<T> {
    // IAM lets this role do everything, as many accounts have one.
    const role = (owner ??= await createRole(emulator, 'owner', '*'));
    const credentials = await assumeRole(emulator.client, role);
    return send(new KMSClient({ ...emulator.client, credentials, region, maxAttempts: 1 }), act);
  }
  let owner: string | undefined;

  test('is of one Region for ever, unless the file says otherwise: no principal can replicate it', async () => {
    const KeyId = keys.get('one') ?? '';
    const { KeyMetadata: key } = await asOwner((kms) => kms.send(new DescribeKeyCommand({ KeyId })));
    expect(key).toMatchObject({ MultiRegion: false });
    const replicate = new ReplicateKeyCommand({ KeyId, ReplicaRegion: west });
    await expect(asOwner((kms) => kms.send(replicate))).rejects.toThrow('not authorized to perform: kms:ReplicateKey');
  });

  test('with multiRegion has a replica elsewhere that signs as it does', async () => {
    const KeyId = keys.get('many') ?? '';
    expect(KeyId).toMatch(/^mrk-/);
    const { Policy } = await asOwner((kms) => kms.send(new GetKeyPolicyCommand({ KeyId })));
    await asOwner((kms) => kms.send(new ReplicateKeyCommand({ KeyId, ReplicaRegion: west, Policy })));
    const publicKey = async (region?: string): Promise<string> => {
      const answer = await asOwner((kms) => kms.send(new GetPublicKeyCommand({ KeyId })), region);
      return Buffer.from(answer.PublicKey ?? []).toString('hex');
    };
    expect(await publicKey(west)).toBe(await publicKey());
    expect(await publicKey(west)).not.toBe('');
  });

  test('that a failed deployment left is removed by the commands of docs/deploy.md, and not without them', async () => {
    const KeyId = keys.get('one') ?? '';
    const remove = () => asOwner((kms) => kms.send(new ScheduleKeyDeletionCommand({ KeyId, PendingWindowInDays: 7 })));
    await expect(remove()).rejects.toThrow('not authorized to perform: kms:ScheduleKeyDeletion');
    const page = readFileSync(join(import.meta.dirname, '../../../../docs/deploy.md'), 'utf8');
    const [, policy = ''] =
      /^aws kms put-key-policy --key-id KEY --policy-name default --policy '(.*)'$/m.exec(page) ?? [];
    const Policy = policy.replace('999900001111', '000000000000');
    await asOwner((kms) => kms.send(new PutKeyPolicyCommand({ KeyId, PolicyName: 'default', Policy })));
    await expect(remove()).resolves.toMatchObject({ KeyState: 'PendingDeletion' });
  });
});

async function send<Client extends { destroy(): void }, T>(
  client: Client,
  act: (client: Client) => Promise<T>,
): Promise<T> {
  try {
    return await act(client);
  } finally {
    client.destroy();
  }
}

function withOutputs(template: Template): Template {
  const ids = Object.keys(template.Resources);
  const outputs = [
    ['Key', /^CaKey/, 'Ref'],
    ['ChallengeKey', /^ChallengeKey/, 'Arn'],
    ['Table', /^Certificates/, 'Ref'],
    ...['SignRole', 'CaRole', 'AttestRole'].map((role) => [role, new RegExp(`^${role}`), 'Arn'] as const),
  ] as const;
  const found = outputs.flatMap(([name, pattern, value]) => {
    const id = ids.find((each) => pattern.test(each));
    if (id === undefined) return [];
    return [[name, { Value: value === 'Ref' ? { Ref: id } : { 'Fn::GetAtt': [id, 'Arn'] } }]];
  });
  return { ...template, Outputs: Object.fromEntries(found) as unknown } as Template;
}

function allowEverything(iam: IAMClient, name: string): Promise<unknown> {
  const statement = { Effect: 'Allow', Action: '*', Resource: '*' };
  return iam.send(
    new PutRolePolicyCommand({
      RoleName: name,
      PolicyName: 'careless',
      PolicyDocument: JSON.stringify({ Version: '2012-10-17', Statement: [statement] }),
    }),
  );
}

async function removeDenial(iam: IAMClient, name: string): Promise<void> {
  const { PolicyNames: names = [] } = await iam.send(new ListRolePoliciesCommand({ RoleName: name }));
  const denial = names.find((each) => each.includes('OnlyInItsFunction'));
  await iam.send(new DeleteRolePolicyCommand({ RoleName: name, PolicyName: denial }));
}
