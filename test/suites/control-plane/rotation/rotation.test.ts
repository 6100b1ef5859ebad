import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { createEmbeddedCa } from '../../../../adapters/embedded/authority.ts';
import type { Report } from '../../../../cli/report/model/shape.ts';
import type { ShownRotation } from '../../../../cli/rotation/report.ts';
import { parseConfiguration } from '../../../../core/configuration/parse.ts';
import { toPem } from '../../../../core/encoding/pem.ts';
import { openSignService } from '../../../../dev/serve/sign-service.ts';
import { startControlPlane, type ControlPlane } from '../../../harness/kubernetes/control-plane.ts';
import { createObject, type AnyObject } from '../../../harness/kubernetes/objects.ts';
import { untilGranted } from '../../../harness/kubernetes/rights.ts';
import { temporaryFolder } from '../../../harness/processes/processes.ts';
import { makeRequest } from '../../../harness/x509/requests.ts';
import { requireTools } from '../../../tools/tools.ts';
import { run } from '../../../unit/cli/run.ts';

const { skip } = await requireTools('etcd', 'kube-apiserver', 'kubectl');

const serving = 'kubernetes.io/kubelet-serving';
const configuration = `version: 1
clusters:
  demo:
    cas: { a: { subject: { commonName: A } }, b: { replaces: a, subject: { commonName: B } } }
    profiles: { ${serving}: { ca: a }, kubernetes.io/kube-apiserver-client-kubelet: { ca: a } }
`;
const page = readFileSync(resolve(import.meta.dirname, '../../../../docs/ca/rotation.md'), 'utf8');

describe.skipIf(skip)('ca rotate reads what a real cluster trusts', () => {
  const folder = temporaryFolder('rotation');
  const file = join(folder.path, 'countersign.yaml');
  let plane: ControlPlane;

  beforeAll(async () => {
    writeFileSync(file, configuration);
    const parsed = parseConfiguration(configuration, file);
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.problem));
    const cluster = parsed.value.configuration.clusters.get('demo')!;
    (await openSignService({ clusters: [cluster], dataFolder: folder.path, log: () => {} })).close();
    const pem = async (name: string): Promise<string> => {
      const origin = { now: Date.now(), randomBytes };
      const { authority } = await createEmbeddedCa(join(folder.path, 'demo'), cluster.cas.get(name)!, origin);
      return toPem('CERTIFICATE', authority.certificate);
    };
    const [a, b] = [await pem('a'), await pem('b')];
    plane = await startControlPlane({
      clientCaPem: a,
      apiServerArgs: [
        '--feature-gates=ClusterTrustBundle=true',
        '--runtime-config=certificates.k8s.io/v1beta1/clustertrustbundles=true',
      ],
    });
    const caBundle = Buffer.from(a).toString('base64');
    const clusterEntry = { name: '', cluster: { server: plane.url, 'certificate-authority-data': caBundle } };
    const clientConfig = { url: 'https://127.0.0.1:1/hook', caBundle };
    const objects: readonly (AnyObject & Readonly<Record<string, unknown>>)[] = [
      {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 'kube-root-ca.crt', namespace: 'kube-system' },
        data: { 'ca.crt': `${a}${b}` },
      },
      {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 'cluster-info', namespace: 'kube-public' },
        data: { kubeconfig: JSON.stringify({ apiVersion: 'v1', kind: 'Config', clusters: [clusterEntry] }) },
      },
      {
        apiVersion: 'certificates.k8s.io/v1beta1',
        kind: 'ClusterTrustBundle',
        metadata: { name: 'kubernetes.io:kubelet-serving:countersign' },
        spec: { signerName: serving, trustBundle: `${a}${b}` },
      },
      {
        apiVersion: 'admissionregistration.k8s.io/v1',
        kind: 'ValidatingWebhookConfiguration',
        metadata: { name: 'hook' },
        webhooks: [
          { name: 'hook.example.com', clientConfig, sideEffects: 'None', admissionReviewVersions: ['v1'], rules: [] },
        ],
      },
      {
        apiVersion: 'apiregistration.k8s.io/v1',
        kind: 'APIService',
        metadata: { name: 'v1.example.com' },
        spec: {
          group: 'example.com',
          version: 'v1',
          groupPriorityMinimum: 100,
          versionPriority: 100,
          caBundle,
          service: { name: 'x', namespace: 'default' },
        },
      },
      // As the kubelet makes it for a manifest of kubeadm.
      {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: {
          name: 'kube-apiserver-cp-1',
          namespace: 'kube-system',
          labels: { component: 'kube-apiserver', tier: 'control-plane' },
          annotations: { 'kubernetes.io/config.mirror': 'x' },
        },
        spec: {
          nodeName: 'cp-1',
          containers: [
            { name: 'c', image: 'x', command: ['kube-apiserver', '--kubelet-certificate-authority=/pki/ca.crt'] },
          ],
        },
      },
    ];
    for (const object of objects) await createObject(plane.admin, object);
  });
  afterAll(async () => {
    await plane?.stop();
    folder.remove();
  });

  async function rotate(kubeconfig: string): Promise<ShownRotation & { readonly code: number }> {
    const data = join(folder.path, 'demo');
    const flags = ['--data', data, '--config', file, '--name', 'a', '--kubeconfig', kubeconfig, '-o', 'json'];
    const { code, out, err } = await run(['ca', 'rotate', ...flags], { world: { now: Date.now } });
    expect(out, err).not.toBe('');
    return { ...(JSON.parse(out) as ShownRotation), code };
  }

  const expected = {
    'ConfigMap kube-system/extension-apiserver-authentication, client-ca-file': 'oldOnly',
    'ConfigMap kube-system/kube-root-ca.crt': 'both',
    'ConfigMap kube-public/cluster-info': 'oldOnly',
    'ClusterTrustBundle kubernetes.io:kubelet-serving:countersign': 'both',
    'ValidatingWebhookConfiguration hook': 'oldOnly',
    'APIService v1.example.com': 'oldOnly',
    'file /pki/ca.crt on cp-1': 'hidden',
    'file on each node (kubeadm: /etc/kubernetes/pki/ca.crt)': 'hidden',
    'files of the control plane, of kubelets and of users': 'hidden',
  };
  const states = ({ consumers }: ShownRotation) =>
    Object.fromEntries(consumers.map(({ place, state }) => [place, state]));

  test('with the rights of the page it reads everything', async () => {
    const [block = ''] = /apiVersion: rbac[^`]*/.exec(page) ?? [];
    const role = parse(block) as AnyObject;
    await createObject(plane.admin, role);
    const name = role.metadata.name;
    await plane.kubectl(['create', 'clusterrolebinding', name, `--clusterrole=${name}`, '--user=auditor']);
    await untilGranted(
      plane,
      { user: 'auditor' },
      { verb: 'list', group: 'apiextensions.k8s.io', resource: 'customresourcedefinitions' },
    );
    const seen = await rotate(await plane.kubeconfigFor({ user: 'auditor' }));
    expect(seen).toMatchObject({ phase: 'trust', code: 0, findings: [] });
    expect(states(seen)).toEqual(expected);
    expect(states(await rotate(plane.adminKubeconfig))).toEqual(expected);
  });

  async function report(kubeconfig: string): Promise<Report & { readonly code: number }> {
    const flags = ['--data', join(folder.path, 'demo'), '--config', file, '--kubeconfig', kubeconfig, '-o', 'json'];
    const { code, out, err } = await run(['report', ...flags], { world: { now: Date.now } });
    expect(out, err).not.toBe('');
    return { ...(JSON.parse(out) as Report), code };
  }

  test('countersign report reads the same, the nodes and the requests, with the rights of its page', async () => {
    const reportPage = readFileSync(resolve(import.meta.dirname, '../../../../docs/report.md'), 'utf8');
    const role = parse(/apiVersion: rbac[^`]*/.exec(reportPage)?.[0] ?? '') as AnyObject;
    await createObject(plane.admin, role);
    const name = role.metadata.name;
    await plane.kubectl(['create', 'clusterrolebinding', name, `--clusterrole=${name}`, '--user=auditor']);
    await untilGranted(plane, { user: 'auditor' }, { verb: 'list', group: '', resource: 'nodes' });
    await createObject(plane.admin, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'worker-1' } });
    const { pem } = makeRequest({ subject: { O: 'system:nodes', CN: 'system:node:worker-1' } });
    const spec = {
      request: Buffer.from(pem).toString('base64'),
      signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
      usages: ['digital signature', 'client auth'],
    };
    const metadata = { name: 'worker-1' };
    const request = { apiVersion: 'certificates.k8s.io/v1', kind: 'CertificateSigningRequest', metadata, spec };
    await createObject(plane.admin, request);
    const seen = await report(await plane.kubeconfigFor({ user: 'auditor' }));
    expect(seen.parts.filter(({ state }) => state !== 'read')).toEqual([]);
    // Nothing in this cluster is attested, so nothing would be refused.
    expect([seen.code, seen.rows]).toEqual([0, []]);
    expect(seen.fleet).toMatchObject([{ node: 'worker-1', standing: 'none', inCluster: true }]);
    expect(seen.requests).toMatchObject([{ name: 'worker-1', state: 'pending' }]);
    expect(seen.cas.map(({ name: ca, replaces }) => [ca, replaces])).toEqual([
      ['a', undefined],
      ['b', 'a'],
    ]);
    const trust = Object.fromEntries(seen.trust.map(({ place, cas, unread }) => [place, unread ?? cas]));
    expect(trust).toMatchObject({
      'ConfigMap kube-system/extension-apiserver-authentication, client-ca-file': { a: 'trusted', b: 'not trusted' },
      'ConfigMap kube-system/kube-root-ca.crt': { a: 'trusted', b: 'trusted' },
      'ClusterTrustBundle kubernetes.io:kubelet-serving:countersign': { a: 'trusted', b: 'trusted' },
      'ValidatingWebhookConfiguration hook': { a: 'trusted', b: 'not trusted' },
    });
    // Without the rights each part says so, and the CAs are still shown.
    const stranger = await report(await plane.kubeconfigFor({ user: 'stranger' }));
    expect(stranger.code).toBe(5);
    expect(stranger.parts.filter(({ state }) => state === 'failed').map(({ name: part }) => part)).toEqual([
      'requests',
      'nodes',
    ]);
    expect(stranger.trust.filter(({ unread }) => unread?.includes('403') === true).length).toBeGreaterThan(5);
    expect(stranger.cas.length).toBe(2);
  });

  test('openssl shows whose certificates one API server takes, as the page says', async () => {
    const [, asked = ''] = /`(openssl s_client[^`]*)`/.exec(page) ?? [];
    const command = asked.replace('HOST:6443', new URL(plane.url).host);
    const { stdout } = await promisify(execFile)('sh', ['-c', command]);
    expect(stdout).toMatch(/^CN ?= ?A$/m);
    expect(stdout).not.toMatch(/^CN ?= ?B$/m);
  });

  test('without rights it says what it did not read', async () => {
    const { code, phase, consumers } = await rotate(await plane.kubeconfigFor({ user: 'stranger' }));
    expect([code, phase]).toEqual([5, 'trust']);
    const unread = consumers.filter(({ state }) => state === 'unread').map(({ place }) => place);
    expect(unread).toEqual([
      'ConfigMap kube-system/extension-apiserver-authentication, client-ca-file',
      'ConfigMap kube-system/extension-apiserver-authentication, requestheader-client-ca-file',
      'ConfigMap kube-system/kube-root-ca.crt',
      'ConfigMap kube-public/cluster-info',
      'ClusterTrustBundles',
      'Deployments of the relay',
      'ValidatingWebhookConfigurations',
      'MutatingWebhookConfigurations',
      'APIServices',
      'CustomResourceDefinitions',
      'pods of kube-system',
    ]);
  });
});
