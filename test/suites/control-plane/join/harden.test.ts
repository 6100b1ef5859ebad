import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { explain } from '../../../../cli/output/explanation.ts';
import { defaultCluster } from '../../../../core/configuration/parse.ts';
import { decodeRequestObject } from '../../../../core/kubernetes/certificate-signing-request.ts';
import type { RequestObject } from '../../../../core/kubernetes/certificate-signing-request.ts';
import { startControlPlane, type ControlPlane } from '../../../harness/kubernetes/control-plane.ts';
import { startKubeControllerManager } from '../../../harness/kubernetes/controller-manager.ts';
import {
  clusterRole,
  clusterRoleBinding,
  createObject,
  deleteObject,
  subject,
  type AnyObject,
} from '../../../harness/kubernetes/objects.ts';
import { untilGranted, untilTaken } from '../../../harness/kubernetes/rights.ts';
import { onlyDeep } from '../../../harness/determinism/tier.ts';
import { makeRequest } from '../../../harness/x509/requests.ts';
import { createTestAuthority } from '../../../harness/x509/test-certificates.ts';
import { readRequests } from '../../../harness/stack/requests.ts';
import { requireTools } from '../../../tools/tools.ts';
import { countersign } from './command-line.ts';
import { runKubeadmBootstrap } from './kubeadm-cluster.ts';

const { skip } = await requireTools('etcd', 'kube-apiserver', 'kube-controller-manager', 'kubeadm', 'kubectl');

const namespace = 'countersign-system';
const kubeadms = ['kubeadm:node-autoapprove-bootstrap', 'kubeadm:node-autoapprove-certificate-rotation'];

interface View {
  readonly open: readonly string[];
  readonly removed?: readonly string[];
  readonly bindings: readonly { readonly name: string; readonly subjects: readonly string[] }[];
  readonly notSeen: readonly string[];
  readonly server: string;
  readonly context: string;
  readonly user: string;
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

  const create = (object: AnyObject) => createObject(plane.admin, object);
  const remove = (object: AnyObject) => deleteObject(plane.admin, object);
  const harden = (...argv: string[]) => countersign(plane.adminKubeconfig, 'cluster', 'harden', ...argv);
  const view = async (...argv: string[]) => {
    const { code, out } = await harden('-o', 'json', ...argv);
    return { code, ...(JSON.parse(out) as View) };
  };
  const bindings = async () => {
    const { items } = await plane.admin.expectOk<{ items: { metadata: { name: string } }[] }>(
      '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings',
    );
    return items.map(({ metadata }) => metadata.name);
  };

  /** A mirror pod as the kubelet makes one of kubeadm's static pod. */
  const controllerManagerPod = (...args: string[]): AnyObject => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'kube-controller-manager-cp-1',
      namespace: 'kube-system',
      labels: { component: 'kube-controller-manager' },
    },
    spec: { containers: [{ name: 'c', image: 'i', command: ['kube-controller-manager', ...args] }] },
  });
  const controllerManager = (...args: string[]) => create(controllerManagerPod(...args));
  const noControllerManager = () => remove(controllerManagerPod());
  const relayLabels = {
    'app.kubernetes.io/part-of': 'countersign',
    'app.kubernetes.io/component': 'watch-relay',
  };
  const relayIn = (place: string): AnyObject => ({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'relay', namespace: place, labels: relayLabels },
    spec: {
      selector: { matchLabels: relayLabels },
      template: {
        metadata: { labels: relayLabels },
        spec: { serviceAccountName: 'relay', containers: [{ name: 'c', image: 'i' }] },
      },
    },
  });
  /** As the deployment controller writes it. */
  const relayReady = async (readyReplicas: number, available = true, place = namespace) =>
    plane.admin.expectOk(`/apis/apps/v1/namespaces/${place}/deployments/relay/status`, {
      method: 'PATCH',
      headers: { 'content-type': 'application/merge-patch+json' },
      body: JSON.stringify({
        status: {
          observedGeneration: 1,
          replicas: 1,
          readyReplicas,
          availableReplicas: readyReplicas,
          conditions: [{ type: 'Available', status: available ? 'True' : 'False' }],
        },
      }),
    });
  const relayUser = { user: `system:serviceaccount:${namespace}:relay` };
  let versions = 0;
  /** Resolves when the authorizer judges by these rules: it knows the right that only this version of the role has. */
  const relayMay = async (rules: readonly object[]) => {
    const version = { verb: 'get', group: 'test.example.com', resource: `version-${++versions}` };
    await remove(clusterRole('relay', []));
    const last = { apiGroups: [version.group], resources: [version.resource], verbs: [version.verb] };
    await create(clusterRole('relay', [...rules, last]));
    await untilGranted(plane, relayUser, version);
  };
  const rule = (resources: string, ...verbs: string[]) => ({
    apiGroups: ['certificates.k8s.io'],
    resources: [resources],
    verbs,
    ...(resources === 'signers' ? { resourceNames: ['kubernetes.io/kube-apiserver-client-kubelet'] } : {}),
  });
  const requestRules = [
    rule('certificatesigningrequests', 'get', 'list', 'watch'),
    rule('certificatesigningrequests/approval', 'update'),
    rule('certificatesigningrequests/status', 'update'),
  ];
  /** What --yes printed, and whether every binding is still there. */
  const refusal = async (...argv: string[]) => {
    const before = await bindings();
    const { code, err } = await harden('--yes', ...argv);
    const after = await bindings();
    const all = kubeadms.every((name) => after.includes(name));
    return { code, err, kept: all && after.join() === before.join() && err.includes('nothing was changed') };
  };
  const because = (words: string, code = 1) => ({ code, err: expect.stringMatching(words) as unknown, kept: true });

  test('shows what kubeadm left open, changes nothing, and lists what it did not see', async () => {
    const before = await bindings();
    const shown = await harden();
    expect(shown.code).toBe(0);
    for (const name of kubeadms) expect(shown.out).toContain(`✗ ClusterRoleBinding ${name}`);
    expect(shown.out).toContain('a client with a bootstrap token can become any node');
    expect(shown.out).toMatch(/^csrsigning +not seen/m);
    expect(shown.out).toMatch(/^relay +none found/m);
    expect(shown.out).toContain(`--yes removes: ${kubeadms.join(', ')}`);
    expect(await bindings()).toEqual(before);
  });

  test('--check ends with 1 while there is something', async () => {
    expect(await view('--check')).toMatchObject({ code: 1, bindings: kubeadms.map((name) => ({ name })) });
  });

  test('finding 19: names server, context and user before anything else', async () => {
    const { err } = await harden();
    expect(err).toMatch(/^countersign: server https:\/\/127\.0\.0\.1:\d+, context [^ ,]+, user [^ ,]+\n/);
    expect(await view()).toMatchObject({ server: plane.url, context: expect.any(String) as unknown });
  });

  test('finding 19: removes nothing while no relay is there, and none is Ready and Available', async () => {
    expect(await refusal()).toEqual(because('no relay was found by the labels of the chart'));
    await create(relayIn(namespace));
    expect(await refusal()).toEqual(because('it is not Ready'));
    await create(clusterRoleBinding('relay', 'relay', { kind: 'ServiceAccount', name: 'relay', namespace }));
    await relayMay([...requestRules, rule('signers', 'approve', 'sign')]);
    expect(await refusal()).toEqual(because('it is not Ready'));
    await relayReady(1, false);
    expect(await refusal()).toEqual(because('it is not Available'));
  });

  test('finding 19: removes nothing while the relay lacks a right', async () => {
    await relayReady(1);
    expect((await harden()).out).toMatch(/^relay .*: may approve and sign$/m);
    for (const [rules, missing] of [
      [[...requestRules, rule('signers', 'sign')], 'approve signers kubernetes.io/kube-apiserver-client-kubelet'],
      [[...requestRules, rule('signers', 'approve')], 'sign signers kubernetes.io/kube-apiserver-client-kubelet'],
      ...requestRules.map((without, index) => [
        [...requestRules.filter((each) => each !== without), rule('signers', 'approve', 'sign')],
        [
          'watch certificatesigningrequests',
          'certificatesigningrequests/approval',
          'certificatesigningrequests/status',
        ][index],
      ]),
    ] as [object[], string][]) {
      await relayMay(rules);
      expect((await view()).relays).toMatchObject([{ approves: false }]);
      expect(await refusal()).toEqual(because(missing));
    }
  });

  test('finding 19: a Deployment with the labels in another namespace proves nothing', async () => {
    await remove(relayIn(namespace));
    await relayMay([...requestRules, rule('signers', 'approve', 'sign')]);
    await create(relayIn('default'));
    await relayReady(1, true, 'default');
    expect(await refusal()).toEqual(because('system:serviceaccount:default:relay.*may NOT .*approve signers'));
    await remove(relayIn('default'));
    await create(relayIn(namespace));
    await relayReady(1);
    expect((await view()).relays).toMatchObject([{ name: 'relay', ready: 1, available: true, approves: true }]);
  });

  test('finding 19: the relay must be able to approve for the signers of the nodes', async () => {
    expect(await refusal('--signer-name', 'kubernetes.io/kube-apiserver-client-kubelet,k8s.example.com/node')).toEqual(
      because('may NOT approve signers k8s.example.com/node'),
    );
  });

  test('finding 19: removes nothing where it cannot see what the relay may do', async () => {
    const verbs = ['get', 'list', 'delete'];
    const binding = clusterRoleBinding('blind', 'blind', subject('User', 'blind'));
    await create(
      clusterRole('blind', [
        { apiGroups: ['rbac.authorization.k8s.io'], resources: ['clusterrolebindings'], verbs },
        { apiGroups: ['apps'], resources: ['deployments'], verbs },
        { apiGroups: [''], resources: ['pods', 'configmaps'], verbs },
      ]),
    );
    await create(binding);
    await untilGranted(plane, { user: 'blind' }, { verb: 'list', group: '', resource: 'pods' });
    const kubeconfig = await plane.kubeconfigFor({ user: 'blind' });
    const before = await bindings();
    const refused = await countersign(kubeconfig, 'cluster', 'harden', '--yes');
    expect(refused).toMatchObject({ code: 5, err: expect.stringContaining('its rights were not seen') as unknown });
    expect(refused.err).toContain('user blind');
    expect(await bindings()).toEqual(before);
    await remove(binding);
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

  test('names what kubeadm upgrade would switch on again', async () => {
    const configured = async (controllers: string) => {
      const controllerManager = { extraArgs: [{ name: 'controllers', value: controllers }] };
      const data = { ClusterConfiguration: JSON.stringify({ kind: 'ClusterConfiguration', controllerManager }) };
      const object: AnyObject = {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 'kubeadm-config', namespace: 'kube-system' },
        data,
      };
      await remove(object);
      await create(object);
      return (await view()).controllerManager.afterUpgrade.state;
    };
    expect((await view()).controllerManager.afterUpgrade.state).toBe('not seen');
    expect(await configured('*,bootstrapsigner,tokencleaner')).toBe('on');
    expect(await configured('*,bootstrapsigner,tokencleaner,-csrsigning')).toBe('off');
  });

  test('--yes removes them, whatever they are called, and finds them again after kubeadm’s next run', async () => {
    const selfnodeclient = 'system:certificates.k8s.io:certificatesigningrequests:selfnodeclient';
    await create(
      clusterRoleBinding('auto-approve-renewals-for-nodes', selfnodeclient, subject('Group', 'system:nodes')),
    );
    await controllerManager('--controllers=*,-csrsigning');
    const others = (await bindings()).filter((name) => !name.includes('autoapprove') && !name.includes('auto-approve'));
    const done = await harden('--yes');
    expect(done.code).toBe(0);
    expect(done.out).toContain('kubeadm upgrade creates these bindings again');
    expect(await bindings()).toEqual(others);
    expect(await harden('--check')).toMatchObject({
      code: 0,
      out: expect.stringContaining('Nothing that bypasses attestation was found') as unknown,
    });
    // Again: nothing to do, and no complaint.
    expect(await view('--yes')).toMatchObject({ code: 0, removed: [], open: [] });

    await runKubeadmBootstrap(plane);
    expect(await view('--check')).toMatchObject({ code: 1, bindings: kubeadms.map((name) => ({ name })) });
    expect(await view('--yes')).toMatchObject({ code: 0, removed: kubeadms });
    await noControllerManager();
  });

  test('--check is no pass where it could not see: 5, and says what', async () => {
    const blind = await harden('--check');
    expect(blind).toMatchObject({
      code: 5,
      out: expect.stringContaining('Not seen, so it may be open or closed:\n  ? csrsigning was not seen') as unknown,
      err: expect.stringContaining(
        'the check does not pass because not everything could be seen: csrsigning was not seen',
      ) as unknown,
    });
    expect(await view('--check')).toMatchObject({
      code: 5,
      open: [],
      notSeen: [expect.stringContaining('csrsigning was not seen')],
    });
    // Without --check it only shows.
    expect((await view()).code).toBe(0);
  });

  test('--check finds csrsigning, and rights that come by a role of another name', async () => {
    await controllerManager('--controllers=*', '--cluster-signing-cert-file=/etc/kubernetes/pki/ca.crt');
    expect(await view('--check')).toMatchObject({ code: 1, open: [expect.stringContaining('csrsigning is on')] });
    await noControllerManager();
    expect((await view('--check')).code).toBe(5);

    const right = {
      verb: 'create',
      group: 'certificates.k8s.io',
      resource: 'certificatesigningrequests',
      subresource: 'nodeclient',
    };
    const bootstrapper = { user: 'system:bootstrap:aaaaaa', groups: ['system:bootstrappers'] };
    const binding = clusterRoleBinding('mine', 'mine', subject('Group', 'system:bootstrappers'));
    await create(clusterRole('mine', [rule('certificatesigningrequests/nodeclient', 'create')]));
    await create(binding);
    await untilGranted(plane, bootstrapper, right);
    expect(await view('--check')).toMatchObject({
      code: 1,
      open: [expect.stringContaining('system:bootstrap:aaaaaa may create certificatesigningrequests/nodeclient')],
    });
    await remove(binding);
    await untilTaken(plane, bootstrapper, right);
  });

  describe('--probe', () => {
    const probe = async () => (await view('--probe')).controllerManager.csrsigning;
    const leftOver = () => readRequests(plane);

    // The probe waits ten seconds for a signer.
    test.each(onlyDeep)('sees that no signer answers', async () => {
      const { controllerManager: seen, ...rest } = await view('--probe', '--check');
      expect(seen.csrsigning).toEqual({
        state: 'off',
        seen: [expect.any(String), expect.stringMatching(/^no signer answered .* in 10 s$/)],
      });
      // The controllers were not shown; the probe found out: a pass.
      expect(rest).toMatchObject({ code: 0, open: [], notSeen: [] });
      expect(await leftOver()).toEqual([]);
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
            'a signer other than the relay answered an approved request for kubernetes.io/kube-apiserver-client-kubelet: subject organization is not system:nodes',
          ],
        });
        expect(await view('--probe', '--check')).toMatchObject({
          code: 1,
          open: [expect.stringContaining('csrsigning is on')],
        });
      } finally {
        await signer.stop();
      }
      expect(await leftOver()).toEqual([]);
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

  describe('countersign csr approve', () => {
    const signerName = 'example.com/web';
    const csr = async (...argv: string[]) =>
      countersign(await plane.kubeconfigFor({ user: 'approver' }), 'csr', ...argv);
    const requests = { apiGroups: ['certificates.k8s.io'], resources: ['certificatesigningrequests'] };
    const approval = { ...requests, resources: ['certificatesigningrequests/approval'] };
    const signer = { ...requests, resources: ['signers'], resourceNames: [signerName] };

    test('decides with the rights of its caller, and says which one is missing', async () => {
      const request = makeRequest({ subject: { CN: 'web' } }).bytes.toString('base64');
      await create({
        apiVersion: 'certificates.k8s.io/v1',
        kind: 'CertificateSigningRequest',
        metadata: { name: 'web-1' },
        spec: { request, signerName, usages: ['server auth'] },
      });
      await create(
        clusterRole('sees-requests', [
          { ...requests, verbs: ['get', 'list'] },
          { ...approval, verbs: ['update'] },
        ]),
      );
      await create(clusterRoleBinding('sees-requests', 'sees-requests', subject('User', 'approver')));
      const right = { verb: 'list', group: 'certificates.k8s.io', resource: 'certificatesigningrequests' };
      await untilGranted(plane, { user: 'approver' }, right);
      const refused = await csr('approve', 'web-1', '--reason', 'x');
      expect(refused).toMatchObject({ code: 3, out: '' });
      expect(refused.err).toContain(`approve on signers ${signerName}`);

      await create(clusterRole('approves-web', [{ ...signer, verbs: ['approve'] }]));
      await create(clusterRoleBinding('approves-web', 'approves-web', subject('User', 'approver')));
      await expect.poll(async () => (await csr('approve', 'web-1', '--reason', 'ticket 4711')).code).toBe(0);
      const shown = JSON.parse((await csr('show', 'web-1', '-o', 'json')).out) as object;
      expect(shown).toMatchObject({ state: 'approved', reason: 'OperatorApproved', message: 'ticket 4711' });
      expect((await csr('list', '--state', 'approved', '--signer-name', signerName)).out).toMatch(/^web-1 /m);
      expect((await csr('deny', 'web-1', '--reason', 'x')).code).toBe(1);
    });
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
        const cluster = defaultCluster('c', { maxTtlSeconds: 86_400 });
        const none = { certificate: '', caIsConfigured: false };
        const { reason, message } = explain(decoded(item), cluster, Date.now(), none);
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
  if (!request.ok) throw new Error(request.problem.message);
  return request.value;
}
