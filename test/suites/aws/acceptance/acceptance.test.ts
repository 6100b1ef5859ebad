/** The acceptance run by the code that runs on AWS: in a MiniStack that checks permissions, with the login that its plan asks for. */
import { CloudFormationClient, ListStacksCommand } from '@aws-sdk/client-cloudformation';
import { CloudWatchLogsClient, DescribeLogGroupsCommand } from '@aws-sdk/client-cloudwatch-logs';
import { DynamoDBClient, ListTablesCommand } from '@aws-sdk/client-dynamodb';
import {
  CreateAccessKeyCommand,
  CreateUserCommand,
  IAMClient,
  ListRolesCommand,
  PutUserPolicyCommand,
} from '@aws-sdk/client-iam';
import { LambdaClient, ListFunctionsCommand } from '@aws-sdk/client-lambda';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { PutParameterCommand, SSMClient } from '@aws-sdk/client-ssm';
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { Report } from '../../../../acceptance/engine.ts';
import { main } from '../../../../acceptance/main.ts';
import { policyOf } from '../../../../acceptance/plan.ts';
import type { PolicyDocument } from '../../../../acceptance/plan.ts';
import { runOnce } from '../../../../acceptance/run.ts';
import { steps } from '../../../../acceptance/steps/steps.ts';
import type { Credentials } from '../../../../acceptance/world/clients.ts';
import { bootstrapBucket } from '../../../../cli/aws/bootstrap.ts';
import { limitsOf } from '../../../../acceptance/world/emulator.ts';
import { emulatedRegion as region, type Emulator } from '../../../harness/aws/emulator.ts';
import { requireLocalStack, startLocalStack } from '../../../harness/aws/localstack.ts';
import { createRole, judgedByMiniStack } from '../../../harness/aws/ministack-deployment.ts';
import { startMiniStack } from '../../../harness/aws/ministack.ts';
import type { Template } from '../../../harness/aws/sdk-stacks.ts';
import { temporaryFolder } from '../../../harness/processes/processes.ts';
import { requireTools } from '../../../tools/tools.ts';

const { skip } = await requireTools('ministack');
const localStackMissing = await requireLocalStack();
const account = '000000000000';
const place = { partition: 'aws', account, region };
const statements = steps.flatMap((step) => step.statements(place).map(({ sid, actions }) => ({ sid, actions })));

const passed = 'MiniStack does not ask who may pass a role to a service';
/** Statements that MiniStack does not ask for. */
const reviewed: Readonly<Record<string, string>> = { ByTheRoleOfCdk: passed, ProbeWithSignRole: passed };

/**
 * MiniStack judges CreateFunction without the function's name, which is not in the path, and gives log groups another name than
 * AWS if the template gives none. So these two actions are permitted on everything, beside the statements that have them.
 */
function askedByMiniStack({ Statement: asked, ...policy }: PolicyDocument): PolicyDocument {
  const widened = asked.flatMap((statement) => {
    const Action = statement.Action.filter((action) => /^(lambda:CreateFunction|logs:DeleteLogGroup)$/.test(action));
    return Action.length === 0 ? [] : [{ ...statement, Sid: `${statement.Sid}Wide`, Action, Resource: ['*'] }];
  });
  return { ...policy, Statement: [...asked, ...widened] };
}

describe.skipIf(skip)('the acceptance run', () => {
  let emulator: Emulator;
  beforeAll(async () => {
    emulator = await startMiniStack({ auth: true });
    await bootstrap(emulator);
  });
  afterAll(() => emulator?.stop());

  /** A user with the policy of the plan, but for one statement. */
  async function tester(without?: string): Promise<Credentials> {
    const iam = new IAMClient(emulator.client);
    const UserName = `tester-${randomBytes(4).toString('hex')}`;
    const policy = policyOf(steps, place);
    const kept = { ...policy, Statement: policy.Statement.filter(({ Sid }) => Sid !== without) };
    await iam.send(new CreateUserCommand({ UserName }));
    await iam.send(
      new PutUserPolicyCommand({
        UserName,
        PolicyName: 'plan',
        PolicyDocument: JSON.stringify(askedByMiniStack(kept)),
      }),
    );
    const { AccessKey: key } = await iam.send(new CreateAccessKeyCommand({ UserName }));
    iam.destroy();
    return { accessKeyId: key?.AccessKeyId ?? '', secretAccessKey: key?.SecretAccessKey ?? '' };
  }

  async function run(credentials: Credentials, interruptAt?: RegExp): Promise<Report> {
    const interrupt = new AbortController();
    return runOnce({
      connection: { region, endpoint: emulator.url, credentials },
      partition: place.partition,
      emulator: {
        name: 'ministack',
        endpoint: emulator.url,
        limits: limitsOf('ministack'),
        adapt: (template) => judgedByMiniStack(template as Template),
      },
      pollMilliseconds: 100,
      keep: false,
      signal: interrupt.signal,
      log: () => {},
      onCall: (call) => {
        if (interruptAt?.test(call) === true) interrupt.abort();
      },
    });
  }

  /** Whatever has a name of a run. */
  async function remains(): Promise<readonly string[]> {
    const { client } = emulator;
    const formation = new CloudFormationClient(client);
    const clients = [formation];
    const { StackSummaries: stacks = [] } = await formation.send(new ListStacksCommand());
    const { Roles: roles = [] } = await new IAMClient(client).send(new ListRolesCommand());
    const { Functions: functions = [] } = await new LambdaClient(client).send(new ListFunctionsCommand());
    const { TableNames: tables = [] } = await new DynamoDBClient(client).send(new ListTablesCommand());
    const { logGroups = [] } = await new CloudWatchLogsClient(client).send(new DescribeLogGroupsCommand());
    for (const each of clients) each.destroy();
    return [
      ...stacks.filter(({ StackStatus: status }) => status !== 'DELETE_COMPLETE').map(({ StackName: name }) => name),
      ...roles.map(({ RoleName: name }) => name),
      ...functions.map(({ FunctionName: name }) => name),
      ...tables,
      ...logGroups.map(({ logGroupName: name }) => name),
    ].filter((name): name is string => name?.includes('accept-') === true);
  }

  const outcomes = (report: Report, outcome: string): readonly string[] =>
    report.steps.flatMap((step) =>
      step.findings.filter((each) => each.outcome === outcome).map(({ what, detail }) => `${what}: ${detail}`),
    );

  test('with the permissions of its plan: each step passes, and what MiniStack cannot show is named', async () => {
    const report = await run(await tester());
    expect(outcomes(report, 'fails')).toEqual([]);
    expect(report.steps.map(({ id, outcome }) => `${id} ${outcome}`)).toEqual(steps.map(({ id }) => `${id} passed`));
    expect(report.passed).toBe(true);
    // Two CA keys, which wait for their deletion.
    expect(report.left.map(({ what, expected }) => [what.split(' ')[0], expected])).toEqual([
      ['key', true],
      ['key', true],
    ]);
    expect(await remains()).toEqual([]);
    expect(report.cost.dollars).toBeLessThan(0.2);
  });

  test('interrupted while stacks are made, it removes everything', async () => {
    const report = await run(await tester(), /^CloudFormation CreateStack$/);
    expect(report.passed).toBe(false);
    expect(outcomes(report, 'fails')).toContainEqual(expect.stringContaining('interrupted'));
    expect(report.left.filter(({ expected }) => expected !== true)).toEqual([]);
    expect(await remains()).toEqual([]);
  });

  test.each(statements.filter(({ sid }) => !(sid in reviewed)))(
    'without the statement $sid a step fails, or something stays and is named',
    async ({ sid, actions }) => {
      const report = await run(await tester(sid));
      expect(report.passed).toBe(false);
      const said = [...outcomes(report, 'fails'), ...report.left.map(({ why }) => why)].join('\n');
      const refused = [...said.matchAll(/(?:not authorized to perform:|the login lacks) ([\w-]+:\w+)/g)].map(
        ([, action]) => action,
      );
      expect(actions).toEqual(expect.arrayContaining(refused.slice(0, 1)));
      expect(refused.length).toBeGreaterThan(0);
    },
  );
});

describe.skipIf(localStackMissing.skip)('npm run acceptance, on LocalStack', () => {
  test('as an operator types it: two reports, and nothing left but keys', async () => {
    const localStack = await startLocalStack();
    const folder = temporaryFolder('acceptance');
    try {
      await bootstrap(localStack);
      for (const [name, value] of Object.entries(localStack.environment))
        if (name !== 'AWS_ENDPOINT_URL') vi.stubEnv(name, value);
      let out = '';
      const argv = ['--region', region, '--endpoint', localStack.url, '--report', folder.path];
      const code = await main(argv, new AbortController().signal, (text) => void (out += text));
      expect([code, out]).toEqual([0, expect.stringMatching(/Left behind:\n(- key [^\n]*\n){2}[^]*\nPassed\n$/)]);
      const [json = '', markdown = ''] = readdirSync(folder.path).toSorted();
      const report = JSON.parse(readFileSync(join(folder.path, json), 'utf8')) as Report;
      // Its HTTP APIs exist by name only.
      expect(report.steps.map(({ id, outcome }) => `${id} ${outcome}`)).toEqual(
        steps.map(({ id }) => `${id} ${id === 'record' ? 'cannot' : 'passed'}`),
      );
      expect(readFileSync(join(folder.path, markdown), 'utf8')).toContain('# Acceptance run accept-');
    } finally {
      vi.unstubAllEnvs();
      folder.remove();
      await localStack.stop();
    }
  });
});

/** What `cdk bootstrap` leaves. */
async function bootstrap(emulator: Emulator): Promise<void> {
  const { client } = emulator;
  const s3 = new S3Client({ ...client, forcePathStyle: true });
  await s3.send(new CreateBucketCommand({ Bucket: bootstrapBucket(place) }));
  s3.destroy();
  const ssm = new SSMClient(client);
  await ssm.send(new PutParameterCommand({ Name: '/cdk-bootstrap/hnb659fds/version', Value: '30', Type: 'String' }));
  ssm.destroy();
  await createRole(emulator, `cdk-hnb659fds-cfn-exec-role-${account}-${region}`, '*');
}
