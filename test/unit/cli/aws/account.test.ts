/** The caller's ARN and a stack's outputs, as the SDK's clients give them, and what an operator reads when they do not. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { callerArn, stackOutputs } from '../../../../cli/aws/account.ts';
import { startFakeSts, type FakeSts } from '../../../harness/fake-aws/sts.ts';
import { createFakeAws, type Credential } from '../../../harness/fake-aws/world.ts';

const region = 'eu-central-1';
const aws = createFakeAws();
let sts: FakeSts;
beforeAll(async () => (sts = await startFakeSts({ aws })));
afterEach(() => {
  sts.mend();
  vi.unstubAllEnvs();
});
afterAll(() => sts.close());

function logIn({ accessKeyId, secretAccessKey, sessionToken }: Credential, endpoint: string): void {
  vi.stubEnv('AWS_ACCESS_KEY_ID', accessKeyId);
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', secretAccessKey);
  vi.stubEnv('AWS_SESSION_TOKEN', sessionToken);
  vi.stubEnv('AWS_ENDPOINT_URL', endpoint);
}

describe('the caller', () => {
  const ada = aws.createUser('111122223333', 'ops/ada');
  const role = aws.createRole({ arn: 'arn:aws:iam::111122223333:role/ops' });

  test.each([
    ['a user', ada, ada.principal.arn],
    ['a session', aws.session(role, 'ada@example.com'), 'arn:aws:sts::111122223333:assumed-role/ops/ada@example.com'],
  ])('%s', async (_, credential, arn) => {
    logIn(credential, sts.url);
    expect(await callerArn({ region })).toBe(arn);
    expect(sts.calls.at(-1)).toMatchObject({ action: 'GetCallerIdentity', region, presigned: false });
  });

  test('a wrong secret is a configuration error', async () => {
    logIn({ ...ada, secretAccessKey: 'x' }, sts.url);
    await expect(callerArn({ region })).rejects.toMatchObject({
      code: 3,
      message: expect.stringContaining('STS refuses: SignatureDoesNotMatch') as unknown,
    });
  });

  test('a failure of STS is temporary', async () => {
    logIn(ada, sts.url);
    sts.fail(503, 'ServiceUnavailable', 'later');
    await expect(callerArn({ region })).rejects.toMatchObject({ code: 5 });
    logIn(ada, 'http://127.0.0.1:9');
    await expect(callerArn({ region })).rejects.toMatchObject({ code: 5 });
  });
});

describe('the outputs of a stack', () => {
  /** CloudFormation that answers every call with this. */
  async function answering(text: string, status = 200): Promise<void> {
    const server = createServer((request, response) => {
      request.resume();
      response.writeHead(status, { 'content-type': 'text/xml' }).end(text);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    logIn(aws.createUser('111122223333', 'ada'), `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  }
  const refusal = (code: string, message: string) =>
    `<ErrorResponse><Error><Type>Sender</Type><Code>${code}</Code><Message>${message}</Message></Error></ErrorResponse>`;
  const outputs = (members: string) =>
    `<DescribeStacksResponse><DescribeStacksResult><Stacks><member><StackName>prod</StackName>
     <Outputs>${members}</Outputs></member></Stacks></DescribeStacksResult></DescribeStacksResponse>`;

  test('by their keys', async () => {
    await answering(
      outputs(`<member><OutputKey>A</OutputKey><OutputValue>T</OutputValue></member>
               <member><OutputKey>T</OutputKey><OutputValue>prod-T</OutputValue></member>`),
    );
    expect(await stackOutputs('prod', { region }, '')).toEqual({ A: 'T', T: 'prod-T' });
    await answering(outputs(''));
    expect(await stackOutputs('prod', { region }, '')).toEqual({});
  });

  test('a stack that does not exist', async () => {
    await answering(refusal('ValidationError', 'Stack with id prod does not exist'), 400);
    expect(await stackOutputs('prod', { region }, '')).toBeUndefined();
  });

  test('without the right to describe it: the hint names another way', async () => {
    await answering(refusal('AccessDenied', 'may not'), 403);
    await expect(stackOutputs('prod', { region }, 'name the table')).rejects.toMatchObject({
      code: 3,
      message: 'CloudFormation refuses: AccessDenied: may not',
      hint: 'name the table',
    });
  });
});
