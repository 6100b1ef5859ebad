import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildTokenReconcile, tokenReconcileIntruders, tokenReconcileName } from '../../../../deploy/image/build.ts';
import type { Script } from '../../../../deploy/bundle.ts';
import { generateBootstrapToken, secretOfToken } from '../../../../core/kubernetes/bootstrap-token.ts';
import { startControlPlane, type ControlPlane } from '../../../harness/kubernetes/control-plane.ts';
import { installClusterApi } from '../../../harness/cluster-api/definitions.ts';
import { createCluster } from '../../../harness/cluster-api/machine-life.ts';
import { createObject } from '../../../harness/kubernetes/objects.ts';
import { isAllowed, untilGranted, type Right } from '../../../harness/kubernetes/rights.ts';
import { temporaryFolder } from '../../../harness/processes/processes.ts';
import { requireTools } from '../../../tools/tools.ts';
import { chart, example, examples, helm, namespace, objects, release, template } from './helm.ts';
import type { PodSpec, Rendered } from './helm.ts';

const { skip } = await requireTools('etcd', 'kube-apiserver', 'kubectl', 'helm', 'cluster-api');
const values = { tokenReconcile: { enabled: true, image: { repository: 'registry.example.com/token-reconcile' } } };
const plain = example('plain-manifests.yaml');
const name = `${release}-token-reconcile`;

interface CronJob {
  readonly jobTemplate: {
    readonly spec: {
      readonly template: { readonly metadata: { readonly labels: Record<string, string> }; readonly spec: PodSpec };
    };
  };
}
function podOf(rendered: readonly Rendered[]) {
  const job = rendered.find(({ kind }) => kind === 'CronJob');
  if (job === undefined) throw new Error('no CronJob rendered');
  return (job.spec as unknown as CronJob).jobTemplate.spec.template;
}

describe('the bundle', () => {
  const folder = temporaryFolder('token-reconcile');
  let bundle: Script;
  beforeAll(async () => {
    bundle = await buildTokenReconcile(folder.path);
  });
  afterAll(() => folder.remove());

  test('holds one command, and nothing of AWS, the signer or the other commands', () => {
    expect(bundle.sources).toContain('cli/cluster/token-rotation.ts');
    expect(tokenReconcileIntruders(bundle.sources)).toEqual([]);
    expect([...bundle.packages.keys()].join(' ')).not.toMatch(/@aws|@smithy|commander/);
    for (const source of [
      'cli/commands/tofu.ts',
      'cli/world.ts',
      'core/../lambdas/sign/handler.ts',
      'adapters/aws/ec2.ts',
      'node_modules/@aws-sdk/client-ec2/x.js',
    ])
      expect(tokenReconcileIntruders([source.replace('core/../', '')])).toHaveLength(1);
  });

  describe.skipIf(skip)('as the chart’s service account', () => {
    let plane: ControlPlane;
    let rendered: Rendered[];
    const secrets = '/api/v1/namespaces/kube-system/secrets';
    const user = `system:serviceaccount:${namespace}:${name}`;
    beforeAll(async () => {
      plane = await startControlPlane();
      await plane.kubectl(['create', 'namespace', namespace]);
      const text = await template(plain, { show: ['token-reconcile.yaml', 'token-reconcile-rbac.yaml'], values });
      rendered = objects(text);
      await plane.kubectl(['apply', '--validate=strict', '-f', '-'], { input: text });
    });
    afterAll(() => plane?.stop());

    /** A token of a Machine or a MachinePool that expires in a minute. Returns its id. */
    async function token(kind: 'machine' | 'pool', owner: string): Promise<string> {
      const made = generateBootstrapToken((count) => crypto.getRandomValues(new Uint8Array(count)));
      const expires = Date.now() + 60_000;
      const named = { kind, namespace: 'default', name: owner } as const;
      const body = secretOfToken({ token: made, description: '', usages: [], groups: [], owner: named, expires });
      await plane.admin.expectOk(secrets, { method: 'POST', body });
      return made.id;
    }

    /** What one run of the job says of each token: `extended: the pool exists`. */
    async function reconcile(args: readonly string[] = []) {
      const { status, stdout, stderr } = await runInPod(plane, folder.path, args);
      expect(stderr).toBe('');
      const line = /^(\w+) \([^)]*\): (\w+)(?: until [^:]*:[^:]*:[^:]*)?: (.*)$/;
      const parts = stdout
        .trimEnd()
        .split('\n')
        .map((each) => line.exec(each) ?? [each, '', '', each]);
      return { status, said: Object.fromEntries(parts.map(([, id = '', done, why]) => [id, `${done}: ${why}`])) };
    }
    const exists = async (id: string) => (await plane.admin.request(`${secrets}/bootstrap-token-${id}`)).status === 200;

    test('keeps the token of a Machine until its node is Ready, and that of a MachinePool while the pool exists', async () => {
      await installClusterApi(plane);
      const fleet = await createCluster(plane.admin, { name: 'prod' });
      const [m, n, p] = [
        await fleet.createMachine('m'),
        await fleet.createMachine('n'),
        await fleet.createPool('p'),
      ] as const;
      const [first, second, third] = [
        await token('machine', 'm'),
        await token('machine', 'n'),
        await token('pool', 'p'),
      ];
      const args = podOf(rendered).spec.containers[0]!.args;
      expect(await reconcile(args)).toEqual({
        status: 0,
        said: {
          [first]: 'extended: the machine has no node yet',
          [second]: 'extended: the machine has no node yet',
          [third]: 'extended: the pool exists',
        },
      });

      await createNode(plane, 'node-m', 'False');
      await createNode(plane, 'node-p', 'True');
      for (const each of [m, p]) await each.bootstrapReady();
      await m.provisioned('aws:///eu-central-1a/i-1');
      await m.joined('node-m');
      await p.members(['aws:///eu-central-1a/i-2'], ['node-p']);
      await n.deleting();
      expect((await reconcile()).said).toEqual({
        [first]: 'left: the machine’s node is not Ready yet',
        [second]: 'deleted: the machine is being deleted',
        [third]: 'left: the pool exists',
      });

      await setReady(plane, 'node-m', 'True');
      expect((await reconcile()).said).toEqual({
        [first]: 'deleted: the machine’s node is Ready',
        [third]: 'left: the pool exists',
      });
      expect(await Promise.all([first, second, third].map(exists))).toEqual([false, false, true]);

      await p.deleting();
      expect((await reconcile()).said).toEqual({ [third]: 'deleted: the pool is being deleted' });
      for (const each of [m, n, p]) await each.gone();
      // With no owner left it may as well be the wrong cluster: the token is left to expire.
      const last = await token('machine', 'm');
      const { status, said } = await reconcile();
      expect(status).toBe(4);
      expect(said[last]).toContain('is it the right management cluster?');
      expect(await exists(last)).toBe(true);
    });

    test('uses each right that the chart gives it, and tries nothing else', async () => {
      const granted = rendered.flatMap(({ kind, metadata, rules = [] }) =>
        rules.flatMap(({ resources, verbs }) =>
          resources.flatMap((resource) =>
            verbs.map((verb) => `${verb} ${resource}${kind === 'Role' ? ` in ${metadata.namespace}` : ''}`),
          ),
        ),
      );
      const events = plane.auditEvents({ user }).filter(({ objectRef }) => objectRef !== undefined);
      const used = events.map(({ verb, objectRef }) => {
        const { resource = '', namespace: place } = objectRef ?? {};
        return `${verb} ${resource}${resource === 'secrets' ? ` in ${place}` : ''}`;
      });
      expect([...new Set(used)].toSorted()).toEqual(granted.toSorted());
      expect(events.filter(({ responseStatus }) => responseStatus?.code === 403)).toEqual([]);

      const may = (right: Right) => isAllowed(plane, { user, groups: ['system:authenticated'] }, right);
      const [certificates, signer] = ['certificates.k8s.io', 'kubernetes.io/kubelet-serving'];
      for (const right of [
        { verb: 'list', group: '', resource: 'secrets', namespace: 'default' },
        { verb: 'create', group: '', resource: 'secrets', namespace: 'kube-system' },
        { verb: 'update', group: certificates, resource: 'certificatesigningrequests', subresource: 'status' },
        { verb: 'approve', group: certificates, resource: 'signers', name: signer },
        { verb: 'update', group: 'cluster.x-k8s.io', resource: 'machines' },
        { verb: 'get', group: 'cluster.x-k8s.io', resource: 'clusters' },
        { verb: 'list', group: '', resource: 'nodes' },
      ])
        expect([right, await may(right)]).toEqual([right, false]);
    });

    test('the relay beside it may neither read nor write a Secret', async () => {
      await plane.kubectl(['apply', '-f', '-'], { input: await template(plain, { show: ['rbac.yaml'] }) });
      const relay = { user: `system:serviceaccount:${namespace}:${release}`, groups: ['system:authenticated'] };
      const requests = { verb: 'watch', group: 'certificates.k8s.io', resource: 'certificatesigningrequests' };
      await untilGranted(plane, relay, requests);
      for (const verb of ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection'])
        for (const place of ['kube-system', 'default', namespace]) {
          const right = { verb, group: '', resource: 'secrets', namespace: place };
          expect([right, await isAllowed(plane, relay, right)]).toEqual([right, false]);
        }
    });

    test('may live in a namespace of level restricted', async () => {
      await plane.kubectl(['label', 'namespace', namespace, 'pod-security.kubernetes.io/enforce=restricted']);
      const { spec } = podOf(rendered);
      const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'job', namespace }, spec };
      const answer = await plane.kubectl(['apply', '--dry-run=server', '-f', '-'], { input: JSON.stringify(pod) });
      expect(answer).toContain('created');
    });
  });

  /** The library looks for a pod's login where it is in pods; a test may not write there, so it is given as a kubeconfig's place. */
  async function runInPod(plane: ControlPlane, folderPath: string, args: readonly string[] = []) {
    const token = await plane.kubectl(['create', 'token', name, '-n', namespace, '--duration=1h']);
    const account = join(folderPath, 'account');
    mkdirSync(account, { recursive: true });
    writeFileSync(join(account, 'token'), token.trim());
    writeFileSync(join(account, 'ca.crt'), plane.servingCaPem);
    // The only thing that differs from the image: where the account is.
    const path = join(folderPath, 'under-test.cjs');
    const text = readFileSync(join(folderPath, tokenReconcileName), 'utf8');
    expect(text).toContain('/var/run/secrets/kubernetes.io/serviceaccount');
    writeFileSync(path, text.replaceAll('/var/run/secrets/kubernetes.io/serviceaccount', account));
    const { hostname, port } = new URL(plane.url);
    const env = { PATH: process.env['PATH'], KUBERNETES_SERVICE_HOST: hostname, KUBERNETES_SERVICE_PORT: port };
    const flags = ['--permission', '--allow-fs-read=*', '--max-old-space-size=96'];
    const ran = spawnSync(process.execPath, [...flags, path, ...args], { encoding: 'utf8', env, timeout: 60_000 });
    return { status: ran.status, stdout: ran.stdout, stderr: ran.stderr };
  }
});

async function createNode(plane: ControlPlane, node: string, ready: 'True' | 'False'): Promise<void> {
  await createObject(plane.admin, { apiVersion: 'v1', kind: 'Node', metadata: { name: node } });
  await setReady(plane, node, ready);
}

async function setReady({ admin }: ControlPlane, node: string, ready: 'True' | 'False'): Promise<void> {
  await admin.expectOk(`/api/v1/nodes/${node}/status`, {
    method: 'PATCH',
    headers: { 'content-type': 'application/merge-patch+json' },
    body: JSON.stringify({ status: { conditions: [{ type: 'Ready', status: ready }] } }),
  });
}

describe.skipIf(skip)('the chart', () => {
  test.each(examples)('has nothing of it with %s', async (file) => {
    expect(await template(example(file))).not.toContain('token-reconcile');
  });

  test('gives the job an account of its own, and the relay no right on Secrets', async () => {
    const rendered = objects(await template(plain, { values }));
    const lint = join(chart, 'examples/plain-manifests.yaml');
    expect(
      await helm([
        'lint',
        '--strict',
        chart,
        '--values',
        lint,
        '--set',
        'tokenReconcile.enabled=true',
        '--set',
        'tokenReconcile.image.repository=r',
      ]),
    ).toContain('0 chart(s) failed');
    const withSecrets = rendered.filter(({ rules }) => rules?.some(({ resources }) => resources.includes('secrets')));
    expect(withSecrets.map(({ kind, metadata }) => [kind, metadata.namespace, metadata.name])).toEqual([
      ['Role', 'kube-system', name],
    ]);
    const { metadata, spec } = podOf(rendered);
    expect(spec.serviceAccountName).toBe(name);
    // The relay's own policies do not select it.
    expect(metadata.labels['app.kubernetes.io/name']).toBe('countersign-token-reconcile');
    for (const { kind, spec: policy } of rendered.filter((each) =>
      ['PodDisruptionBudget', 'Deployment'].includes(each.kind),
    ))
      expect(JSON.stringify(policy?.['selector']), kind).not.toContain('token-reconcile');
  });

  test('says what is missing', async () => {
    const error = await template(plain, { values: { tokenReconcile: { enabled: true } } }).catch(
      (reason: unknown) => (reason as { stderr: string }).stderr,
    );
    expect(error).toContain('tokenReconcile.image.repository');
  });
});
