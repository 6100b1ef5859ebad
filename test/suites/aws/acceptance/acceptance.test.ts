/** The acceptance run by the code that runs on AWS: in a MiniStack that checks permissions, with the login that its plan asks for. */
import { CloudFormationClient, ListStacksCommand } from '@aws-sdk/client-cloudformation';
import { CloudWatchLogsClient, DescribeLogGroupsCommand } from '@aws-sdk/client-cloudwatch-logs';
import { DynamoDBClient, ListTablesCommand } from '@aws-sdk/client-dynamodb';
import { DescribeInstancesCommand, EC2Client } from '@aws-sdk/client-ec2';
import {
  CreateAccessKeyCommand,
  CreateUserCommand,
  IAMClient,
  ListRolesCommand,
  PutUserPolicyCommand,
} from '@aws-sdk/client-iam';
import { LambdaClient, ListFunctionsCommand } from '@aws-sdk/client-lambda';
import { CreateBucketCommand, ListObjectsV2Command, S3Client } from '@aws-sdk/client-s3';
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
import { steps } from '../../../../acceptance/steps.ts';
import type { Extra, Step } from '../../../../acceptance/world/step.ts';
import type { Credentials } from '../../../../acceptance/world/clients.ts';
import { bootstrapBucket } from '../../../../cli/aws/bootstrap.ts';
import { limitsOf } from '../../../../acceptance/world/emulator.ts';
import { startAwsPlatform } from '../../../harness/attestation/attested-site.ts';
import type { AwsPlatform } from '../../../harness/attestation/attested-site.ts';
import { emulatedRegion as region, type Emulator } from '../../../harness/aws/emulator.ts';
import { requireLocalStack, startLocalStack } from '../../../harness/aws/localstack.ts';
import { createRole, judgedByMiniStack, withoutRegions } from '../../../harness/aws/ministack-deployment.ts';
import { startMiniStack } from '../../../harness/aws/ministack.ts';
import type { Template } from '../../../harness/aws/sdk-stacks.ts';
import { temporaryFolder } from '../../../harness/processes/processes.ts';
import { requireTools } from '../../../tools/tools.ts';
import { playMachines } from './played-machines.ts';
import type { PlayedMachines } from './played-machines.ts';

const { skip } = await requireTools('ministack');
const localStackMissing = await requireLocalStack();
const account = '000000000000';
const place = { partition: 'aws', account, region };
const extras: ReadonlySet<Extra> = new Set(['restore']);
const statements = steps.flatMap((step) =>
  step.statements(place).map(({ sid, actions }) => ({ sid, actions, step: step.id })),
);

function neededBy(id: string): readonly Step[] {
  const wanted = new Set([id]);
  const found = steps.toReversed().filter((step) => {
    if (!wanted.has(step.id)) return false;
    for (const each of step.needs) wanted.add(each);
    return true;
  });
  return found.toReversed();
}

const passed = 'MiniStack does not ask who may pass a role to a service';
/** Statements that MiniStack does not ask for. */
const reviewed: Readonly<Record<string, string>> = {
  ByTheRoleOfCdk: passed,
  ProbeWithRoles: passed,
  StartInstancesOfTheRun:
    'MiniStack judges RunInstances once, where AWS judges it for each resource; left out together below',
  StartInstancesIn: 'the same',
  TagInstancesAtTheirStart: 'MiniStack does not ask who may tag an instance at its start',
  ReadWhatMayDrift: 'MiniStack does not read resources with the rights of the login to detect their drift',
};

/**
 * MiniStack judges CreateFunction, RestoreTableToPointInTime and calls of EC2 without a resource, gives log groups another name
 * than AWS if the template gives none, and knows nothing of the conditions of EC2. So these actions are permitted on everything,
 * beside the statements that have them.
 */
const withoutResource = /^(lambda:CreateFunction|logs:DeleteLogGroup|dynamodb:RestoreTableToPointInTime|ec2:\w+)$/;

function askedByMiniStack({ Statement: asked, ...policy }: PolicyDocument): PolicyDocument {
  const widened = asked.flatMap(({ Sid, Effect, Action: actions }) => {
    const Action = actions.filter((action) => withoutResource.test(action));
    return Action.length === 0 ? [] : [{ Sid: `${Sid}Wide`, Effect, Action, Resource: ['*'] }];
  });
  return { ...policy, Statement: [...asked, ...widened] };
}

describe.skipIf(skip)('the acceptance run', () => {
  let emulator: Emulator;
  let platform: AwsPlatform;
  let machines: PlayedMachines;
  beforeAll(async () => {
    platform = await startAwsPlatform();
    machines = playMachines(platform);
    emulator = await startMiniStack({
      auth: true,
      functionEnvironment: { AWS_ENDPOINT_URL_STS: platform.sts.url, CLOUDTRAIL_RECORDING: '1' },
    });
    await bootstrap(emulator);
  });
  afterAll(async () => {
    await machines?.stop();
    await emulator?.stop();
    await platform?.close();
  });

  /** A user with the policy of the plan, but for some statements. */
  async function tester(...without: readonly string[]): Promise<Credentials> {
    const iam = new IAMClient(emulator.client);
    const UserName = `tester-${randomBytes(4).toString('hex')}`;
    const policy = policyOf(steps, place, extras);
    const kept = { ...policy, Statement: policy.Statement.filter(({ Sid }) => !without.includes(Sid)) };
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

  interface Wanted {
    readonly interruptAt?: RegExp;
    /** Only the steps up to this one that it needs. */
    readonly upTo?: string;
  }

  async function run(credentials: Credentials, { interruptAt, upTo }: Wanted = {}): Promise<Report> {
    const interrupt = new AbortController();
    return runOnce({
      steps: upTo === undefined ? steps : neededBy(upTo),
      connection: { region, endpoint: emulator.url, credentials },
      partition: place.partition,
      emulator: {
        name: 'ministack',
        endpoint: emulator.url,
        limits: limitsOf('ministack'),
        adapt: (template) => withoutRegions(judgedByMiniStack(template as Template)),
        machines,
      },
      pollMilliseconds: 100,
      idleMinutes: 0,
      extras,
      keep: false,
      signal: interrupt.signal,
      log: () => {},
      onCall: (call) => {
        if (interruptAt?.test(call) === true) interrupt.abort();
      },
    });
  }

  /** Whatever has a name of a run, and its instances. */
  async function remains(): Promise<readonly string[]> {
    const { client } = emulator;
    const formation = new CloudFormationClient(client);
    const clients = [formation];
    const { StackSummaries: stacks = [] } = await formation.send(new ListStacksCommand());
    const { Roles: roles = [] } = await new IAMClient(client).send(new ListRolesCommand());
    const { Functions: functions = [] } = await new LambdaClient(client).send(new ListFunctionsCommand());
    const { TableNames: tables = [] } = await new DynamoDBClient(client).send(new ListTablesCommand());
    const { logGroups = [] } = await new CloudWatchLogsClient(client).send(new DescribeLogGroupsCommand());
    const { Reservations: reservations = [] } = await new EC2Client(client).send(new DescribeInstancesCommand());
    const s3 = new S3Client({ ...client, forcePathStyle: true });
    const { Contents: objects = [] } = await s3.send(new ListObjectsV2Command({ Bucket: bootstrapBucket(place) }));
    for (const each of clients) each.destroy();
    return [
      ...reservations.flatMap(({ Instances: instances = [] }) =>
        instances.filter(({ State }) => State?.Name !== 'terminated').map(({ InstanceId: id }) => `accept-… ${id}`),
      ),
      ...objects.map(({ Key: key }) => key),
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
    // Of the instances, what a played one can show is shown: its evidence, its certificate, and what becomes of its name.
    expect(outcomes(report, 'notShown').filter((each) => each.includes('instance'))).toEqual([
      expect.stringContaining('IMDSv2'),
    ]);
    expect(outcomes(report, 'holds')).toContainEqual(expect.stringMatching(/^CloudTrail has the event .*: event /));
    expect(outcomes(report, 'holds')).toContainEqual(expect.stringMatching(/^no alarm is in state ALARM: /));
    const { alarms, quiet } = Object.fromEntries(report.steps.map(({ id, notShown }) => [id, notShown]));
    expect({ alarms, quiet }).toEqual({
      alarms: ['MiniStack counts no metric from log lines', 'MiniStack’s alarms see no metric of log lines'],
      quiet: ['only with --idle MINUTES'],
    });
    // Three CA keys, which wait for their deletion.
    expect(report.left.map(({ what, expected }) => `${what.split(' ')[0]} ${expected}`).toSorted()).toEqual([
      'key true',
      'key true',
      'key true',
      'metrics true',
      'metrics true',
    ]);
    expect(await remains()).toEqual([]);
    expect(report.cost.dollars).toBeLessThan(0.2);
  }, 480_000);

  test('interrupted while stacks are made, it removes everything', async () => {
    const report = await run(await tester(), { interruptAt: /^CloudFormation CreateStack$/ });
    expect(report.passed).toBe(false);
    expect(outcomes(report, 'fails')).toContainEqual(expect.stringContaining('interrupted'));
    expect(report.left.filter(({ expected }) => expected !== true)).toEqual([]);
    expect(await remains()).toEqual([]);
  });

  const together = { sid: 'StartInstancesOfTheRun StartInstancesIn', actions: ['ec2:RunInstances'], step: 'machines' };

  test.each([...statements.filter(({ sid }) => !(sid in reviewed)), together])(
    'without $sid a step fails, or something stays and is named',
    async ({ sid, actions, step }) => {
      const report = await run(await tester(...sid.split(' ')), { upTo: step });
      expect(report.passed).toBe(false);
      const said = [...outcomes(report, 'fails'), ...report.left.map(({ why }) => why)].join('\n');
      const refused = [...said.matchAll(/(?:not authorized to perform:|the login lacks) ([\w-]+:\w+)/g)].map(
        ([, action]) => action,
      );
      expect(actions).toEqual(expect.arrayContaining(refused.slice(0, 1)));
      expect(refused.length, said).toBeGreaterThan(0);
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
      const argv = ['--region', region, '--endpoint', localStack.url, '--report', folder.path, '--with', 'restore'];
      const code = await main(argv, new AbortController().signal, (text) => void (out += text));
      expect([code, out]).toEqual([
        0,
        expect.stringMatching(/Left behind:\n(- (key|metrics) [^\n]*\n){5}[^]*\nPassed\n$/),
      ]);
      const [json = '', markdown = ''] = readdirSync(folder.path).toSorted();
      const report = JSON.parse(readFileSync(join(folder.path, json), 'utf8')) as Report;
      // Its HTTP APIs exist by name only, so that nothing is refused or issued, and its DynamoDB restores no table.
      expect(report.steps.map(({ id, outcome }) => `${id} ${outcome}`)).toEqual(
        steps.map(({ id }) => `${id} ${['alarms', 'quiet', 'restore'].includes(id) ? 'notShown' : 'passed'}`),
      );
      expect(readFileSync(join(folder.path, markdown), 'utf8')).toContain('# Acceptance run accept-');
    } finally {
      vi.unstubAllEnvs();
      folder.remove();
      await localStack.stop();
    }
  }, 600_000);
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
