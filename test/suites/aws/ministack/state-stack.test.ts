/** The state stack by itself: what its roles may do outside their functions, tried with sessions of theirs. */
import { DynamoDBClient, GetItemCommand } from '@aws-sdk/client-dynamodb';
import { DescribeInstancesCommand, EC2Client } from '@aws-sdk/client-ec2';
import { DeleteRolePolicyCommand, IAMClient, ListRolePoliciesCommand, PutRolePolicyCommand } from '@aws-sdk/client-iam';
import { GetPublicKeyCommand, KMSClient, SignCommand } from '@aws-sdk/client-kms';
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
import { requireTools } from '../../../tools/tools.ts';

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

  /** As another function would to which somebody passed the role. */
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
    '%s passed to another function can neither sign nor touch a record',
    async (role) => {
      const all = Object.keys(attempts).filter((action) => action !== 'kms:GetPublicKey');
      expect(await denied(role)).toEqual(all);
      // It is that statement and no other that refuses; but the key's policy does not know attest's role at all.
      await change(role, removeDenial);
      expect(await denied(role)).toEqual(role === 'AttestRole' ? ['kms:Sign'] : []);
    },
  );
});

async function send<Client extends { destroy(): void }, T>(client: Client, act: (client: Client) => Promise<T>): Promise<T> {
  try {
    return await act(client);
  } finally {
    client.destroy();
  }
}

function withOutputs(template: Template): Template {
  const idOf = (pattern: RegExp): string => Object.keys(template.Resources).find((id) => pattern.test(id)) ?? '';
  const arn = (id: string) => ({ Value: { 'Fn::GetAtt': [id, 'Arn'] } });
  const outputs = {
    Key: { Value: { Ref: idOf(/^CaKey/) } },
    Table: { Value: { Ref: idOf(/^Certificates/) } },
    ...Object.fromEntries(['SignRole', 'CaRole', 'AttestRole'].map((role) => [role, arn(idOf(new RegExp(`^${role}`)))])),
  };
  return { ...template, Outputs: outputs } as Template;
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
  const [denial] = names.filter((each) => each.includes('OnlyInItsFunction'));
  await iam.send(new DeleteRolePolicyCommand({ RoleName: name, PolicyName: denial }));
}
