/** `countersign cluster harden` against an API server with the answers of each test. */
import { createServer } from 'node:http';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { run } from '../run.ts';

type Answer = readonly [status: number, body: object];

const nodeclient = 'system:certificates.k8s.io:certificatesigningrequests:nodeclient';
const binding = (name: string, role = nodeclient) => ({
  metadata: { name, uid: `uid-${name}`, resourceVersion: '7' },
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
  subjects: [{ kind: 'Group', name: 'system:bootstrappers' }],
});
const relay = {
  metadata: { name: 'relay', namespace: 'cs', generation: 1 },
  spec: { selector: {}, template: { spec: { serviceAccountName: 'relay', containers: [] } } },
  status: { observedGeneration: 1, readyReplicas: 1, conditions: [{ type: 'Available', status: 'True' }] },
};
const controllerManager = {
  metadata: { name: 'kube-controller-manager-a', labels: { component: 'kube-controller-manager' } },
  spec: { containers: [{ name: 'c', command: ['kube-controller-manager', '--controllers=*,-csrsigning'] }] },
};
const rbac = 'GET /apis/rbac.authorization.k8s.io/v1/clusterrolebindings';
const deployments = 'GET /apis/apps/v1/deployments';
const pods = 'GET /api/v1/namespaces/kube-system/pods';
const reviews = 'POST /apis/authorization.k8s.io/v1/subjectaccessreviews';

/** Runs the command; a call without an answer is 404, the lists are empty and reviews do not allow. */
async function harden(argv: readonly string[], given: Readonly<Record<string, readonly Answer[]>>) {
  const calls: { readonly call: string; readonly body: unknown }[] = [];
  const left = new Map(Object.entries(given).map(([call, answers]) => [call, [...answers]]));
  const empty: readonly Answer[] = [[200, { items: [] }]];
  const usual: Readonly<Record<string, readonly Answer[]>> = {
    [rbac]: empty,
    [deployments]: empty,
    [pods]: [[200, { items: [controllerManager] }]],
    [reviews]: [[201, { status: { allowed: false } }]],
  };
  const server = createServer((request, response) => {
    let text = '';
    request.on('data', (chunk: Buffer) => (text += chunk.toString()));
    request.on('end', () => {
      const call = `${request.method} ${request.url?.split('?')[0]}`;
      calls.push({ call: `${request.method} ${request.url}`, body: text === '' ? undefined : JSON.parse(text) });
      const answers = left.get(call) ?? usual[call] ?? [[404, {}]];
      // The last answer stays.
      const [status, body] = (answers.length > 1 ? (answers as Answer[]).shift() : answers[0]) ?? [404, {}];
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const folder = mkdtempSync(join(tmpdir(), 'harden-'));
  onTestFinished(() => {
    server.close();
    rmSync(folder, { recursive: true });
  });
  const path = join(folder, 'kubeconfig');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const kubeconfig = {
    clusters: [{ name: 'c', cluster: { server: url } }],
    users: [{ name: 'admin', user: { token: 't' } }],
    contexts: [{ name: 'here', context: { cluster: 'c', user: 'admin' } }],
    'current-context': 'here',
  };
  writeFileSync(path, JSON.stringify(kubeconfig));
  return { ...(await run(['cluster', 'harden', '--kubeconfig', path, ...argv])), calls };
}
const deleted = (calls: readonly { readonly call: string }[]) => calls.filter(({ call }) => call.startsWith('DELETE'));

test('--check passes where nothing is open, and names server, context and user first', async () => {
  const { code, out, err, calls } = await harden(['--check'], {});
  expect([code, deleted(calls)]).toEqual([0, []]);
  expect(err).toMatch(/^countersign: server http:\/\/127.0.0.1:\d+, context here, user admin\n$/);
  expect(out).toContain('Nothing that bypasses attestation was found.');
});

test('--check finds a binding on the second page of the list, under any name', async () => {
  const pages: Answer[] = [
    [200, { items: [binding('other', 'view')], metadata: { continue: 'more' } }],
    [200, { items: [binding('mine')] }],
  ];
  const { code, out, calls } = await harden(['--check'], { [rbac]: pages });
  expect(code).toBe(1);
  expect(out).toContain('✗ ClusterRoleBinding mine (Group system:bootstrappers)');
  expect(out).not.toContain('ClusterRoleBinding other');
  expect(calls.map(({ call }) => call)).toContainEqual(expect.stringMatching(/clusterrolebindings\?.*continue=more/));
});

test('--check does not pass if rights cannot be reviewed', async () => {
  const { code, err } = await harden(['--check'], { [reviews]: [[403, { message: 'no' }]] });
  expect(code).toBe(5);
  expect(err).toContain('no right to SubjectAccessReviews');
});

test('--yes removes nothing without a relay, nor with one that may not approve', async () => {
  const open = { [rbac]: [[200, { items: [binding('mine')] }]] as const };
  const alone = await harden(['--yes'], open);
  expect([alone.code, deleted(alone.calls)]).toEqual([1, []]);
  expect(alone.err).toContain('no relay was found');
  const powerless = await harden(['--yes'], { ...open, [deployments]: [[200, { items: [relay] }]] });
  expect([powerless.code, deleted(powerless.calls)]).toEqual([1, []]);
  expect(powerless.err).toMatch(/cs\/relay \(system:serviceaccount:cs:relay\): it may NOT list/);
});

test.each([200, 404])('--yes removes the binding that it showed, and no later one; HTTP %i', async (status) => {
  const allowed = (who: object) => [201, { status: { allowed: true }, ...who }] as const;
  const { code, out, calls } = await harden(['--yes'], {
    [rbac]: [
      [200, { items: [binding('mine')] }],
      [200, { items: [] }],
    ],
    [deployments]: [[200, { items: [relay] }]],
    // Two questions about the bypasses and six about the relay; afterwards the bypasses are closed.
    [reviews]: [...Array.from({ length: 2 + 6 }, () => allowed({})), [201, { status: { allowed: false } }]],
    'DELETE /apis/rbac.authorization.k8s.io/v1/clusterrolebindings/mine': [[status, {}]],
  });
  expect(code).toBe(0);
  expect(out).toContain('removed ClusterRoleBinding mine\n');
  expect(deleted(calls)).toMatchObject([{ body: { preconditions: { uid: 'uid-mine', resourceVersion: '7' } } }]);
});

test.each<[number, number, string]>([
  [401, 3, 'the login is not accepted; --kubeconfig and --context choose another'],
  [403, 3, 'pods of kube-system: HTTP 403: why'],
  [429, 5, 'is busy: HTTP 429: why\ncountersign: try again'],
  [500, 5, 'did not answer: HTTP 500: why\ncountersign: try again'],
])('HTTP %i ends the command with %i and what to do', async (status, code, words) => {
  const ran = await harden([], { [pods]: [[status, { message: 'why' }]] });
  expect([ran.code, ran.out]).toEqual([code, '']);
  expect(ran.err).toContain(words);
});
