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
import { isAllowed, type Right } from '../../../harness/kubernetes/rights.ts';
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
    beforeAll(async () => {
      plane = await startControlPlane();
      await plane.kubectl(['create', 'namespace', namespace]);
      const text = await template(plain, { show: ['token-reconcile.yaml', 'token-reconcile-rbac.yaml'], values });
      rendered = objects(text);
      await plane.kubectl(['apply', '--validate=strict', '-f', '-'], { input: text });
    });
    afterAll(() => plane?.stop());

    test('asks and does what it must, and is refused everything else', async () => {
      const secrets = '/api/v1/namespaces/kube-system/secrets';
      const random = (count: number) => crypto.getRandomValues(new Uint8Array(count));
      const token = generateBootstrapToken(random);
      const owner = { kind: 'machine', namespace: 'default', name: 'm' } as const;
      const record = { token, description: '', usages: [], groups: [], owner, expires: Date.now() + 60_000 };
      await plane.admin.expectOk(secrets, { method: 'POST', body: secretOfToken(record) });
      await installClusterApi(plane);
      const fleet = await createCluster(plane.admin, { name: 'prod' });
      const m = await fleet.createMachine('m');

      const first = await runInPod(plane, folder.path, podOf(rendered).spec.containers[0]!.args);
      expect(first).toEqual({
        status: 0,
        stderr: '',
        stdout: expect.stringMatching(
          new RegExp(`^${token.id} \\(machine default/m\\): extended until .*: the machine has no node yet\\n$`),
        ) as unknown,
      });
      // A second Machine says that this is the cluster of both.
      const second = { ...record, token: generateBootstrapToken(random), owner: { ...owner, name: 'n' } };
      await plane.admin.expectOk(secrets, { method: 'POST', body: secretOfToken(second) });
      const n = await fleet.createMachine('n');
      await m.gone();
      expect(await runInPod(plane, folder.path)).toMatchObject({
        status: 0,
        stdout: expect.stringContaining('deleted: the machine is gone') as unknown,
      });
      expect((await plane.admin.request(`${secrets}/bootstrap-token-${token.id}`)).status).toBe(404);
      // With the last one gone it may as well be the wrong cluster: the token is left to expire.
      await n.gone();
      expect(await runInPod(plane, folder.path)).toMatchObject({
        status: 4,
        stdout: expect.stringContaining('is it the right management cluster?') as unknown,
      });

      const user = `system:serviceaccount:${namespace}:${name}`;
      const may = (right: Right) => isAllowed(plane, { user, groups: ['system:authenticated'] }, right);
      const secretsIn = (place: string, verb: string): Right => ({
        verb,
        group: '',
        resource: 'secrets',
        namespace: place,
      });
      const [certificates, signer] = ['certificates.k8s.io', 'kubernetes.io/kubelet-serving'];
      expect(await may(secretsIn('kube-system', 'list'))).toBe(true);
      for (const right of [
        secretsIn('default', 'list'),
        secretsIn('kube-system', 'create'),
        { verb: 'update', group: certificates, resource: 'certificatesigningrequests', subresource: 'status' },
        { verb: 'approve', group: certificates, resource: 'signers', name: signer },
        { verb: 'update', group: 'cluster.x-k8s.io', resource: 'machines' },
        { verb: 'list', group: '', resource: 'nodes' },
      ])
        expect([right, await may(right)]).toEqual([right, false]);
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
