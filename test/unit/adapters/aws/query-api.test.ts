/** Who am I, and what is the table called: signed so that a strict STS believes it, read so that AWS's XML cannot mislead. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { AwsRefusal, callerArn, stackOutput } from '../../../../adapters/aws/query-api.ts';
import type { AwsQueryOptions } from '../../../../adapters/aws/query-api.ts';
import { startFakeSts, type FakeSts } from '../../../harness/fake-aws/sts.ts';
import { createFakeAws, type Credential } from '../../../harness/fake-aws/world.ts';

const region = 'eu-central-1';
const aws = createFakeAws();
let sts: FakeSts;
beforeAll(async () => (sts = await startFakeSts({ aws })));
afterEach(() => sts.mend());
afterAll(() => sts.close());

function as(credential: Credential, endpoint: string, now = Date.now): AwsQueryOptions {
  const environment = { AWS_ENDPOINT_URL_STS: endpoint, AWS_ENDPOINT_URL: endpoint };
  return { login: { region: async () => region, credentials: async () => credential }, now, environment };
}

describe('who am I', () => {
  const ada = aws.createUser('111122223333', 'ops/ada');
  const role = aws.createRole({ arn: 'arn:aws:iam::111122223333:role/ops' });

  test.each([
    ['a user', ada, ada.principal.arn],
    ['a session', aws.session(role, 'ada@example.com'), 'arn:aws:sts::111122223333:assumed-role/ops/ada@example.com'],
  ])('%s', async (_, credential, arn) => {
    expect(await callerArn(as(credential, sts.url))).toBe(arn);
    expect(sts.calls.at(-1)).toMatchObject({ action: 'GetCallerIdentity', region, presigned: false });
  });

  test('a wrong secret, and a clock that is wrong', async () => {
    const wrong = as({ ...ada, secretAccessKey: 'x' }, sts.url);
    await expect(callerArn(wrong)).rejects.toMatchObject({ name: 'AwsRefusal', code: 'SignatureDoesNotMatch' });
    const late = as(ada, sts.url, () => Date.now() - 3_600_000);
    await expect(callerArn(late)).rejects.toBeInstanceOf(AwsRefusal);
  });

  test('no answer is no ARN', async () => {
    sts.fail(503, 'ServiceUnavailable', 'later');
    await expect(callerArn(as(ada, sts.url))).rejects.toMatchObject({ status: 503, code: 'ServiceUnavailable' });
    await expect(callerArn(as(ada, 'http://127.0.0.1:9'))).rejects.toThrow();
  });
});

describe('an output of a stack', () => {
  /** Answers everything with this. */
  async function told(text: string, status = 200): Promise<AwsQueryOptions> {
    const server = createServer((request, response) => {
      request.resume();
      response.writeHead(status, { 'content-type': 'text/xml', location: 'http://127.0.0.1:9' }).end(text);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    return as(aws.createUser('111122223333', 'ada'), `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  }
  const output = (...parts: readonly string[]) => `<member>${parts.join('\n')}</member>`;
  const answer = (...outputs: readonly string[]) =>
    `<DescribeStacksResponse><DescribeStacksResult><Stacks><member><StackName>prod</StackName>
     <Parameters><member><ParameterKey>OutputKey</ParameterKey><ParameterValue>T</ParameterValue></member></Parameters>
     <Outputs>${outputs.join('\n')}</Outputs></member></Stacks></DescribeStacksResult></DescribeStacksResponse>`;
  const key = '<OutputKey>T</OutputKey>';

  test.each<readonly [string, string, string | undefined]>([
    ['as CloudFormation writes it', answer(output(key, '<OutputValue>prod-T</OutputValue>')), 'prod-T'],
    ['the value first', answer(output('<OutputValue>prod-T</OutputValue>', key)), 'prod-T'],
    [
      'behind another',
      answer(
        output('<OutputKey>A</OutputKey><OutputValue>T</OutputValue>'),
        output(key, '<OutputValue>x</OutputValue>'),
      ),
      'x',
    ],
    [
      'whose text is written with entities',
      answer(output(key, '<OutputValue>a&lt;b&amp;lt;c</OutputValue>')),
      'a<b&lt;c',
    ],
    ['one that begins alike', answer(output('<OutputKey>Table</OutputKey><OutputValue>x</OutputValue>')), undefined],
    [
      'a description that looks like one',
      answer(output('<OutputKey>A</OutputKey><Description>&lt;OutputKey&gt;T</Description>')),
      undefined,
    ],
    ['no outputs', answer(), undefined],
  ])('%s', async (_, xml, found) => {
    expect(await stackOutput(await told(xml), 'prod', 'T')).toBe(found);
  });

  test('a refusal has AWS’s code; a redirect is followed by nobody', async () => {
    const denied = '<ErrorResponse><Error><Code>AccessDenied</Code><Message>may not</Message></Error></ErrorResponse>';
    await expect(stackOutput(await told(denied, 403), 'prod', 'T')).rejects.toMatchObject({
      code: 'AccessDenied',
      status: 403,
      message: 'may not',
    });
    await expect(stackOutput(await told('', 307), 'prod', 'T')).rejects.toThrow(/fetch failed/);
  });
});
