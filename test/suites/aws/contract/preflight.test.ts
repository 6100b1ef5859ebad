/**
 * `countersign aws preflight` asks an AWS that answers. Service Quotas, which no emulator has for KMS, is a strict fake; the
 * services of a region are in LocalStack as AWS published them. In MiniStack they are missing, and cannot be written.
 */
import { CloudFormationClient, CreateStackCommand, waitUntilStackCreateComplete } from '@aws-sdk/client-cloudformation';
import { CreateRoleCommand, CreateUserCommand, DeleteRoleCommand, IAMClient } from '@aws-sdk/client-iam';
import {
  CreateFunctionCommand,
  GetAccountSettingsCommand,
  LambdaClient,
  PutFunctionConcurrencyCommand,
  waitUntilFunctionActiveV2,
} from '@aws-sdk/client-lambda';
import { DeleteParameterCommand, PutParameterCommand, SSMClient } from '@aws-sdk/client-ssm';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import type { Check } from '../../../../cli/preflight/check.ts';
import { permissions } from '../../../../cli/preflight/check.ts';
import { assumeRole, createRole } from '../../../harness/aws/ministack-deployment.ts';
import type { SessionCredentials } from '../../../harness/aws/ministack-deployment.ts';
import { emulatedRegion } from '../../../harness/aws/emulator.ts';
import { startFakeServiceQuotas, type FakeServiceQuotas } from '../../../harness/fake-aws/service-quotas.ts';
import { createFakeAws } from '../../../harness/fake-aws/world.ts';
import { byTier } from '../../../harness/determinism/tier.ts';
import { zip } from '../../../../acceptance/resources/zip.ts';
import { run } from '../../../unit/cli/run.ts';
import { bothEmulators, describeOnEmulators } from './emulators.ts';

const account = '000000000000';
const bootstrap = '/cdk-bootstrap/hnb659fds/version';
const like = (pattern: RegExp): unknown => expect.stringMatching(pattern);
const arn = (name: string): string => `arn:aws:iam::${account}:${name}`;

function file(cluster: string, change: Readonly<Record<string, unknown>> = {}): string {
  const prod = {
    cas: { ca: { subject: { commonName: cluster } }, rsa: { subject: { commonName: 'rsa' }, keySpec: 'RSA-3072' } },
    profiles: { 'kubernetes.io/kubelet-serving': { ca: 'ca' } },
    access: { iam: { principals: [arn('role/relays/relay')] } },
    keys: { deleters: [arn('user/custodian')] },
    aws: { account, region: emulatedRegion },
    ...change,
  };
  return JSON.stringify({ version: 1, clusters: { [cluster]: prod } });
}

describeOnEmulators(byTier({ default: ['MiniStack'], deep: bothEmulators }), (name, emulator) => {
  const aws = createFakeAws();
  let quotas: FakeServiceQuotas;
  let ssm: SSMClient;
  let iam: IAMClient;
  beforeAll(async () => {
    const { client } = emulator();
    quotas = await startFakeServiceQuotas({ aws });
    aws.addCredential({
      ...client.credentials,
      principal: { account, arn: arn('root'), userId: account, allows: ['*'] },
    });
    ssm = new SSMClient(client);
    iam = new IAMClient(client);
    await put(bootstrap, '30');
    await makeRelay('/relays/');
    await iam.send(new CreateUserCommand({ UserName: 'custodian' }));
  });
  afterEach(() => vi.unstubAllEnvs());
  afterAll(async () => {
    for (const client of [ssm, iam]) client?.destroy();
    await quotas?.close();
  });

  const put = (Name: string, Value: string) =>
    ssm.send(new PutParameterCommand({ Name, Value, Type: 'String', Overwrite: true }));
  const makeRelay = (Path: string) =>
    iam.send(
      new CreateRoleCommand({
        RoleName: 'relay',
        Path,
        AssumeRolePolicyDocument: JSON.stringify({
          Version: '2012-10-17',
          Statement: [{ Effect: 'Allow', Action: 'sts:AssumeRole', Principal: { AWS: account } }],
        }),
      }),
    );

  /** With this login, in an environment that knows no other. */
  async function preflight(text: string, login?: SessionCredentials) {
    const environment: Record<string, string | undefined> = {
      ...emulator().environment,
      AWS_ENDPOINT_URL_SERVICE_QUOTAS: quotas.url,
      AWS_CONFIG_FILE: '/nonexistent',
      AWS_SHARED_CREDENTIALS_FILE: '/nonexistent',
      AWS_EC2_METADATA_DISABLED: 'true',
      ...(login === undefined
        ? {}
        : {
            AWS_ACCESS_KEY_ID: login.accessKeyId,
            AWS_SECRET_ACCESS_KEY: login.secretAccessKey,
            AWS_SESSION_TOKEN: login.sessionToken,
          }),
    };
    for (const [key, value] of Object.entries(environment)) vi.stubEnv(key, value);
    const ran = await run(['aws', 'preflight', '--config', 'c.yaml', '-o', 'json'], { files: { 'c.yaml': text } });
    vi.unstubAllEnvs();
    const { places = [] } = JSON.parse(ran.out || '{}') as { places?: { checks: Check[] }[] };
    const checks = places.flatMap((place) => place.checks);
    const expected = (check: Check): boolean =>
      check.result === 'pass' || (name === 'MiniStack' && check.seen === 'AWS lists no such region');
    return { ...ran, checks, others: checks.filter((check) => !expected(check)) };
  }

  /** Of the sign function of cluster `mine`. */
  const reserved = 200;
  /** More than can be reserved by a cluster that has reserved nothing yet. */
  let tight: number;

  async function createStack(StackName: string, cluster: string): Promise<void> {
    const formation = new CloudFormationClient(emulator().client);
    const Properties = { Type: 'String', Value: 'x', Name: `/of/${StackName}` };
    const TemplateBody = JSON.stringify({ Resources: { Only: { Type: 'AWS::SSM::Parameter', Properties } } });
    const Tags = [{ Key: 'countersign:cluster', Value: cluster }];
    await formation.send(new CreateStackCommand({ StackName, TemplateBody, Tags }));
    await waitUntilStackCreateComplete({ client: formation, maxWaitTime: 60, minDelay: 1, maxDelay: 1 }, { StackName });
    formation.destroy();
  }

  test('an account in which everything is there', async () => {
    const ran = await preflight(file('prod'));
    expect([ran.err, ran.others, ran.code]).toEqual(['', [], name === 'MiniStack' ? 1 : 0]);
    expect(ran.checks.map(({ id }) => id)).toEqual([
      'identity',
      'region',
      'bootstrap',
      'concurrency',
      'kms',
      'kms',
      'principal',
      'principal',
      'stack',
      'stack',
    ]);
    // No applied value: the default was asked for.
    expect(quotas.calls.toSorted()).toEqual([
      `GetAWSDefaultServiceQuota L-2AC98190 ${emulatedRegion}`,
      `GetAWSDefaultServiceQuota L-DC14942D ${emulatedRegion}`,
    ]);
    quotas.applied.set('L-DC14942D', 150);
    expect((await preflight(file('prod'))).others).toMatchObject([{ id: 'kms', result: 'fail', seen: like(/: 150$/) }]);
    quotas.applied.clear();
  });

  test('what is missing or another’s', async () => {
    const elsewhere = await preflight(file('prod', { aws: { account: '111122223333', region: emulatedRegion } }));
    expect(elsewhere.others).toMatchObject([{ id: 'identity', result: 'fail' }]);

    await put(bootstrap, '5');
    expect((await preflight(file('prod'))).others).toMatchObject([{ id: 'bootstrap', seen: 'version 5' }]);
    await ssm.send(new DeleteParameterCommand({ Name: bootstrap }));
    expect((await preflight(file('prod'))).others).toMatchObject([
      { id: 'bootstrap', seen: like(/there is no parameter/) },
    ]);
    await put(bootstrap, '30');

    await iam.send(new DeleteRoleCommand({ RoleName: 'relay' }));
    expect((await preflight(file('prod'))).others).toMatchObject([
      { id: 'principal', seen: like(/IAM has no role relay/) },
    ]);
    await makeRelay('/');
    expect((await preflight(file('prod'))).others).toMatchObject([
      { id: 'principal', seen: like(/IAM has .*:role\/relay$/) },
    ]);
    await iam.send(new DeleteRoleCommand({ RoleName: 'relay' }));
    await makeRelay('/relays/');

    const nowhere = await preflight(file('prod', { aws: { account, region: 'eu-nowhere-9' } }));
    expect(nowhere.checks).toContainEqual(expect.objectContaining({ id: 'region', seen: 'AWS lists no such region' }));
  });

  test('stacks of this cluster, of another one, and what its functions reserved', async () => {
    await createStack('countersign-mine', 'mine');
    await createStack('countersign-mine-state', 'yours');
    const { others } = await preflight(file('mine'));
    expect(others).toMatchObject([
      { check: like(/^stack countersign-mine-state is free/), seen: 'it is of cluster yours' },
    ]);

    const lambda = new LambdaClient(emulator().client);
    const FunctionName = 'countersign-mine-sign';
    const ZipFile = zip(new Map([['index.mjs', Buffer.from('export const handler = () => 1;')]]));
    const role = await createRole(emulator(), 'lambda');
    await lambda.send(
      new CreateFunctionCommand({
        FunctionName,
        Runtime: 'nodejs24.x',
        Handler: 'index.handler',
        Role: role,
        Code: { ZipFile },
      }),
    );
    await waitUntilFunctionActiveV2({ client: lambda, maxWaitTime: 60, minDelay: 1, maxDelay: 1 }, { FunctionName });
    await lambda.send(new PutFunctionConcurrencyCommand({ FunctionName, ReservedConcurrentExecutions: reserved }));
    const { AccountLimit: limit } = await lambda.send(new GetAccountSettingsCommand());
    lambda.destroy();
    // What is reserved is reserved by cluster `mine` itself, so there is room for more of it than of another one.
    const most = (limit?.UnreservedConcurrentExecutions ?? 0) - 100;
    const limits = (reservedConcurrency: number) => ({ limits: { reservedConcurrency } });
    expect((await preflight(file('mine', limits(most + reserved)))).others).toHaveLength(1);
    expect((await preflight(file('mine', limits(most + reserved + 1)))).others).toContainEqual(
      expect.objectContaining({ id: 'concurrency', seen: expect.stringContaining('1 too few') as unknown }),
    );
    expect((await preflight(file('prod', limits(most)))).others).toEqual([]);
    expect((await preflight(file('prod', limits(most + 1)))).others).toMatchObject([
      { id: 'concurrency', result: 'fail' },
    ]);
    tight = most + 1;
  });

  // LocalStack permits everything.
  if (name !== 'MiniStack') return;
  test('the documented permissions are enough, and each one is needed', async () => {
    // MiniStack takes each call about a reservation for one that changes it.
    const all = Object.keys(permissions).map((each) =>
      each === 'lambda:GetFunctionConcurrency' ? 'lambda:PutFunctionConcurrency' : each,
    );
    /** A login with these rights, which the fake of Service Quotas knows too. */
    async function login(index: number, allows: readonly string[]): Promise<SessionCredentials> {
      const role = await createRole(emulator(), `operator-${index}`, ...allows);
      const session = await assumeRole(emulator().client, role);
      const who = { account, arn: `arn:aws:sts::${account}:assumed-role/operator-${index}/suite`, userId: 'x', allows };
      aws.addCredential({ ...session, principal: who });
      return session;
    }
    // The reservation of the other test makes a call of GetFunctionConcurrency count.
    const mine = file('mine', { limits: { reservedConcurrency: tight } });
    const foreign = (check: Check): boolean => check.check.startsWith('stack countersign-mine-state');
    const enough = await preflight(mine, await login(-1, all));
    expect(enough.others.filter((check) => !foreign(check))).toEqual([]);
    for (const [index, lacking] of all.entries()) {
      const session = await login(
        index,
        all.filter((each) => each !== lacking),
      );
      const { others } = await preflight(mine, session);
      const unknown = others.filter(({ result }) => result === 'unknown');
      expect(new Set(unknown.map(({ permission }) => permission)), lacking).toEqual(
        // MiniStack does not check the permission to read these settings.
        new Set(lacking === 'lambda:GetAccountSettings' ? [] : [lacking]),
      );
    }
  });
});
