/** What this project's LocalStack does about custom resources: as CloudFormation does, or a deployment there shows nothing. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  CloudFormationClient,
  DeleteStackCommand,
  UpdateStackCommand,
  waitUntilStackDeleteComplete,
  waitUntilStackUpdateComplete,
} from '@aws-sdk/client-cloudformation';
import { CreateFunctionCommand, LambdaClient, waitUntilFunctionActiveV2 } from '@aws-sdk/client-lambda';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createStack, type TemplateResource } from '../../../harness/aws/sdk-stacks.ts';
import type { Emulator } from '../../../harness/aws/emulator.ts';
import { requireLocalStack, startLocalStack } from '../../../harness/aws/localstack.ts';
import { temporaryFolder } from '../../../harness/processes/processes.ts';
import { zip } from '../../../../acceptance/resources/zip.ts';

/** A LocalStack that this suite did not start has no plugin of ours. */
const skip = (await requireLocalStack()).skip || Boolean(process.env['AWS_ENDPOINT_URL']);

/** Writes down what it is told and answers as its resource's properties say. */
const code = `const { appendFileSync } = require('node:fs');
exports.handler = async (event) => {
  const { File: file, Answer: answer, Throws: throws } = event.ResourceProperties;
  appendFileSync(file, JSON.stringify(event) + '\\n');
  if (throws) throw new Error('thrown');
  if (answer === undefined) return;
  await fetch(event.ResponseURL, { method: 'PUT', body: answer });
};`;
/** The SDK would look every half minute. */
const patience = { minDelay: 1, maxDelay: 1, maxWaitTime: 60 } as const;
const made = { Status: 'SUCCESS', PhysicalResourceId: 'the-one', Data: { Colour: 'blue' } };

describe.skipIf(skip)('a custom resource in our LocalStack', () => {
  const folder = temporaryFolder('custom-resource');
  let emulator: Emulator;
  let cloudFormation: CloudFormationClient;
  let serviceToken = '';
  beforeAll(async () => {
    emulator = await startLocalStack();
    cloudFormation = new CloudFormationClient(emulator.client);
    const lambda = new LambdaClient(emulator.client);
    const { FunctionArn: arn = '' } = await lambda.send(
      new CreateFunctionCommand({
        FunctionName: 'resources',
        Runtime: 'nodejs24.x',
        Handler: 'index.handler',
        Timeout: 10,
        Role: 'arn:aws:iam::000000000000:role/resources',
        Code: { ZipFile: zip(new Map([['index.js', Buffer.from(code)]])) },
      }),
    );
    await waitUntilFunctionActiveV2({ client: lambda, maxWaitTime: 60 }, { FunctionName: 'resources' });
    lambda.destroy();
    serviceToken = arn;
  });
  afterAll(async () => {
    cloudFormation?.destroy();
    await emulator?.stop();
    folder.remove();
  });

  interface Resource extends Partial<TemplateResource> {
    readonly answer?: object;
    readonly properties?: Readonly<Record<string, unknown>>;
    readonly DeletionPolicy?: 'Retain';
  }

  function templateOf(stack: string, { answer, properties = {}, ...rest }: Resource) {
    const own = { ServiceToken: serviceToken, File: fileOf(stack), Answer: answer && JSON.stringify(answer) };
    return {
      Resources: { Thing: { Type: 'Custom::Thing', Properties: { ...own, ...properties }, ...rest } },
      Outputs: { Id: { Value: { Ref: 'Thing' } }, Colour: { Value: { 'Fn::GetAtt': ['Thing', 'Colour'] } } },
    };
  }
  const fileOf = (stack: string): string => join(folder.path, stack);
  const eventsOf = (stack: string): Record<string, unknown>[] =>
    readFileSync(fileOf(stack), 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  const create = (stack: string, resource: Resource) => createStack(emulator, stack, templateOf(stack, resource));
  async function remove(stack: string): Promise<void> {
    await cloudFormation.send(new DeleteStackCommand({ StackName: stack }));
    await waitUntilStackDeleteComplete({ client: cloudFormation, ...patience }, { StackName: stack });
  }

  test('is made by its function, which is told what CloudFormation tells; what it answers can be referred to', async () => {
    expect(await create('made', { answer: made, properties: { Size: 'XL' } })).toEqual({
      Id: 'the-one',
      Colour: 'blue',
    });
    const [event, ...more] = eventsOf('made');
    expect(more).toEqual([]);
    expect(event).toMatchObject({
      RequestType: 'Create',
      ResourceType: 'Custom::Thing',
      LogicalResourceId: 'Thing',
      StackId: expect.stringContaining(':stack/made/') as unknown,
      RequestId: expect.stringMatching(/^[0-9a-f-]{36}$/) as unknown,
      ResponseURL: expect.stringMatching(/^http:\/\/127\.0\.0\.1:/) as unknown,
      ResourceProperties: { ServiceToken: serviceToken, Size: 'XL' },
    });
    expect(event).not.toHaveProperty('PhysicalResourceId');
  });

  test('is updated under the name it has', async () => {
    await create('updated', { answer: made, properties: { Size: 'XL' } });
    const template = templateOf('updated', { answer: made, properties: { Size: 'S' } });
    await cloudFormation.send(new UpdateStackCommand({ StackName: 'updated', TemplateBody: JSON.stringify(template) }));
    await waitUntilStackUpdateComplete({ client: cloudFormation, ...patience }, { StackName: 'updated' });
    expect(eventsOf('updated')).toMatchObject([
      { RequestType: 'Create' },
      { RequestType: 'Update', PhysicalResourceId: 'the-one', ResourceProperties: { Size: 'S' } },
    ]);
  });

  test('is deleted by its function, with its stack', async () => {
    await create('deleted', { answer: made });
    await remove('deleted');
    expect(eventsOf('deleted')).toMatchObject([
      { RequestType: 'Create' },
      { RequestType: 'Delete', PhysicalResourceId: 'the-one', LogicalResourceId: 'Thing' },
    ]);
  });

  test('is left alone by the end of its stack when it is to be kept, as ours are', async () => {
    await create('kept', { answer: made, DeletionPolicy: 'Retain' });
    await remove('kept');
    expect(eventsOf('kept')).toMatchObject([{ RequestType: 'Create' }]);
  });

  test.each<[string, string, Resource, string]>([
    ['failed, and why', 'failed', { answer: { ...made, Status: 'FAILED', Reason: 'no paint' } }, 'no paint'],
    ['failed, and not why', 'silent', { answer: { ...made, Status: 'FAILED' } }, 'the function gave no reason'],
    ['made, and not what', 'nameless', { answer: { Status: 'SUCCESS' } }, 'the function gave no reason'],
    ['nothing in its time', 'late', { properties: { ServiceTimeout: 1 } }, 'no answer from the function in 1 s'],
    [
      'nothing because it throws',
      'thrown',
      { properties: { ServiceTimeout: 1, Throws: true } },
      'no answer from the function in 1 s',
    ],
  ])('fails its stack when its function says %s', async (_, stack, resource, why) => {
    await expect(create(stack, resource)).rejects.toThrow(`stack ${stack} was not made: Thing: ${why}`);
    expect(eventsOf(stack)[0]).toMatchObject({ RequestType: 'Create' });
  });
});
