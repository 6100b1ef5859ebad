/** What preflight makes of an account, row by row. The calls themselves run on the emulators (test/suites/aws/contract). */
import { expect, test } from 'vitest';
import type { AccountView } from '../../../../cli/runtime/account-view.ts';
import { permissions } from '../../../../cli/preflight/check.ts';
import type { Check } from '../../../../cli/preflight/check.ts';
import { now, run } from '../run.ts';

const [account, region] = ['999900001111', 'eu-central-1'];
const relay = `arn:aws:iam::${account}:role/relays/prod-relay`;
const admin = `arn:aws:iam::${account}:user/admin`;
const formation = `arn:aws:iam::${account}:role/cdk-hnb659fds-cfn-exec-role-${account}-${region}`;
const infrastructure = `/aws/service/global-infrastructure/regions/${region}`;

interface Account {
  readonly arn: string;
  readonly region: string;
  readonly parameters: Readonly<Record<string, string>>;
  readonly concurrency: { readonly limit: number; readonly unreserved: number };
  readonly reserved: Readonly<Record<string, number>>;
  readonly quotas: Readonly<Record<string, { readonly name: string; readonly value: number }>>;
  readonly principals: Readonly<Record<string, string>>;
  readonly stacks: Readonly<Record<string, { readonly status: string; readonly tags: ReadonlyMap<string, string> }>>;
  /** Calls that are refused, by permission. */
  readonly denied: readonly string[];
}

const services = ['lambda', 'kms', 'dynamodb', 'apigatewayv2'];
/** Everything is there, and nothing of the cluster yet. */
const ready: Account = {
  arn: `arn:aws:sts::${account}:assumed-role/deployer/ada`,
  region,
  parameters: {
    '/cdk-bootstrap/hnb659fds/version': '30',
    [infrastructure]: region,
    ...Object.fromEntries(services.map((service) => [`${infrastructure}/services/${service}`, service])),
  },
  concurrency: { limit: 1000, unreserved: 1000 },
  reserved: {},
  quotas: {
    'L-DC14942D': { name: 'Cryptographic operations (ECC) request rate', value: 1000 },
    'L-2AC98190': { name: 'Cryptographic operations (RSA) request rate', value: 1000 },
  },
  principals: { 'prod-relay': relay, admin, [formation.split('/')[1] ?? '']: formation },
  stacks: {},
  denied: [],
};

function viewOf(known: Account): AccountView {
  const allowed = <T>(permission: keyof typeof permissions, answer: T): Promise<T> =>
    known.denied.includes(permission)
      ? Promise.reject(Object.assign(new Error(`may not`), { name: 'AccessDeniedException' }))
      : Promise.resolve(answer);
  return {
    region: async () => known.region,
    callerArn: async () => known.arn,
    answeredAt: () => now,
    parameters(names, where) {
      // AWS has the list in some regions only.
      const here = names.filter((name) =>
        name.startsWith('/aws/service/') ? where === 'us-east-1' : where === undefined,
      );
      const found = here.flatMap((name) => {
        const value = known.parameters[name];
        return value === undefined ? [] : [[name, value] as const];
      });
      return allowed('ssm:GetParameters', new Map(found));
    },
    concurrency: () => allowed('lambda:GetAccountSettings', known.concurrency),
    reservedBy: (name) => allowed('lambda:GetFunctionConcurrency', known.reserved[name] ?? 0),
    quota: (service, code) => allowed('servicequotas:GetServiceQuota', known.quotas[service === 'kms' ? code : '']!),
    principal: (kind, name) => allowed(kind === 'role' ? 'iam:GetRole' : 'iam:GetUser', known.principals[name]),
    stack: (name) => allowed('cloudformation:DescribeStacks', known.stacks[name]),
    close: () => undefined,
  };
}

/** Cluster `prod`, with what it says otherwise. */
function prod(change: Readonly<Record<string, unknown>> = {}): Readonly<Record<string, unknown>> {
  return {
    cas: { ca: { subject: { commonName: 'prod' } } },
    profiles: { 'kubernetes.io/kubelet-serving': { ca: 'ca' } },
    access: { iam: { principals: [relay] } },
    aws: { account, region },
    ...change,
  };
}

async function preflight(
  change: Partial<Account> = {},
  clusters: Readonly<Record<string, unknown>> = { prod: prod() },
  ...flags: readonly string[]
) {
  const asked: (string | undefined)[] = [];
  const ran = await run(['aws', 'preflight', '--config', 'c.yaml', '-o', 'json', ...flags], {
    files: { 'c.yaml': JSON.stringify({ version: 1, clusters }) },
    world: {
      async connectAccount(where) {
        asked.push(where);
        return viewOf({ ...ready, ...change });
      },
    },
  });
  const report = JSON.parse(ran.out || '{}') as { ready: boolean; places: { checks: Check[]; clusters: string[] }[] };
  return { ...ran, report, asked, checks: (report.places ?? []).flatMap(({ checks }) => checks) };
}

const rows = (checks: readonly Check[], id: Check['id']): readonly Check[] => checks.filter((each) => each.id === id);
const results = (checks: readonly Check[]): readonly string[] => checks.map(({ id, result }) => `${id} ${result}`);

test('an account that has everything', async () => {
  const { code, checks, report, asked } = await preflight();
  expect(results(checks)).toEqual([
    'identity pass',
    'region pass',
    'bootstrap pass',
    'concurrency pass',
    'kms pass',
    'principal pass',
    'stack pass',
    'stack pass',
  ]);
  expect([code, report.ready, asked]).toEqual([0, true, [region]]);
  expect(checks.every(({ mend }) => mend === undefined)).toBe(true);
});

const tagged = (cluster: string) => new Map([['countersign:cluster', cluster]]);
const without = (name: string) =>
  Object.fromEntries(Object.entries(ready.parameters).filter(([key]) => !key.endsWith(name)));

/** Each row: what differs, and what exactly one check says then. */
test.each<[string, Check['id'], Partial<Account>, RegExp, RegExp]>([
  [
    'another account',
    'identity',
    { arn: 'arn:aws:iam::111122223333:user/ada' },
    /111122223333/,
    /log in to account 9999/,
  ],
  [
    'another partition',
    'identity',
    { arn: `arn:aws-cn:iam::${account}:user/ada` },
    /aws-cn/,
    /partition aws, .*aws-cn/,
  ],
  [
    'a region without a service',
    'region',
    { parameters: without('apigatewayv2') },
    /no API Gateway v2 there/,
    /name another region/,
  ],
  [
    'no such region',
    'region',
    { parameters: { '/cdk-bootstrap/hnb659fds/version': '30' } },
    /no such region/,
    /name another region/,
  ],
  [
    'no bootstrap',
    'bootstrap',
    { parameters: without('version') },
    /no parameter \/cdk-bootstrap/,
    /npm run cdk -- bootstrap aws:\/\/999900001111\/eu-central-1/,
  ],
  [
    'an old bootstrap',
    'bootstrap',
    { parameters: { ...ready.parameters, '/cdk-bootstrap/hnb659fds/version': '5' } },
    /version 5/,
    /npm run cdk -- bootstrap/,
  ],
  [
    'a bootstrap version that is no number',
    'bootstrap',
    { parameters: { ...ready.parameters, '/cdk-bootstrap/hnb659fds/version': 'x' } },
    /version x/,
    /bootstrap/,
  ],
  [
    'a new account',
    'concurrency',
    { concurrency: { limit: 10, unreserved: 10 } },
    /10 of 10 .*130 too few/,
    /L-B99A9384 --desired-value 140 --region eu-central-1/,
  ],
  [
    'one execution too few',
    'concurrency',
    { concurrency: { limit: 1000, unreserved: 139 } },
    /1 too few/,
    /--desired-value 1001/,
  ],
  [
    'fewer signatures than front doors',
    'kms',
    { quotas: { 'L-DC14942D': { name: 'Cryptographic operations (ECC) request rate', value: 199 } } },
    /199/,
    /L-DC14942D --desired-value 200/,
  ],
  [
    'a role that is missing',
    'principal',
    { principals: {} },
    /no role prod-relay \(access.iam.principals\)/,
    /create-role --role-name prod-relay/,
  ],
  [
    'a role with another path',
    'principal',
    { principals: { 'prod-relay': `arn:aws:iam::${account}:role/prod-relay` } },
    /role\/prod-relay$/,
    /with its path/,
  ],
  [
    'a stack of another team',
    'stack',
    { stacks: { 'countersign-prod': { status: 'CREATE_COMPLETE', tags: new Map() } } },
    /without the tag/,
    /another name/,
  ],
  [
    'a stack of another cluster',
    'stack',
    { stacks: { 'countersign-prod-state': { status: 'CREATE_COMPLETE', tags: tagged('test') } } },
    /of cluster test/,
    /another name/,
  ],
  [
    'a stack that failed',
    'stack',
    { stacks: { 'countersign-prod': { status: 'ROLLBACK_COMPLETE', tags: tagged('prod') } } },
    /ROLLBACK_COMPLETE/,
    /delete-stack --stack-name countersign-prod --region/,
  ],
  [
    'a rollback that failed',
    'stack',
    { stacks: { 'countersign-prod': { status: 'UPDATE_ROLLBACK_FAILED', tags: tagged('prod') } } },
    /FAILED/,
    /continue-update-rollback/,
  ],
  [
    'a deployment that runs',
    'stack',
    { stacks: { 'countersign-prod': { status: 'UPDATE_IN_PROGRESS', tags: tagged('prod') } } },
    /IN_PROGRESS/,
    /wait until it ends/,
  ],
])('%s', async (_, id, change, seen, mend) => {
  const { code, checks } = await preflight(change);
  const failed = checks.filter(({ result }) => result !== 'pass');
  expect(results(failed)).toEqual([`${id} fail`]);
  expect(failed[0]?.seen).toMatch(seen);
  expect(failed[0]?.mend).toMatch(mend);
  expect(code).toBe(1);
});

test('with the login of another account nothing else is asked', async () => {
  const { checks } = await preflight({ arn: 'arn:aws:iam::111122223333:user/ada' });
  expect(results(checks)).toEqual(['identity fail']);
});

test('this cluster’s own stacks, and what it reserved, do not stand in its way', async () => {
  const { code, checks } = await preflight({
    stacks: {
      'countersign-prod': { status: 'UPDATE_COMPLETE', tags: tagged('prod') },
      'countersign-prod-state': { status: 'UPDATE_ROLLBACK_COMPLETE', tags: tagged('prod') },
    },
    concurrency: { limit: 140, unreserved: 100 },
    reserved: { 'countersign-prod-sign': 40 },
  });
  expect(code).toBe(0);
  expect(rows(checks, 'concurrency')[0]?.seen).toMatch(/40 are reserved by these clusters already/);
});

test('all clusters of a place share its quotas; each place has its own login', async () => {
  const jwt = { issuer: 'https://i.example.com', audience: 'a', subjects: ['system:serviceaccount:a:b'] };
  const clusters = {
    prod: prod(),
    both: prod({
      access: { iam: { principals: [relay] }, jwt },
      cas: {
        ca: { subject: { commonName: 'both' } },
        rsa: { subject: { commonName: 'rsa' }, keySpec: 'RSA-3072' },
      },
    }),
    url: prod({ frontDoor: 'functionUrl' }),
    away: prod({ aws: { account, region: 'eu-west-1' } }),
  };
  const { report, asked } = await preflight({}, clusters);
  expect(asked).toEqual([region, 'eu-west-1']);
  expect(report.places.map(({ clusters: names }) => names)).toEqual([['prod', 'both', 'url'], ['away']]);
  const here = report.places[0]?.checks ?? [];
  // prod 40, both 80 with its authorizer, url 40.
  expect(rows(here, 'concurrency')[0]?.check).toContain('160 executions');
  expect(rows(here, 'kms').map(({ check }) => check)).toEqual([
    expect.stringContaining('600 times a second with ECC keys') as unknown,
    expect.stringContaining('400 times a second with RSA keys') as unknown,
  ]);
  expect(rows(here, 'stack')).toHaveLength(6);
  const { report: one } = await preflight({}, clusters, '--cluster', 'url');
  expect(one.places.map(({ clusters: names }) => names)).toEqual([['url']]);
});

test('a Function URL in a region without them, by AWS’s page, is in doubt, also if only the login has the region', async () => {
  const at = async (frontDoor: string) =>
    rows((await preflight({ region: 'eu-central-2' }, { prod: prod({ frontDoor, aws: {} }) })).checks, 'region');
  expect(await at('functionUrl')).toMatchObject([
    {},
    { check: 'eu-central-2 has Function URLs', result: 'unknown', mend: expect.stringContaining('httpApi') as unknown },
  ]);
  expect(await at('httpApi')).toHaveLength(1);
});

test('without account and region in the file, the login decides', async () => {
  const { report, asked, checks } = await preflight({}, { prod: prod({ aws: {} }) });
  expect(asked).toEqual([undefined]);
  expect(report.places).toMatchObject([{ account, region }]);
  expect(rows(checks, 'identity')).toMatchObject([{ result: 'pass' }]);
});

test('principals of another account, the account itself, users, and CloudFormation’s role', async () => {
  const elsewhere = 'arn:aws:iam::444455556666:role/x/relay';
  const [own, china] = [`arn:aws:iam::${account}:root`, 'arn:aws-cn:iam::444455556666:root'];
  const clusters = (administrators: readonly string[]) => ({
    prod: prod({
      access: { iam: { principals: [elsewhere, 'arn:aws:iam::444455556666:root', own, china] } },
      keys: { administrators, deleters: [`arn:aws:iam::${account}:user/gone`] },
    }),
  });
  const { checks, code } = await preflight({}, clusters([admin, formation]));
  const principals = rows(checks, 'principal');
  expect(principals.map(({ check, result }) => `${check} ${result}`)).toEqual([
    `${elsewhere} exists unknown`,
    'arn:aws:iam::444455556666:root exists unknown',
    `${own} exists pass`,
    `${china} exists fail`,
    `${admin} exists pass`,
    `${formation} exists pass`,
    `arn:aws:iam::${account}:user/gone exists fail`,
    'CloudFormation’s role is one of keys.administrators pass',
  ]);
  expect(principals[0]?.mend).toBe('with a login of account 444455556666: aws iam get-role --role-name relay');
  expect(principals[6]?.mend).toContain('aws iam create-user --user-name gone');
  expect(code).toBe(1);
  const { checks: others } = await preflight({}, clusters([admin]));
  expect(rows(others, 'principal').at(-1)).toMatchObject({
    result: 'unknown',
    seen: expect.stringContaining(formation) as unknown,
  });
});

test.each(Object.keys(permissions).filter((each) => each !== 'servicequotas:GetAWSDefaultServiceQuota'))(
  'without %s its checks are unknown, which is no failure',
  async (denied) => {
    const clusters = { prod: prod({ keys: { deleters: [admin] } }) };
    // Only where it decides: the account has room for a second deployment, but not for a first.
    const tight = denied === 'lambda:GetFunctionConcurrency' ? { concurrency: { limit: 140, unreserved: 100 } } : {};
    const { code, checks } = await preflight({ denied: [denied], ...tight }, clusters);
    const unknown = checks.filter(({ result }) => result !== 'pass');
    expect(unknown.length).toBeGreaterThan(0);
    expect(unknown.every(({ result, permission }) => result === 'unknown' && permission === denied)).toBe(true);
    expect(unknown.every(({ mend }) => mend?.includes(`allow ${denied}`))).toBe(true);
    expect(code).toBe(0);
  },
);

test('a partition of which AWS publishes no list', async () => {
  const govcloud = 'us-gov-west-1';
  const own = 'arn:aws-us-gov:iam::999900001111:role/relay';
  const clusters = { prod: prod({ access: { iam: { principals: [own] } }, aws: { account, region: govcloud } }) };
  const arn = `arn:aws-us-gov:iam::${account}:user/ada`;
  const { code, checks } = await preflight({ arn, region: govcloud, principals: { relay: own } }, clusters);
  expect(checks.filter(({ result }) => result !== 'pass').map(({ id, result }) => [id, result])).toEqual([
    ['region', 'unknown'],
  ]);
  expect(code).toBe(0);
});

test('as people read it', async () => {
  const ran = await run(['aws', 'preflight', '--config', 'c.yaml'], {
    files: { 'c.yaml': JSON.stringify({ version: 1, clusters: { prod: prod() } }) },
    world: {
      connectAccount: async () => viewOf({ ...ready, parameters: without('version'), denied: ['iam:GetRole'] }),
    },
  });
  const lines = ran.out.split('\n');
  expect(lines[0]).toBe(`account ${account}, region ${region}: cluster prod`);
  expect(lines).toContain(`   → npm run cdk -- bootstrap aws://${account}/${region}`);
  expect(
    lines
      .filter((line) => /^[✓✗!] /.test(line))
      .map((line) => line[0])
      .join(''),
  ).toBe('✓✓✗✓✓!✓✓');
  expect(lines.at(-2)).toBe('No: 1 of 8 checks failed; 1 could not be checked');
  expect(ran.code).toBe(1);
});

test('no file, a file that cannot be deployed, another cluster', async () => {
  expect(await run(['aws', 'preflight'])).toMatchObject({
    code: 2,
    err: expect.stringContaining('--config') as unknown,
  });
  const unreachable = await preflight({}, { prod: prod({ access: {} }) });
  expect(unreachable).toMatchObject({ code: 3, err: expect.stringContaining('is required to deploy') as unknown });
  expect(await preflight({}, { prod: prod() }, '--cluster', 'test')).toMatchObject({ code: 4, asked: [] });
});

test('--help names every permission', async () => {
  const { out } = await run(['aws', 'preflight', '--help']);
  for (const permission of Object.keys(permissions)) expect(out).toContain(permission);
});
