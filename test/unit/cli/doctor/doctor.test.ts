/** `countersign doctor`: what it says of a set-up, row by row. test/suites/control-plane/status runs it against a real API server. */
import { expect, test } from 'vitest';
import { oldestNode as ofThePackage } from '../../../../deploy/cli/build.ts';
import { clockRow } from '../../../../cli/doctor/clock.ts';
import { nodeRow, oldestNode } from '../../../../cli/doctor/here.ts';
import { CommandFailure, exitCodes } from '../../../../cli/runtime/exit.ts';
import type { AccountView } from '../../../../cli/runtime/account-view.ts';
import { startAnsweringServer } from '../../../harness/kubernetes/answering-server.ts';
import type { Answers } from '../../../harness/kubernetes/answering-server.ts';
import { now, run } from '../run.ts';
import { account, healthyWorld, inCluster, region, deployments, yaml } from '../status/world.ts';
import { apiServer, viewOf } from './world.ts';

interface Row {
  readonly id: string;
  readonly check: string;
  readonly result: string;
  readonly seen: string;
  readonly mend?: string;
}

type World = Partial<NonNullable<Parameters<typeof run>[1]>['world']>;

async function examine(
  {
    world = {},
    answers = {},
    files = { 'countersign.yaml': yaml },
    aws = {},
  }: {
    readonly world?: World;
    readonly answers?: Answers;
    readonly files?: Readonly<Record<string, string>>;
    readonly aws?: Partial<AccountView>;
  } = {},
  ...argv: readonly string[]
) {
  const { kubeconfig } = await startAnsweringServer({ ...inCluster, ...apiServer, ...answers });
  const all = { ...healthyWorld(), connectAccount: async () => viewOf(aws), ...world };
  const ran = await run(['doctor', '-o', 'json', '--kubeconfig', kubeconfig, ...argv], { files, world: all });
  expect(ran.err).toBe('');
  const { canWork, checks } = JSON.parse(ran.out) as { readonly canWork: string; readonly checks: readonly Row[] };
  return { code: ran.code, canWork, checks, of: (id: string) => checks.filter((row) => row.id === id) };
}

test('everything holds', async () => {
  const { code, canWork, checks } = await examine();
  expect(checks.map(({ id, result }) => `${id} ${result}`)).toEqual([
    'node pass',
    'config pass',
    'identity pass',
    'clock pass',
    'stack pass',
    'stack pass',
    'cluster pass',
    'login pass',
    'clock pass',
    'relay pass',
    'approver none',
    'bypass none',
    'endpoint pass',
  ]);
  expect([code, canWork]).toEqual([0, 'yes']);
});

test.each([
  ['22.18.0', 'fail'],
  ['20.19.5', 'fail'],
  ['22.19.0', 'pass'],
  ['24.0.0', 'pass'],
])('Node.js %s: %s', (version, result) => {
  expect(nodeRow(version)).toMatchObject({ result, seen: version });
  expect(oldestNode).toBe(ofThePackage);
});

test.each([
  ['the same second', 0, 'pass', 'the same'],
  ['less than a second', 900, 'pass', 'the same'],
  ['20 seconds ahead', 20_999, 'pass', '20 s ahead'],
  ['a minute ahead', 60_999, 'fail', '60 s ahead'],
  ['a minute behind', -60_000, 'fail', '60 s behind'],
])('a clock %s', (_, ahead, result, seen) => {
  expect(clockRow('AWS', now - ahead, now, now)).toMatchObject({ result, seen });
});

const attested = yaml.replace('{ maxTtl: 30d }', '{ maxTtl: 30d, attestation: { providers: [aws] } }').replace(
  '    access:',
  `    approval: { kubernetes.io/kubelet-serving: approve }
    attestation:
      aws: { accounts: { '${account}': {} }, regions: [${region}], tags: { a: b }, nodeName: [privateDnsName] }
    access:`,
);
const node = yaml.replace('kubelet-serving', 'kube-apiserver-client-kubelet');
const no =
  (message: string, code: 3 | 5 = 3) =>
  () =>
    Promise.reject(new CommandFailure(code, message, 'do something'));
const bindings = 'GET /apis/rbac.authorization.k8s.io/v1/clusterrolebindings';
const reviews = 'POST /apis/authorization.k8s.io/v1/subjectaccessreviews';
const nodeclient = {
  metadata: { name: 'kubeadm:node-autoapprove-bootstrap', uid: 'u', resourceVersion: '7' },
  roleRef: {
    apiGroup: 'rbac.authorization.k8s.io',
    kind: 'ClusterRole',
    name: 'system:certificates.k8s.io:certificatesigningrequests:nodeclient',
  },
  subjects: [{ kind: 'Group', name: 'system:bootstrappers' }],
};

type Fault = NonNullable<Parameters<typeof examine>[0]>;
test.each<[string, Fault, string, string, string]>([
  [
    'a wrong file',
    { files: { 'countersign.yaml': yaml.replace('maxTtl', 'maxTTL') } },
    'config',
    '1 problem, the first: countersign.yaml:5:',
    'countersign config validate countersign.yaml',
  ],
  [
    'no login to AWS',
    {
      aws: {
        callerArn: () =>
          Promise.reject(Object.assign(new Error('no credentials'), { name: 'CredentialsProviderError' })),
      },
    },
    'identity',
    'no credentials',
    'log in to AWS',
  ],
  [
    'a login of another account',
    { aws: { callerArn: async () => 'arn:aws:sts::111122223333:assumed-role/x/ada' } },
    'identity',
    '111122223333',
    `log in to account ${account}`,
  ],
  ['a clock that is wrong', { aws: { answeredAt: () => now - 120_000 } }, 'clock', '119 s ahead', 'timedatectl'],
  [
    'a stack of another cluster',
    { aws: { stack: async () => ({ status: 'CREATE_COMPLETE', tags: new Map([['countersign:cluster', 'other']]) }) } },
    'stack',
    'it is of cluster other',
    'another name',
  ],
  [
    'a relay that may not approve',
    { files: { 'countersign.yaml': attested }, answers: { [reviews]: [201, { status: { allowed: false } }] } },
    'relay',
    'it may NOT',
    'countersign relay values',
  ],
  [
    'a signer without its approver',
    { files: { 'countersign.yaml': attested }, answers: { [deployments]: [200, { items: [], metadata: {} }] } },
    'approver',
    'no relay is known that can',
    'docs/deploy.md',
  ],
  [
    'a signer that nobody approves for',
    {
      files: { 'countersign.yaml': node },
      answers: {
        'GET /api/v1/namespaces/kube-system/pods': [
          200,
          {
            items: [
              {
                metadata: { name: 'kube-controller-manager-a', labels: { component: 'kube-controller-manager' } },
                spec: {
                  containers: [{ name: 'c', command: ['kube-controller-manager', '--controllers=*,-csrapproving'] }],
                },
              },
            ],
          },
        ],
      },
    },
    'approver',
    'csrapproving of kube-controller-manager is off',
    'approval: approve',
  ],
  [
    'a way around attestation',
    { files: { 'countersign.yaml': attested }, answers: { [bindings]: [200, { items: [nodeclient] }] } },
    'bypass',
    'kubeadm:node-autoapprove-bootstrap',
    'countersign cluster harden',
  ],
  [
    'an endpoint out of reach',
    { world: { readHealth: no('no answer: ENOTFOUND', exitCodes.temporary) } },
    'endpoint',
    'ENOTFOUND',
    'docs/private-clusters.md',
  ],
])('%s must be mended', async (_, fault, id, seen, mend) => {
  const { code, canWork, of } = await examine(fault);
  const failed = of(id).find(({ result }) => result === 'fail');
  expect(failed?.seen).toContain(seen);
  expect(failed?.mend).toContain(mend);
  expect([code, canWork]).toEqual([1, 'no']);
});

test('what is not there yet is no fault, and says what comes next', async () => {
  const { code, of } = await examine({
    files: {},
    answers: { [deployments]: [200, { items: [], metadata: {} }] },
  });
  expect(code).toBe(0);
  expect(of('config')[0]).toMatchObject({ result: 'none', seen: 'no ./countersign.yaml' });
  expect(of('relay')[0]).toMatchObject({ result: 'none' });
  expect(of('endpoint')[0]).toMatchObject({
    result: 'none',
    seen: expect.stringContaining('no cluster is named') as unknown,
  });
  const free = await examine({ aws: { stack: async () => undefined } });
  expect(free.of('stack')).toMatchObject([{ result: 'none', seen: 'not deployed yet' }, { result: 'none' }]);
});

test('what could not be checked is exit code 5', async () => {
  const denied = () => Promise.reject(Object.assign(new Error('no'), { name: 'AccessDeniedException' }));
  const stack = await examine({ aws: { stack: denied } });
  expect([stack.code, stack.of('stack')[0]?.mend]).toEqual([
    5,
    'allow cloudformation:DescribeStacks to the login, or check it by hand',
  ]);
  const old = await examine({ answers: { 'GET /version': [200, { major: '1', minor: '29', gitVersion: 'v1.29.4' }] } });
  expect([old.code, old.of('cluster')[0]?.result]).toEqual([5, 'unknown']);
});

test('with a kubeconfig only, with AWS only, and with neither', async () => {
  const throwing = () => Promise.reject(new Error('it was asked'));
  const cluster = await examine(
    { world: { connectAccount: throwing, stackOutputs: throwing, readHealth: throwing } },
    '--skip-aws',
  );
  expect(cluster.code).toBe(0);
  expect(cluster.of('endpoint')[0]?.seen).toBe('not looked at (--skip-aws, and no --url)');
  const files = { 'countersign.yaml': yaml };
  const world = { ...healthyWorld(), connectAccount: async () => viewOf() };
  expect((await run(['doctor', '--skip-kubernetes'], { files, world })).code).toBe(0);
  const none = await run(['doctor', '--kubeconfig', '/nowhere/kubeconfig'], { files, world });
  expect(none.code).toBe(1);
  expect(none.out).toContain('→ without a cluster: --skip-kubernetes');
});
