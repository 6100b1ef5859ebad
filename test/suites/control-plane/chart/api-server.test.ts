import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startControlPlane, type ControlPlane } from '../../../harness/kubernetes/control-plane.ts';
import { createObject } from '../../../harness/kubernetes/objects.ts';
import { requireTools } from '../../../tools/tools.ts';
import { chart, example, examples, helm, namespace, objects, podTemplate, release, template } from './helm.ts';
import type { PodSpec } from './helm.ts';

const { skip } = await requireTools('etcd', 'kube-apiserver', 'kubectl', 'helm');

interface Refusal {
  readonly stderr: string;
}

/** The 1.36 API server itself is the schema here: strict about fields, with its defaults, validation and admission. */
describe.skipIf(skip)('the API server', () => {
  let plane: ControlPlane;
  beforeAll(async () => {
    plane = await startControlPlane();
    for (const [name, level] of [
      [namespace, 'restricted'],
      ['open', 'privileged'],
    ] as const) {
      const labels = { 'pod-security.kubernetes.io/enforce': level };
      await createObject(plane.admin, { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } });
    }
  });
  afterAll(() => plane?.stop());

  const dryRun = (input: string): Promise<string> =>
    plane.kubectl(['apply', '--dry-run=server', '--validate=strict', '-f', '-'], { input });
  /** Pods, not Deployments, are what PodSecurity refuses. */
  async function pod(spec: PodSpec, into: string): Promise<string> {
    const body = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'relay', namespace: into }, spec };
    const path = `/api/v1/namespaces/${into}/pods?dryRun=All&fieldValidation=Strict`;
    const { status, json } = await plane.admin.request(path, { method: 'POST', body });
    return status === 201 ? 'created' : (json() as { message: string }).message;
  }

  test.each(examples)('takes everything rendered with %s', async (file) => {
    const text = await template(example(file));
    const answer = await dryRun(text);
    expect(answer.trim().split('\n')).toHaveLength(objects(text).length);
  });

  test('refuses a field that it does not know', async () => {
    const text = (await template(example('plain-manifests.yaml'))).replace('whenUnsatisfiable', 'whenUnsatisfied');
    const { stderr } = (await dryRun(text).catch((error: unknown) => error)) as Refusal;
    expect(stderr).toMatch(/unknown field "spec.template.spec.topologySpreadConstraints\[0\].whenUnsatisfied"/);
  });

  test.each(examples.filter((file) => file !== 'instance-role.yaml'))(
    'lets the pod of %s into a restricted namespace',
    async (file) => {
      expect(await pod(podTemplate(objects(await template(example(file)))).spec, namespace)).toContain('created');
    },
  );

  test('lets the pod in the node’s network only into a namespace of the level the chart gives it', async () => {
    const rendered = objects(await template(example('instance-role.yaml')));
    const { spec } = podTemplate(rendered);
    expect(await pod(spec, namespace)).toContain('host namespaces (hostNetwork=true)');
    expect(await pod(spec, 'open')).toContain('created');
    expect(rendered.find(({ kind }) => kind === 'Namespace')?.metadata.labels).toEqual({
      'pod-security.kubernetes.io/enforce': 'privileged',
    });
  });

  test('would refuse that pod with any one of its restrictions gone', async () => {
    const { spec } = podTemplate(objects(await template(example('plain-manifests.yaml'))));
    const [container] = spec.containers;
    const withContainer = (context: Record<string, unknown>): PodSpec => ({
      ...spec,
      containers: [{ ...container!, securityContext: { ...container!.securityContext, ...context } }],
    });
    const withPod = (context: Record<string, unknown>): PodSpec => ({
      ...spec,
      securityContext: { ...spec.securityContext, ...context },
    });
    const weaker: readonly [PodSpec, string][] = [
      [withContainer({ allowPrivilegeEscalation: true }), 'allowPrivilegeEscalation'],
      [withContainer({ capabilities: {} }), 'unrestricted capabilities'],
      [withPod({ runAsNonRoot: false }), 'runAsNonRoot'],
      [withPod({ runAsUser: 0 }), 'runAsUser=0'],
      [withPod({ seccompProfile: { type: 'Unconfined' } }), 'seccompProfile'],
    ];
    for (const [changed, reason] of weaker) expect(await pod(changed, namespace)).toContain(reason);
    // No level asks for this one.
    expect(container!.securityContext).toMatchObject({ readOnlyRootFilesystem: true });
  });

  test('installs, upgrades and removes a release, whose account may do what its values say and no more', async () => {
    const install = (...more: string[]): Promise<string> =>
      helm(
        [
          'upgrade',
          '--install',
          release,
          chart,
          '--namespace',
          'signers',
          '--create-namespace',
          '--values',
          example('eks-pod-identity.yaml'),
          ...more,
        ],
        { KUBECONFIG: plane.adminKubeconfig },
      );
    const notes = await install();
    expect(notes).toContain('rollout status deployment/countersign-watch-relay');
    expect(notes).toContain('Signers: k8s.example.com/web, k8s.example.com/workload');

    const account = `system:serviceaccount:signers:${release}`;
    interface Access {
      verb: string;
      group: string;
      resource: string;
      subresource?: string;
      name?: string;
      namespace?: string;
    }
    const can = async (resourceAttributes: Access): Promise<boolean> => {
      const review = await plane.admin.expectOk<{ status: { allowed: boolean } }>(
        '/apis/authorization.k8s.io/v1/subjectaccessreviews',
        {
          method: 'POST',
          body: {
            apiVersion: 'authorization.k8s.io/v1',
            kind: 'SubjectAccessReview',
            spec: { user: account, groups: ['system:serviceaccounts', 'system:authenticated'], resourceAttributes },
          },
        },
      );
      return review.status.allowed;
    };
    const group = 'certificates.k8s.io';
    const sign = (name: string): Promise<boolean> => can({ verb: 'sign', group, resource: 'signers', name });
    expect(await sign('k8s.example.com/web')).toBe(true);
    expect(await sign('k8s.example.com/other')).toBe(false);
    expect(await sign('kubernetes.io/kube-apiserver-client')).toBe(false);
    const requests = { group, resource: 'certificatesigningrequests' };
    expect(await can({ verb: 'update', ...requests, subresource: 'status' })).toBe(true);
    expect(await can({ verb: 'update', ...requests, subresource: 'approval' })).toBe(false);
    expect(await can({ verb: 'create', ...requests })).toBe(false);
    expect(await can({ verb: 'get', group: '', resource: 'secrets', namespace: 'signers' })).toBe(false);
    const lease = { verb: 'update', group: 'coordination.k8s.io', resource: 'leases' };
    expect(await can({ ...lease, name: release, namespace: 'signers' })).toBe(true);
    expect(await can({ ...lease, name: 'other', namespace: 'signers' })).toBe(false);
    expect(await can({ ...lease, name: release, namespace: 'kube-system' })).toBe(false);

    const values = join(plane.dir, 'fewer.json');
    writeFileSync(values, JSON.stringify({ signerNames: ['k8s.example.com/workload'] }));
    await install('--values', values);
    rmSync(values);
    expect(await sign('k8s.example.com/web')).toBe(false);
    expect(await sign('k8s.example.com/workload')).toBe(true);

    await helm(['rollback', release, '1', '--namespace', 'signers'], { KUBECONFIG: plane.adminKubeconfig });
    expect(await sign('k8s.example.com/web')).toBe(true);

    await helm(['uninstall', release, '--namespace', 'signers'], { KUBECONFIG: plane.adminKubeconfig });
    const kinds =
      'clusterrole,clusterrolebinding,role,rolebinding,deployment,poddisruptionbudget,networkpolicy,configmap,sa';
    const left = await plane.kubectl(['get', kinds, '-A', '-l', 'app.kubernetes.io/part-of=countersign', '-o', 'name']);
    expect(left).toBe('');
    expect(await sign('k8s.example.com/web')).toBe(false);
  });
});
