/** `countersign status`: what it makes of a cluster part by part. test/suites run it against the real API server and a deployed stack. */
import { expect, onTestFinished, test } from 'vitest';
import { openSignService } from '../../../../dev/serve/sign-service.ts';
import { serveHttp } from '../../../../dev/csr-api/node-http.ts';
import { tooLarge } from '../../../../adapters/lambda/answers.ts';
import { CommandFailure, exitCodes } from '../../../../cli/runtime/exit.ts';
import type { HealthCall, LogSearch } from '../../../../cli/runtime/io.ts';
import { startAnsweringServer } from '../../../harness/kubernetes/answering-server.ts';
import type { Answers } from '../../../harness/kubernetes/answering-server.ts';
import { now, run } from '../run.ts';
import {
  caAnswer,
  clusterOf,
  deployments,
  events,
  healthy,
  healthyWorld,
  inCluster,
  lease,
  relay,
  staleLease,
  table,
  traceOf,
  yaml,
} from './world.ts';

interface Row {
  readonly id: string;
  readonly check: string;
  readonly result: string;
  readonly seen: string;
  readonly mend?: string;
}

type World = Partial<NonNullable<Parameters<typeof run>[1]>['world']>;
const files = { 'countersign.yaml': yaml };
const denied = (permission: string) =>
  new CommandFailure(exitCodes.configuration, 'AWS refuses: AccessDenied', `it needs ${permission}`);

async function look(world: World = {}, answers: Answers = {}, ...argv: readonly string[]) {
  const { kubeconfig } = await startAnsweringServer({ ...inCluster, ...answers });
  const ran = await run(['status', '-o', 'json', '--kubeconfig', kubeconfig, ...argv], {
    files,
    world: { ...healthyWorld(), ...world },
  });
  expect(ran.err).toBe('');
  const { state, checks } = JSON.parse(ran.out) as { readonly state: string; readonly checks: readonly Row[] };
  const of = (id: string, results: readonly string[] = ['fail', 'unknown', 'none']): readonly Row[] =>
    checks.filter((row) => row.id === id && results.includes(row.result));
  return { code: ran.code, state, checks, of };
}

test('everything is well', async () => {
  const calls: HealthCall[] = [];
  const searches: LogSearch[] = [];
  const { code, state, checks } = await look({ ...healthyWorld(calls), openTrace: async () => traceOf([], searches) });
  expect([code, state]).toEqual([0, 'healthy']);
  expect(checks.map(({ id, result }) => `${id} ${result}`)).toEqual([
    'relay pass',
    'errors pass',
    'endpoint pass',
    'rules pass',
    'ca pass',
    'table pass',
    'table pass',
    // The cluster has no attest function.
    'errors none',
    'errors pass',
  ]);
  expect(calls).toEqual([
    {
      url: 'https://abcde12345.execute-api.eu-central-1.amazonaws.com/v1/clusters/prod',
      region: 'eu-central-1',
      login: { kind: 'role', arn: 'arn:aws:iam::999900001111:role/countersign-prod-caller' },
    },
  ]);
  expect(searches.map(({ of, from, to }) => [of, (to - from) / 3_600_000])).toEqual([
    ['attest', 24],
    ['sign', 24],
  ]);
});

const answer = (change: object) => async () => ({
  ...healthy,
  body: JSON.stringify({ ...(JSON.parse(healthy.body) as object), ...change }),
});
const fault = (ago: number) => ({
  of: 'sign' as const,
  at: now - ago,
  text: '{"trouble":"internal","alarm":"faults","error":{"name":"Error","message":"no key"}}',
});

test.each<[string, World, Answers, string, string]>([
  ['no relay', {}, { [deployments]: [200, { items: [], metadata: {} }] }, 'relay', 'no Deployment in'],
  [
    'a relay that is not ready',
    {},
    { [deployments]: [200, { items: [{ ...relay, status: {} }], metadata: {} }] },
    'relay',
    '0 of 2 ready',
  ],
  ['a relay of which no replica leads', {}, { [lease]: [404, {}] }, 'relay', 'no replica holds its Lease'],
  ['a relay that stopped', {}, { [lease]: [200, staleLease] }, 'relay', 'renewed 3 h ago'],
  [
    'a request that waits',
    {},
    {
      [events]: [
        200,
        {
          metadata: {},
          items: [
            {
              reportingComponent: 'countersign.dev/watch-relay',
              eventTime: new Date(now - 60_000).toISOString(),
              message: 'the signing endpoint is busy',
              involvedObject: { name: 'csr-1' },
            },
          ],
        },
      ],
    },
    'errors',
    'csr-1: the signing endpoint is busy',
  ],
  [
    'an endpoint that is out of reach',
    { readHealth: () => Promise.reject(new CommandFailure(exitCodes.temporary, 'no answer: ENOTFOUND')) },
    {},
    'endpoint',
    'ENOTFOUND',
  ],
  [
    'an endpoint that fails',
    { readHealth: async () => ({ ...healthy, status: 503, outcome: 'busy' }) },
    {},
    'endpoint',
    'HTTP 503 (busy)',
  ],
  ['the endpoint of another cluster', { readHealth: answer({ cluster: 'other' }) }, {}, 'endpoint', 'HTTP 200'],
  [
    'other rules',
    { readHealth: answer({ rulesSha256: 'f'.repeat(64) }) },
    {},
    'rules',
    'in force ffffffffffffffff, countersign.yaml ',
  ],
  ['a CA that ends soon', { callFunction: () => caAnswer(20) }, {}, 'ca', 'CN=prod CA, 20 days left'],
  [
    'a CA that is not in force',
    {
      callFunction: async () => ({
        cluster: 'prod',
        cas: [{ ok: false, name: 'ca', why: 'Missing', message: 'there is no CA ca' }],
      }),
    },
    {},
    'ca',
    'there is no CA ca',
  ],
  [
    'a table that is gone',
    { lookAtTable: async () => ({ exists: false }) },
    {},
    'table',
    'there is no table prod-certificates',
  ],
  [
    'a table that cannot be restored',
    {
      lookAtTable: async () => ({
        ...table,
        exists: true,
        status: 'ACTIVE',
        deletionProtection: false,
        pointInTimeRecovery: false,
      }),
    },
    {},
    'table',
    'point-in-time recovery is off, deletion protection is off',
  ],
  [
    'a recent fault',
    { openTrace: async () => traceOf([fault(60_000)]) },
    {},
    'errors',
    'the last one 60 s ago: internal: Error: no key',
  ],
])('%s is trouble', async (_, world, answers, id, seen) => {
  const { code, state, of } = await look(world, answers);
  expect([code, state]).toEqual([1, 'trouble']);
  const [row] = of(id, ['fail']);
  expect(row?.seen).toContain(seen);
  expect(row?.mend).toMatch(/./);
});

const forbidden = [403, { kind: 'Status', message: 'forbidden' }] as const;

test.each<[string, World, Answers, string, string]>([
  ['Deployments', {}, { [deployments]: forbidden }, 'relay', 'it needs list on deployments (apps)'],
  [
    'Leases',
    {},
    { [lease]: forbidden },
    'relay',
    'it needs get on leases (coordination.k8s.io) in namespace countersign-system',
  ],
  ['Events', {}, { [events]: forbidden }, 'errors', 'it needs list on events'],
  [
    'the stack',
    { stackOutputs: () => Promise.reject(denied('cloudformation:DescribeStacks')) },
    {},
    'endpoint',
    'cloudformation:DescribeStacks',
  ],
  [
    'the endpoint',
    { readHealth: async () => ({ ...healthy, status: 403, body: '', outcome: '' }) },
    {},
    'endpoint',
    'execute-api:Invoke',
  ],
  [
    'a table',
    { lookAtTable: () => Promise.reject(denied('dynamodb:DescribeTable')) },
    {},
    'table',
    'dynamodb:DescribeTable',
  ],
  [
    'its backups',
    {
      lookAtTable: async () => ({
        exists: true,
        status: 'ACTIVE',
        deletionProtection: true,
        pointInTimeRecovery: denied('dynamodb:DescribeContinuousBackups'),
      }),
    },
    {},
    'table',
    'dynamodb:DescribeContinuousBackups',
  ],
  [
    'a log',
    { openTrace: async () => ({ ...traceOf([]), searchLog: () => Promise.reject(denied('logs:FilterLogEvents')) }) },
    {},
    'errors',
    'logs:FilterLogEvents',
  ],
])(
  'without the right to %s the other parts are shown, and exit code 5 says that not all was seen',
  async (_, world, answers, id, right) => {
    const { code, state, of, checks } = await look(world, answers);
    expect([code, state]).toEqual([5, 'notAllSeen']);
    expect(of(id, ['unknown']).map(({ mend }) => mend)).toContainEqual(expect.stringContaining(right));
    expect(checks.filter(({ result }) => result === 'pass').length).toBeGreaterThan(2);
  },
);

test('a login that may not assume the caller role asks as itself', async () => {
  const kinds: string[] = [];
  const { code } = await look({
    readHealth: async ({ login }) => {
      kinds.push(login.kind);
      if (login.kind === 'role')
        throw new CommandFailure(exitCodes.configuration, 'the caller role cannot be assumed: AccessDenied');
      return healthy;
    },
  });
  expect([code, kinds]).toEqual([0, ['role', 'own']]);
});

test('a CA that the ca function does not show is shown as the endpoint knows it', async () => {
  const { code, checks } = await look({ callFunction: () => Promise.reject(denied('lambda:InvokeFunction')) });
  expect(code).toBe(0);
  expect(checks.find(({ id }) => id === 'ca')?.seen).toMatch(/^400 days left, until 2027-07-06, as the endpoint says/);
});

test('an old fault, a request that waited long ago, a relay of another cluster are no trouble', async () => {
  const other = { ...relay, metadata: { ...relay.metadata, name: 'countersign-watch-relay' } };
  const containers = [{ name: 'watch-relay', args: ['--cluster=test'] }];
  const ofAnother = { ...other, spec: { ...other.spec, template: { spec: { containers } } } };
  const { code, checks } = await look(
    { openTrace: async () => traceOf([fault(3 * 3_600_000)]) },
    { [deployments]: [200, { items: [relay, ofAnother], metadata: {} }] },
  );
  expect(code).toBe(0);
  expect(checks.find(({ seen }) => seen.includes('of cluster test'))?.result).toBe('none');
  expect(checks.find(({ seen }) => seen.includes('the last one 3 h ago'))?.result).toBe('pass');
});

test('other versions may have other fingerprints of the same rules', async () => {
  const { code, of } = await look({ readHealth: answer({ version: '0.0.1', rulesSha256: 'f'.repeat(64) }) });
  expect(code).toBe(5);
  expect(of('rules')[0]?.seen).toContain('of different versions');
});

test('with a kubeconfig only, and with AWS only', async () => {
  const throwing = () => Promise.reject(new Error('AWS was asked'));
  const withoutAws: World = {
    stackOutputs: throwing,
    readHealth: throwing,
    lookAtTable: throwing,
    callFunction: throwing,
    openTrace: throwing,
  };
  const cluster = await look(withoutAws, {}, '--skip-aws');
  expect([cluster.code, cluster.checks.map(({ id, result }) => `${id} ${result}`)]).toEqual([
    0,
    ['relay pass', 'errors pass', 'stack none'],
  ]);

  const aws = await run(['status', '--skip-kubernetes', '-o', 'json'], { files, world: healthyWorld() });
  expect(aws.code).toBe(0);
  expect((JSON.parse(aws.out) as { checks: readonly Row[] }).checks[0]).toMatchObject({
    id: 'cluster',
    result: 'none',
  });

  // Without a kubeconfig the command says so, and shows AWS.
  const none = await run(['status', '--kubeconfig', '/nowhere/kubeconfig'], { files, world: healthyWorld() });
  expect(none.code).toBe(5);
  expect(none.out).toContain('there is no kubeconfig /nowhere/kubeconfig');
  expect(none.out).toContain('✓  the endpoint answers');
});

test('of the dev server: the endpoint, its rules and its CA, without AWS', async () => {
  const service = await openSignService({ clusters: [clusterOf(yaml)], log: () => undefined });
  const http = await serveHttp(service.handler, {
    port: 0,
    maxBodyBytes: 1_000_000,
    tooLarge: tooLarge(),
    onError: () => undefined,
  });
  onTestFinished(async () => {
    await http.close();
    service.close();
  });
  const argv = ['status', '--url', http.url, '--skip-aws', '--skip-kubernetes'] as const;
  const ran = await run(argv, { files });
  expect([ran.code, ran.err]).toEqual([0, '']);
  expect(ran.out).toMatch(/✓ {2}the endpoint answers +http:\/\/127\.0\.0\.1:\d+\/v1\/clusters\/prod, version /);
  expect(ran.out).toMatch(/✓ {2}the endpoint applies the rules of the file +rules [0-9a-f]{16}, countersign\.yaml\n/);
  expect(ran.out).toMatch(/✓ {2}CA ca is in force +\d+ days left/);
  const changed = { 'countersign.yaml': yaml.replace('30d', '29d') };
  const other = await run(argv, { files: changed });
  expect(other.code).toBe(1);
  expect(other.out).toMatch(/✗ {2}the endpoint applies the rules of the file/);
});
