/**
 * What MiniStack passes over, or sees otherwise than AWS: the rows of docs/internals/emulators.md about it. When one of these fails,
 * it has learned that, and the suites beside this one can ask for more.
 */
import { DynamoDBClient, PutItemCommand } from '@aws-sdk/client-dynamodb';
import { DescribeKeyCommand, KMSClient, ScheduleKeyDeletionCommand, SignCommand } from '@aws-sdk/client-kms';
import { GetFunctionConfigurationCommand, LambdaClient } from '@aws-sdk/client-lambda';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  assumeRole,
  createRole,
  deployOnMiniStack,
  judgedByMiniStack,
  synthesiseClusters,
  withoutFunctionDenials,
  withoutKmsConditions,
  type MiniStackDeployment,
} from '../../../harness/aws/ministack-deployment.ts';
import { createStack, type Template } from '../../../harness/aws/sdk-stacks.ts';
import { requireTools } from '../../../tools/tools.ts';
import { askBehind, doors } from './doors.ts';

const { skip } = await requireTools('ministack');

describe.skipIf(skip)('MiniStack', () => {
  let deployment: MiniStackDeployment;
  beforeAll(async () => {
    deployment = await deployOnMiniStack(synthesiseClusters({ demo: {} }));
  });
  afterAll(() => deployment?.stop());

  /** The key and the sign role of a state stack, beside those deployed. */
  async function createState(
    name: string,
    template: Template,
  ): Promise<{ readonly key: string; readonly role: string }> {
    const { emulator } = deployment;
    const idOf = (pattern: RegExp): string => Object.keys(template.Resources).find((id) => pattern.test(id))!;
    // Its own outputs have names that an account has once.
    const outputs = {
      Outputs: {
        Key: { Value: { Ref: idOf(/^CaKey/) } },
        Role: { Value: { 'Fn::GetAtt': [idOf(/^SignRole/), 'Arn'] } },
      },
    };
    const { Key: key = '', Role: role = '' } = await createStack(emulator, name, { ...template, ...outputs });
    return { key, role };
  }

  async function by<T>(role: string, act: (kms: KMSClient) => Promise<T>): Promise<T> {
    const { client } = deployment.emulator;
    const kms = new KMSClient({ ...client, credentials: await assumeRole(client, role), maxAttempts: 1 });
    try {
      return await act(kms);
    } finally {
      kms.destroy();
    }
  }

  test('does not evaluate kms: conditions: with them, what they permit is refused', async () => {
    const template = synthesiseClusters({ demo: {} }).templates.get('countersign-demo-state')!;
    const sign = (KeyId: string) => (kms: KMSClient) =>
      kms.send(
        new SignCommand({
          KeyId,
          Message: new Uint8Array(32),
          MessageType: 'DIGEST',
          SigningAlgorithm: 'ECDSA_SHA_256',
        }),
      );
    const real = await createState('real', withoutFunctionDenials(template));
    await expect(by(real.role, sign(real.key))).rejects.toThrow('not authorized to perform: kms:Sign');
    const stripped = await createState('stripped', judgedByMiniStack(template));
    await expect(by(stripped.role, sign(stripped.key))).resolves.toBeDefined();
  });

  test('does not evaluate lambda:SourceFunctionArn: with it, our own functions are refused as others are', async () => {
    const judged = (template: Template) => withoutKmsConditions(template);
    await expect(deployOnMiniStack(synthesiseClusters({ demo: {} }), { judged })).rejects.toThrow(
      'not authorized to perform: dynamodb:GetItem',
    );
  });

  test('does not evaluate dynamodb:LeadingKeys: the sign role can write a CA', async () => {
    const { client } = deployment.emulator;
    const role = await signRoleOf(deployment);
    const dynamodb = new DynamoDBClient({ ...client, credentials: await assumeRole(client, role), maxAttempts: 1 });
    const table = deployment.outputs['demo']?.['CertificatesTable'];
    try {
      const item = { pk: { S: 'ca#another' } };
      await expect(dynamodb.send(new PutItemCommand({ TableName: table, Item: item }))).resolves.toBeDefined();
    } finally {
      dynamodb.destroy();
    }
  });

  test('does not hash a body: it believes the x-amz-content-sha256 that was signed for another one', async () => {
    const authorize = await doors.httpApi.authorize(deployment);
    const another = new Uint8Array(Buffer.from('{}'));
    const answer = await askBehind(deployment, doors.httpApi, (call) => authorize({ ...call, body: another }));
    expect(answer).toMatchObject({ status: 200, outcome: 'issued' });
  });

  test('holds the ARN of a session against aws:PrincipalArn, not that of its role', async () => {
    const { emulator } = deployment;
    const role = await createRole(emulator, 'custodian');
    const settings = { keys: { deleters: [role] } };
    const template = withoutKmsConditions(
      synthesiseClusters({ demo: settings }).templates.get('countersign-demo-state')!,
    );
    const { key: KeyId } = await createState('deletable', template);
    await expect(by(role, (kms) => kms.send(new DescribeKeyCommand({ KeyId })))).resolves.toBeDefined();
    await expect(by(role, (kms) => kms.send(new ScheduleKeyDeletionCommand({ KeyId })))).rejects.toThrow(
      'with an explicit deny',
    );
  });
});

async function signRoleOf({ emulator }: MiniStackDeployment): Promise<string> {
  const lambda = new LambdaClient(emulator.client);
  try {
    const settings = new GetFunctionConfigurationCommand({ FunctionName: 'countersign-demo-sign' });
    return (await lambda.send(settings)).Role ?? '';
  } finally {
    lambda.destroy();
  }
}
