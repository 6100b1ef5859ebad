import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { explain } from '../../../cli/explanation.ts';
import { defaultCluster } from '../../../core/configuration.ts';
import { decodeRequestObject } from '../../../core/kubernetes.ts';
import type { RequestObject } from '../../../core/kubernetes.ts';
import { startControlPlane, type ControlPlane } from '../../harness/control-plane.ts';
import { startKubeControllerManager } from '../../harness/controller-manager.ts';
import { createTestAuthority } from '../../harness/test-certificates.ts';
import { requireTools } from '../../tools/tools.ts';
import { countersign } from './command-line.ts';
import { runKubeadmBootstrap } from './kubeadm-cluster.ts';

const { skip } = await requireTools('etcd', 'kube-apiserver', 'kube-controller-manager', 'kubeadm', 'kubectl');

const namespace = 'countersign-system';
const kubeadms = ['kubeadm:node-autoapprove-bootstrap', 'kubeadm:node-autoapprove-certificate-rotation'];

interface View {
  readonly open: readonly string[];
  readonly removed?: readonly string[];
  readonly bindings: readonly { readonly name: string; readonly subjects: readonly string[] }[];
  readonly relays: readonly { readonly name: string; readonly ready: number; readonly approves: boolean }[];
  readonly controllerManager: Record<'csrsigning' | 'csrapproving' | 'afterUpgrade', { state: string; seen: string[] }>;
}

describe.skipIf(skip)('countersign cluster harden', () => {
  let plane: ControlPlane;
  beforeAll(async () => {
    plane = await startControlPlane();
    await runKubeadmBootstrap(plane);
    await create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
  });
  afterAll(() => plane?.stop());

  const create = (object: object) => plane.kubectl(['create', '-f', '-'], { input: JSON.stringify(object) });
  const harden = (...argv: string[]) => countersign(plane.adminKubeconfig, 'cluster', 'harden', ...argv);
  const view = async (...argv: string[]) => {
    const { code, out } = await harden('-o', 'json', ...argv);
    return { code, ...(JSON.parse(out) as View) };
  };
  const bindings = async () => (await plane.kubectl(['get', 'clusterrolebindings', '-o', 'name'])).split('\n');

  /** A mirror pod as the kubelet makes one of kubeadm's static pod. */
  const controllerManager = (...args: string[]) =>
    create({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        name: 'kube-controller-manager-cp-1',
        namespace: 'kube-system',
        labels: { component: 'kube-controller-manager' },
      },
      spec: { containers: [{ name: 'c', image: 'i', command: ['kube-controller-manager', ...args] }] },
    });
  const noControllerManager = () =>
    plane.kubectl([
      '-n',
      'kube-system',
      'delete',
      'pod',
      'kube-controller-manager-cp-1',
      '--force',
      '--grace-period=0',
    ]);
  const relayLabels = {
    'app.kubernetes.io/part-of': 'countersign',
    'app.kubernetes.io/name': 'countersign-watch-relay',
  };
  const relayReady = async (readyReplicas: number) =>
    plane.admin.expectOk(`/apis/apps/v1/namespaces/${namespace}/deployments/relay/status`, {
      method: 'PATCH',
      headers: { 'content-type': 'application/merge-patch+json' },
      body: JSON.stringify({ status: { replicas: 1, readyReplicas, availableReplicas: readyReplicas } }),
    });

  test('shows what kubeadm left open, changes nothing, and says what it did not see', async () => {
    const before = await bindings();
    const shown = await harden();
    expect(shown.code).toBe(0);
    for (const name of kubeadms) expect(shown.out).toContain(`✗ ClusterRoleBinding ${name}`);
    expect(shown.out).toContain('anybody with a bootstrap token becomes any node');
    expect(shown.out).toMatch(/^csrsigning +not seen/m);
    expect(shown.out).toMatch(/^relay +none found/m);
    expect(shown.out).toContain(`--yes removes: ${kubeadms.join(', ')}`);
    expect(await bindings()).toEqual(before);
  });

  test('--check ends with 1 while there is something', async () => {
    expect(await view('--check')).toMatchObject({ code: 1, bindings: kubeadms.map((name) => ({ name })) });
  });

  test('refuses while no relay is there, and while none is Ready', async () => {
    const refused = async () => {
      const { code, err } = await harden('--yes');
      expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining('no relay is Ready') as unknown });
      expect(await bindings()).toEqual(
        expect.arrayContaining(kubeadms.map((name) => `clusterrolebinding.rbac.authorization.k8s.io/${name}`)),
      );
    };
    await refused();
    await create({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'relay', namespace, labels: relayLabels },
      spec: {
        selector: { matchLabels: relayLabels },
        template: {
          metadata: { labels: relayLabels },
          spec: { serviceAccountName: 'relay', containers: [{ name: 'c', image: 'i' }] },
        },
      },
    });
    await refused();
  });

  test('says whether the relay may approve in their place', async () => {
    expect((await view()).relays).toEqual([{ name: 'relay', namespace, ready: 0, approves: false }]);
    expect((await harden()).out).toContain('may NOT approve');
    const rule = {
      apiGroups: ['certificates.k8s.io'],
      resources: ['signers'],
      resourceNames: ['kubernetes.io/kube-apiserver-client-kubelet'],
      verbs: ['approve'],
    };
    await create({
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: 'relay' },
      rules: [rule],
    });
    await plane.kubectl([
      'create',
      'clusterrolebinding',
      'relay',
      '--clusterrole=relay',
      `--serviceaccount=${namespace}:relay`,
    ]);
    expect((await view()).relays).toMatchObject([{ approves: true }]);
  });

  test('reads the controllers off kube-controller-manager’s pod, as kube-controller-manager does', async () => {
    const seen = async (...args: string[]) => {
      await controllerManager(...args);
      const { controllerManager: found } = await view();
      await noControllerManager();
      return [found.csrsigning.state, found.csrapproving.state];
    };
    const signing = ['--cluster-signing-cert-file=/etc/kubernetes/pki/ca.crt', '--cluster-signing-key-file=/k'];
    expect(await seen('--controllers=*,bootstrapsigner,tokencleaner', ...signing)).toEqual(['on', 'on']);
    expect(await seen(...signing)).toEqual(['on', 'on']);
    expect(await seen('--controllers=*,-csrsigning', ...signing)).toEqual(['off', 'on']);
    expect(
      await seen('--controllers', '*,-certificatesigningrequest-signing-controller,-csrapproving', ...signing),
    ).toEqual(['off', 'off']);
    expect(await seen('--controllers=bootstrapsigner', ...signing)).toEqual(['off', 'off']);
    expect(await seen('--controllers=*')).toEqual(['off', 'on']);
    expect(await seen('--controllers=csrsigning', '--cluster-signing-kubelet-client-cert-file=/x')).toEqual([
      'on',
      'off',
    ]);
  });

  test('says what kubeadm upgrade would switch on again', async () => {
    const configured = async (controllers: string) => {
      const controllerManager = { extraArgs: [{ name: 'controllers', value: controllers }] };
      const data = { ClusterConfiguration: JSON.stringify({ kind: 'ClusterConfiguration', controllerManager }) };
      const object = {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 'kubeadm-config', namespace: 'kube-system' },
        data,
      };
      await plane.kubectl(['apply', '-f', '-'], { input: JSON.stringify(object) });
      return (await view()).controllerManager.afterUpgrade.state;
    };
    expect((await view()).controllerManager.afterUpgrade.state).toBe('not seen');
    expect(await configured('*,bootstrapsigner,tokencleaner')).toBe('on');
    expect(await configured('*,bootstrapsigner,tokencleaner,-csrsigning')).toBe('off');
  });

  test('--yes removes them, whatever they are called, and finds them again after kubeadm’s next run', async () => {
    await plane.kubectl([
      'create',
      'clusterrolebinding',
      'auto-approve-renewals-for-nodes',
      '--clusterrole=system:certificates.k8s.io:certificatesigningrequests:selfnodeclient',
      '--group=system:nodes',
    ]);
    await relayReady(1);
    const others = (await bindings()).filter((name) => !name.includes('autoapprove') && !name.includes('auto-approve'));
    const done = await harden('--yes');
    expect(done.code).toBe(0);
    expect(done.out).toContain('kubeadm upgrade makes these bindings anew');
    expect(await bindings()).toEqual(others);
    expect(await harden('--check')).toMatchObject({
      code: 0,
      out: expect.stringContaining('Nothing that leads around attestation was seen') as unknown,
    });
    // Again: nothing to do, and no complaint.
    expect(await view('--yes')).toMatchObject({ code: 0, removed: [], open: [] });

    await runKubeadmBootstrap(plane);
    expect(await view('--check')).toMatchObject({ code: 1, bindings: kubeadms.map((name) => ({ name })) });
    expect(await view('--yes')).toMatchObject({ code: 0, removed: kubeadms });
  });

  test('--check finds csrsigning, and rights that come by a role of another name', async () => {
    await controllerManager('--controllers=*', '--cluster-signing-cert-file=/etc/kubernetes/pki/ca.crt');
    expect(await view('--check')).toMatchObject({ code: 1, open: [expect.stringContaining('csrsigning is on')] });
    await noControllerManager();
    expect((await view('--check')).code).toBe(0);

    await plane.kubectl([
      'create',
      'clusterrole',
      'mine',
      '--verb=create',
      '--resource=certificatesigningrequests.certificates.k8s.io/nodeclient',
    ]);
    await plane.kubectl(['create', 'clusterrolebinding', 'mine', '--clusterrole=mine', '--group=system:bootstrappers']);
    expect(await view('--check')).toMatchObject({
      code: 1,
      open: [expect.stringContaining('system:bootstrap:aaaaaa may create certificatesigningrequests/nodeclient')],
    });
    await plane.kubectl(['delete', 'clusterrolebinding', 'mine']);
  });

  describe('--probe', () => {
    const probe = async () => (await view('--probe')).controllerManager.csrsigning;
    const leftOver = async () => plane.kubectl(['get', 'csr', '-o', 'name']);

    test('sees that nobody signs', async () => {
      expect(await probe()).toEqual({
        state: 'off',
        seen: [expect.any(String), expect.stringMatching(/^nobody answered .* in 10 s$/)],
      });
      expect(await leftOver()).toBe('');
    });

    test('sees kube-controller-manager sign, without its having shown its flags, and gets no certificate out of it', async () => {
      const { certificatePem, keyPem } = await createTestAuthority('in-tree');
      const signer = await startKubeControllerManager({
        controlPlane: plane,
        controllers: ['csrsigning'],
        signingCertPem: certificatePem,
        signingKeyPem: keyPem,
      });
      try {
        expect(await probe()).toEqual({
          state: 'on',
          seen: [
            expect.any(String),
            'an approved request for kubernetes.io/kube-apiserver-client-kubelet was answered, and not by the relay: subject organization is not system:nodes',
          ],
        });
        expect(await view('--probe', '--check')).toMatchObject({
          code: 1,
          open: [expect.stringContaining('csrsigning is on')],
        });
      } finally {
        await signer.stop();
      }
      expect(await leftOver()).toBe('');
    });

    test('says so when the relay was faster', async () => {
      const signal = new AbortController();
      const relay = failWhatIsApproved(plane, signal.signal);
      try {
        expect(await probe()).toEqual({
          state: 'not seen',
          seen: [expect.any(String), expect.stringContaining('the relay answered')],
        });
      } finally {
        signal.abort();
        await relay;
      }
    });
  });

  test('tells what it was not allowed to see', async () => {
    const kubeconfig = await plane.kubeconfigFor({ user: 'nobody-special' });
    const { code, err } = await countersign(kubeconfig, 'cluster', 'harden');
    expect({ code, err }).toEqual({ code: 3, err: expect.stringContaining('HTTP 403') as unknown });
  });

  test('is either a check or a change', async () => {
    expect(await harden('--yes', '--check')).toMatchObject({ code: 2 });
  });
});

/** As the relay refuses: Failed, with what the sign handler says of exactly this request. */
async function failWhatIsApproved(plane: ControlPlane, signal: AbortSignal): Promise<void> {
  const path = '/apis/certificates.k8s.io/v1/certificatesigningrequests';
  while (!signal.aborted) {
    const { items } = await plane.admin.expectOk<{
      items: { metadata: { name: string }; status: { conditions?: object[] } }[];
    }>(path);
    for (const item of items)
      if (item.status.conditions?.length === 1) {
        const { reason, message } = explain(decoded(item), defaultCluster('c', { maxTtlSeconds: 86_400 }), Date.now());
        const failed = { type: 'Failed', status: 'True', reason, message };
        const body = { ...item, status: { conditions: [...item.status.conditions, failed] } };
        await plane.admin.request(`${path}/${item.metadata.name}/status`, {
          method: 'PUT',
          body,
        });
      }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

function decoded(item: object): RequestObject {
  const kind = { apiVersion: 'certificates.k8s.io/v1', kind: 'CertificateSigningRequest' };
  const request = decodeRequestObject({ ...kind, ...item });
  if (!request.ok) throw new Error(request.message);
  return request.object;
}
