/** `countersign tofu`, `machines` and `report` over a table as a stack leaves it, with the login of an operator. */
import { randomBytes, randomUUID } from 'node:crypto';
import {
  CloudFormationClient,
  CreateStackCommand,
  DescribeStacksCommand,
  waitUntilStackCreateComplete,
} from '@aws-sdk/client-cloudformation';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { CreateRoleCommand, IAMClient, PutRolePolicyCommand } from '@aws-sdk/client-iam';
import { AssumeRoleCommand, STSClient } from '@aws-sdk/client-sts';
import { afterEach, beforeAll, expect, test, vi } from 'vitest';
import { dynamoDbAttestations } from '../../../../adapters/dynamodb/attestations.ts';
import { dynamoDbAttestationAdmin } from '../../../../adapters/dynamodb/attestation-admin.ts';
import { attestationsTable } from '../../../../adapters/dynamodb/table.ts';
import type { AttestationAdmin, AttestationStore } from '../../../../core/ports/attestation-store.ts';
import { byTier } from '../../../harness/determinism/tier.ts';
import { judged, machine, recordOf, used, verdictOf } from '../../../unit/cli/register.ts';
import { now, run } from '../../../unit/cli/run.ts';
import { bothEmulators, describeOnEmulators, patience } from './emulators.ts';

describeOnEmulators(byTier({ default: ['MiniStack'], deep: bothEmulators }), (name, emulator) => {
  const cluster = `cli-${randomUUID().slice(0, 8)}`;
  let tableName: string;
  let made: { readonly store: AttestationStore; readonly register: AttestationAdmin; readonly close: () => void };

  beforeAll(async () => {
    const { client } = emulator();
    const formation = new CloudFormationClient(client);
    const key = attestationsTable.partitionKey;
    const template = {
      Resources: {
        // With text that must not end an element too early, and an output more.
        Attestations: {
          Type: 'AWS::DynamoDB::Table',
          Properties: {
            BillingMode: 'PAY_PER_REQUEST',
            KeySchema: [{ AttributeName: key, KeyType: 'HASH' }],
            AttributeDefinitions: [{ AttributeName: key, AttributeType: 'S' }],
          },
        },
      },
      Outputs: {
        Other: { Value: 'AttestationsTable', Description: 'a < b & "c"' },
        AttestationsTable: { Value: { Ref: 'Attestations' }, Description: 'Which machine a node name belongs to' },
      },
    };
    const TemplateBody = JSON.stringify(template);
    const StackName = `countersign-${cluster}`;
    await formation.send(new CreateStackCommand({ StackName, TemplateBody }));
    await waitUntilStackCreateComplete(
      { client: formation, maxWaitTime: 120, minDelay: 1, maxDelay: 2 },
      { StackName },
    );
    const { Stacks: [stack] = [] } = await formation.send(new DescribeStacksCommand({ StackName }));
    tableName = stack?.Outputs?.find(({ OutputKey }) => OutputKey === 'AttestationsTable')?.OutputValue ?? '';
    const dynamoDb = new DynamoDBClient({ ...client, requestHandler: patience });
    const options = { client: dynamoDb, tableName, randomBytes };
    made = {
      store: dynamoDbAttestations(options),
      register: dynamoDbAttestationAdmin(options),
      close: () => dynamoDb.destroy(),
    };
  });
  afterEach(() => vi.unstubAllEnvs());

  /** With this login, in an environment that knows no other. */
  async function countersign(
    argv: readonly string[],
    change: Readonly<Record<string, string | undefined>> = {},
    // Signatures are held against it, where it is not the SDK that makes them.
    now: () => number = Date.now,
  ) {
    const environment = { ...emulator().environment, ...change };
    for (const [key, value] of Object.entries(environment)) vi.stubEnv(key, value);
    vi.stubEnv('AWS_CONFIG_FILE', '/nonexistent');
    vi.stubEnv('AWS_SHARED_CREDENTIALS_FILE', '/nonexistent');
    vi.stubEnv('AWS_EC2_METADATA_DISABLED', 'true');
    try {
      const known = Object.entries(environment).flatMap(([key, value]) => (value === undefined ? [] : [[key, value]]));
      return await run(argv, { environment: Object.fromEntries(known) as Record<string, string>, world: { now } });
    } finally {
      vi.unstubAllEnvs();
    }
  }

  /** A role of these rights, and a session of it as the environment has it. */
  async function login(actions: readonly string[]) {
    const { client } = emulator();
    const iam = new IAMClient(client);
    const RoleName = `operator-${randomUUID()}`;
    const document = (statement: object) =>
      JSON.stringify({ Version: '2012-10-17', Statement: [{ Effect: 'Allow', ...statement }] });
    const trust = document({ Action: 'sts:AssumeRole', Principal: { AWS: '*' } });
    const { Role: role } = await iam.send(new CreateRoleCommand({ RoleName, AssumeRolePolicyDocument: trust }));
    const PolicyDocument = document({ Action: actions, Resource: '*' });
    await iam.send(new PutRolePolicyCommand({ RoleName, PolicyName: 'p', PolicyDocument }));
    const assume = new AssumeRoleCommand({ RoleArn: role!.Arn!, RoleSessionName: 'ada' });
    const { Credentials: session } = await new STSClient(client).send(assume);
    return {
      arn: role!.Arn!.replace(':iam:', ':sts:').replace(':role/', ':assumed-role/') + '/ada',
      environment: {
        AWS_ACCESS_KEY_ID: session!.AccessKeyId!,
        AWS_SECRET_ACCESS_KEY: session!.SecretAccessKey!,
        AWS_SESSION_TOKEN: session!.SessionToken!,
      },
    };
  }

  const operator = ['GetItem', 'Scan', 'PutItem', 'UpdateItem', 'DeleteItem'].map((action) => `dynamodb:${action}`);
  const why = ['--reason', 'ticket 4711'];

  test('listed, reset, shown; the audit items name the caller', async () => {
    await used(made, recordOf('worker-1', 'a', { addresses: ['10.0.200.7'] }));
    const list = await countersign(['tofu', 'list', '--cluster', cluster, '-o', 'json']);
    expect([list.code, list.err]).toEqual([0, '']);
    expect(JSON.parse(list.out)).toMatchObject([{ node: 'worker-1', identity: machine('a'), state: 'active' }]);

    const { arn, environment } = await login([...operator, 'cloudformation:DescribeStacks']);
    const by = { ...environment };
    const reset = ['tofu', 'reset', '--cluster', cluster, '--identity', machine('a'), ...why];
    const done = await countersign(reset, by);
    expect([done.code, done.err]).toEqual([0, `countersign: cluster ${cluster}, as ${arn}\n`]);
    expect((await countersign(reset, by)).code).toBe(4);
    expect(await made.store.findNode('worker-1')).toBeUndefined();
    const shown = await countersign(['tofu', 'show', '--cluster', cluster, '--identity', machine('a')], by);
    expect([shown.code, shown.out]).toEqual([4, expect.stringContaining('ticket 4711')]);

    const items = (await Array.fromAsync(made.register.listAudit())).filter(({ subject }) => subject === machine('a'));
    expect(items.map(({ action }) => action)).toEqual(['reset']);
    expect(new Set(items.map((item) => item.by))).toEqual(new Set([arn]));
    // The address is free again.
    await used(made, recordOf('worker-2', 'b', { addresses: ['10.0.200.7'] }));
  });

  test('lock: a node and its machine, shown, and unlocked; the audit items name the caller', async () => {
    await used(made, recordOf('worker-8', 'e'));
    const { arn, environment } = await login([...operator, 'cloudformation:DescribeStacks']);
    const ask = (...argv: readonly string[]) => countersign([...argv, '--cluster', cluster], { ...environment });
    const locked = await ask('lock', 'worker-8', ...why, '-o', 'json');
    expect([locked.code, locked.err]).toEqual([0, `countersign: cluster ${cluster}, as ${arn}\n`]);
    expect(JSON.parse(locked.out)).toMatchObject({ node: 'worker-8', identity: machine('e'), by: arn });
    for (const subject of ['node#worker-8', `id#${machine('e')}`] as const)
      expect(await made.store.findLock(subject)).toMatchObject({ by: arn, reason: 'ticket 4711' });
    expect((await ask('lock', machine('e'), ...why)).code).toBe(6);
    expect((await ask('locks')).out).toContain('worker-8');
    expect((await ask('unlock', machine('e'), ...why)).code).toBe(0);
    expect((await ask('unlock', 'worker-8', ...why)).code).toBe(4);
    expect(await made.register.listLocks()).toEqual([]);
    const items = (await Array.fromAsync(made.register.listAudit())).filter(({ subject }) => subject === machine('e'));
    expect(items.map(({ action, by }) => [action, by])).toEqual([
      ['lock', arn],
      ['unlock', arn],
    ]);
  });

  test('machines, and a pattern', async () => {
    const machines = (...argv: readonly string[]) => countersign(['machines', ...argv, '--cluster', cluster]);
    const entry = `aws#i-${'c'.repeat(17)}`;
    for (const allowed of [entry, 'aws#i-0*']) expect((await machines('allow', allowed, ...why)).code).toBe(0);
    const list = JSON.parse((await machines('list', '-o', 'json')).out) as readonly { name: string; reason: string }[];
    expect(list.map(({ name: each, reason }) => `${each} ${reason}`)).toEqual([
      'aws#i-0* ticket 4711',
      `${entry} ticket 4711`,
    ]);
    expect((await machines('remove', 'aws#i-0*', ...why)).code).toBe(0);
    expect((await machines('remove', 'aws#i-0*', ...why)).code).toBe(4);
    expect((await made.register.listMachines()).map(({ name: each }) => each)).toEqual([entry]);
  });

  test('report', async () => {
    await judged(made, verdictOf('good'), verdictOf('bad', [['AttestationMissing', 'no evidence']]));
    const ran = await countersign(['report', '--cluster', cluster, '--table', tableName], {}, () => now);
    expect([ran.code, ran.err]).toEqual([1, '']);
    expect(ran.out).toMatch(
      /\nbad .* denied +no evidence \[AttestationMissing\] .*\n(.*\n)*2 nodes: 1 would fail, 1 pass\n$/,
    );
  });

  test('no stack, another stack, no table, no login, no endpoint', async () => {
    const list = (...argv: readonly string[]) => ['tofu', 'list', ...argv];
    const none = await countersign(list('--cluster', 'none'));
    expect([none.code, none.err]).toEqual([4, expect.stringMatching(/no stack countersign-none .*\n.*--table/)]);
    const table = await countersign(list('--cluster', cluster, '--table', 'missing'));
    expect([table.code, table.err]).toEqual([4, expect.stringMatching(/no such table/)]);
    const named = await countersign(list('--cluster', 'none'), { COUNTERSIGN_ATTESTATIONS_TABLE: tableName });
    expect([named.code, named.err]).toEqual([0, '']);
    const anonymous = await countersign(list('--cluster', cluster), { AWS_ACCESS_KEY_ID: undefined });
    expect([anonymous.code, anonymous.err]).toEqual([3, expect.stringMatching(/log in to AWS/)]);
    const nowhere = await countersign(list('--cluster', cluster), { AWS_REGION: undefined });
    expect([nowhere.code, nowhere.err]).toEqual([3, expect.stringMatching(/[Rr]egion.*\n.*--region, or AWS_REGION/)]);
    const deaf = await countersign(list('--cluster', cluster), { AWS_ENDPOINT_URL: 'http://127.0.0.1:9' });
    expect([deaf.code, deaf.err]).toEqual([5, expect.stringMatching(/CloudFormation did not answer/)]);
  });

  test('what an operator may not is told by its name, and nothing is changed', async () => {
    // LocalStack does not check permissions.
    const denied = (said: RegExp, otherwise = ''): readonly unknown[] =>
      name === 'LocalStack' ? [0, otherwise] : [3, expect.stringMatching(said)];
    await used(made, recordOf('worker-3', 'd'));
    const { environment } = await login(operator);
    const blind = await countersign(['tofu', 'list', '--cluster', cluster], environment);
    expect([blind.code, blind.err]).toEqual(denied(/DescribeStacks[^]*--table/));
    const sighted = await countersign(['tofu', 'list', '--cluster', cluster, '--table', tableName], environment);
    expect([sighted.code, sighted.err]).toEqual([0, '']);
    const reader = await login(['dynamodb:GetItem', 'dynamodb:Scan']);
    const reset = ['tofu', 'reset', '--cluster', cluster, '--table', tableName, '--node', 'worker-3', ...why];
    const ran = await countersign(reset, reader.environment);
    expect([ran.code, ran.err]).toEqual(
      denied(
        /DynamoDB refuses: AccessDenied/,
        `countersign: cluster ${cluster}, table ${tableName}, as ${reader.arn}\n`,
      ),
    );
    const state = name === 'LocalStack' ? undefined : 'active';
    expect((await made.store.findNode('worker-3'))?.state).toBe(state);
  });
});
