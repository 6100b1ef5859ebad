import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connectKubernetes } from '../../../../adapters/kubernetes/api.ts';
import type { KubernetesApi } from '../../../../adapters/kubernetes/api.ts';
import { defaultSignerNames } from '../../../../lambdas/watch-relay/settings/settings.ts';
import { systemClock } from '../../../../lambdas/watch-relay/runtime/system-clock.ts';
import { keepTrust } from '../../../../lambdas/watch-relay/trust/keep-trust.ts';
import type { KeptTrust } from '../../../../lambdas/watch-relay/trust/kept-objects.ts';
import type { ApiClient } from '../../../harness/kubernetes/api-client.ts';
import { startControlPlane, type ControlPlane } from '../../../harness/kubernetes/control-plane.ts';
import { eventually } from '../../../harness/stack/requests.ts';
import { installRelay, startDevServer, startRelay } from '../../../harness/stack/stack.ts';
import type { DevServer, Relay, RelayIdentity } from '../../../harness/stack/stack.ts';
import { createTestAuthority } from '../../../harness/x509/test-certificates.ts';
import { requireTools } from '../../../tools/tools.ts';
import { example, template } from '../chart/helm.ts';

const { skip } = await requireTools('etcd', 'kube-apiserver', 'kubectl', 'helm');

const signer = 'kubernetes.io/kubelet-serving';
const configMapPath = '/api/v1/namespaces/default/configmaps';
const bundlesPath = '/apis/certificates.k8s.io/v1beta1/clustertrustbundles';
const bundleName = 'kubernetes.io:kubelet-serving:countersign';
const kept: KeptTrust = {
  configMaps: [{ signerName: signer, namespace: 'default', name: 'kubelet-serving-ca' }],
  clusterTrustBundleSuffix: 'countersign',
};
const mark = { 'countersign.dev/trust-bundle-of': signer };

interface ConfigMap {
  readonly metadata: { readonly annotations?: Record<string, string> };
  readonly data: Record<string, string>;
}
interface Bundle {
  readonly spec: { readonly signerName: string; readonly trustBundle: string };
}

describe.skipIf(skip)('CA certificates in a real API server', () => {
  let plane: ControlPlane;
  let identity: RelayIdentity;
  /** As the relay, with the rights of examples/trust-bundles.yaml. */
  let asRelay: ApiClient;
  let relayApi: KubernetesApi;
  const [first, second] = ['first', 'second'].map(async (name) => {
    const { certificatePem } = await createTestAuthority(name);
    return `${certificatePem.trim().replaceAll('\r', '')}\n`;
  }) as [Promise<string>, Promise<string>];

  beforeAll(async () => {
    plane = await startControlPlane({
      apiServerArgs: [
        '--feature-gates=ClusterTrustBundle=true',
        '--runtime-config=certificates.k8s.io/v1beta1/clustertrustbundles=true',
      ],
    });
    const manifest = join(plane.dir, 'rbac.yaml');
    const show = ['namespace.yaml', 'serviceaccount.yaml', 'rbac.yaml'];
    writeFileSync(manifest, await template(example('trust-bundles.yaml'), { show }));
    identity = await installRelay(plane, manifest);
    asRelay = await plane.client({ token: await tokenIn(identity.kubeconfig()) });
    relayApi = connectKubernetes({ kind: 'kubeconfig', path: identity.kubeconfig() });
  });
  afterAll(async () => {
    asRelay?.close();
    relayApi?.close();
    await plane?.stop();
  });

  async function tokenIn(kubeconfig: string): Promise<string> {
    const text = await plane.kubectl(['config', 'view', '--raw', '-o', 'json'], { kubeconfig });
    return (JSON.parse(text) as { users: { user: { token: string } }[] }).users[0]!.user.token;
  }

  /** The relay's loop with a minute of a second, until the returned function is called. */
  function keeping(answer: () => ReadonlyMap<string, string>) {
    const stop = new AbortController();
    const lines: { level: string; message: string; detail?: string; name?: string }[] = [];
    const counted: string[] = [];
    let alarms = 0;
    const say = (level: string) => (fields: object, message: string) => void lines.push({ level, message, ...fields });
    const running = keepTrust(
      kept,
      [signer],
      {
        source: { read: async () => answer() },
        objects: relayApi.trust,
        clock: { ...systemClock, after: (milliseconds, run) => systemClock.after(milliseconds / 200, run) },
        random: Math.random,
        log: { debug: say('debug'), info: say('info'), warn: say('warn'), error: say('error') },
        metrics: {
          trust: (subject, result) => void counted.push(`${subject} ${result}`),
          trustAlarmed: () => void (alarms += 1),
        },
      },
      stop.signal,
    );
    return {
      lines,
      counted,
      alarms: () => alarms,
      stop: async () => {
        stop.abort();
        await running;
      },
    };
  }
  const configMap = async (): Promise<string | undefined> => {
    const { status, json } = await plane.admin.request(`${configMapPath}/kubelet-serving-ca`);
    return status === 200 ? (json() as ConfigMap).data['ca.crt'] : undefined;
  };
  const bundle = async (): Promise<string | undefined> => {
    const { status, json } = await plane.admin.request(`${bundlesPath}/${bundleName}`);
    return status === 200 ? (json() as Bundle).spec.trustBundle : undefined;
  };
  const bothHold = (pem: string, what: string) =>
    eventually(async () => (await configMap()) === pem && (await bundle()) === pem, what);

  test('the chart gives exactly these rights, and none without its values', async () => {
    const account = { user: identity.user };
    const can = async (user: string, attributes: object): Promise<boolean> => {
      const review = await plane.admin.expectOk<{ status: { allowed: boolean } }>(
        '/apis/authorization.k8s.io/v1/subjectaccessreviews',
        {
          method: 'POST',
          body: {
            apiVersion: 'authorization.k8s.io/v1',
            kind: 'SubjectAccessReview',
            spec: { user, resourceAttributes: attributes },
          },
        },
      );
      return review.status.allowed;
    };
    const group = 'certificates.k8s.io';
    const map = { group: '', resource: 'configmaps', namespace: 'default' };
    const rights: readonly [boolean, object][] = [
      [true, { ...map, verb: 'create' }],
      [true, { ...map, verb: 'update', name: 'kubelet-serving-ca' }],
      [true, { group, resource: 'clustertrustbundles', verb: 'update', name: bundleName }],
      [true, { group, resource: 'signers', verb: 'attest', name: signer }],
      [false, { ...map, verb: 'update', name: 'kube-root-ca.crt' }],
      [false, { ...map, verb: 'delete', name: 'kubelet-serving-ca' }],
      [false, { ...map, verb: 'get', name: 'kubelet-serving-ca', namespace: 'kube-system' }],
      [false, { ...map, verb: 'create', namespace: 'kube-system' }],
      [false, { group, resource: 'clustertrustbundles', verb: 'update', name: 'kubernetes.io:kubelet-serving:other' }],
      [false, { group, resource: 'clustertrustbundles', verb: 'delete', name: bundleName }],
      [false, { group, resource: 'signers', verb: 'attest', name: 'kubernetes.io/kube-apiserver-serving' }],
    ];
    for (const [allowed, attributes] of rights)
      expect([attributes, await can(account.user, attributes)]).toEqual([attributes, allowed]);

    const plain = await template(example('plain-manifests.yaml'));
    expect(plain).not.toMatch(/clustertrustbundles|configmaps|attest\b|--trust-config-map|--cluster-trust-bundles/);
  });

  test('both objects are written, put back when edited or deleted, and follow the answer', async () => {
    let pem = await first;
    const running = keeping(() => new Map([[signer, pem]]));
    try {
      await bothHold(pem, 'made');
      const { metadata } = await plane.admin.expectOk<ConfigMap>(`${configMapPath}/kubelet-serving-ca`);
      expect(metadata.annotations).toEqual(mark);

      const patch = (path: string, change: object) =>
        plane.admin.expectOk(path, {
          method: 'PATCH',
          headers: { 'content-type': 'application/merge-patch+json' },
          body: change,
        });
      await patch(`${configMapPath}/kubelet-serving-ca`, { data: { 'ca.crt': 'edited', 'more.crt': pem } });
      await patch(`${bundlesPath}/${bundleName}`, { spec: { trustBundle: await second } });
      await bothHold(pem, 'put back after an edit');
      const { data } = await plane.admin.expectOk<ConfigMap>(`${configMapPath}/kubelet-serving-ca`);
      expect(Object.keys(data)).toEqual(['ca.crt']);

      await plane.admin.expectOk(`${configMapPath}/kubelet-serving-ca`, { method: 'DELETE' });
      await plane.admin.expectOk(`${bundlesPath}/${bundleName}`, { method: 'DELETE' });
      await bothHold(pem, 'made again');

      pem = (await first) + (await second);
      await bothHold(pem, 'a rotation: old and new');
      pem = await second;
      await bothHold(pem, 'the rotation ended');
      expect(running.lines.filter(({ level }) => level !== 'info')).toEqual([]);

      const revisions = async () =>
        Promise.all(
          [`${configMapPath}/kubelet-serving-ca`, `${bundlesPath}/${bundleName}`].map(
            async (path) =>
              (await plane.admin.expectOk<{ metadata: { resourceVersion: string } }>(path)).metadata.resourceVersion,
          ),
        );
      const before = await revisions();
      await pause(1_500);
      expect(await revisions()).toEqual(before);
    } finally {
      await running.stop();
    }
  });

  test('an answer without the signer, or no answer, changes nothing', async () => {
    const pem = await second;
    let rounds = 0;
    const running = keeping(() => {
      rounds += 1;
      if (rounds % 2 === 0) throw new Error('HTTP 503');
      return new Map();
    });
    try {
      await eventually(() => rounds > 6, 'some rounds');
    } finally {
      await running.stop();
    }
    expect([await configMap(), await bundle()]).toEqual([pem, pem]);
    expect(running.counted.filter((each) => each.endsWith('written'))).toEqual([]);
  });

  test('a ConfigMap of another owner under that name stays as it is', async () => {
    const path = `${configMapPath}/kubelet-serving-ca`;
    await plane.admin.expectOk(path, { method: 'DELETE' });
    const theirs = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'kubelet-serving-ca' }, data: { a: 'b' } };
    await plane.admin.expectOk(configMapPath, { method: 'POST', body: theirs });
    const pem = await second;
    const running = keeping(() => new Map([[signer, pem]]));
    try {
      await eventually(() => running.alarms() > 0, 'the operator is told');
      expect((await plane.admin.expectOk<ConfigMap>(path)).data).toEqual({ a: 'b' });
      await plane.kubectl(['annotate', 'configmap', 'kubelet-serving-ca', `countersign.dev/trust-bundle-of=${signer}`]);
      await bothHold(pem, 'taken over');
    } finally {
      await running.stop();
    }
  });

  test('without the right to attest the API server refuses, the relay says so, and goes on when it is given back', async () => {
    const role = await plane.admin.expectOk<{ rules: { verbs: string[] }[] }>(
      `/apis/rbac.authorization.k8s.io/v1/clusterroles/${identity.name}`,
    );
    const patch = (rules: object) =>
      plane.kubectl(['patch', 'clusterrole', identity.name, '--type=merge', '-p', JSON.stringify({ rules })]);
    await patch(role.rules.filter(({ verbs }) => !verbs.includes('attest')));
    await plane.admin.expectOk(`${bundlesPath}/${bundleName}`, { method: 'DELETE' });
    const pem = await second;
    const running = keeping(() => new Map([[signer, pem]]));
    try {
      await eventually(() => running.alarms() > 0, 'an alarm');
      const line = running.lines.find(({ level }) => level === 'error');
      expect(line).toMatchObject({ name: bundleName, detail: expect.stringMatching(/403.*attest/) as unknown });
      expect(await bundle()).toBeUndefined();
      await patch(role.rules);
      await bothHold(pem, 'written');
    } finally {
      await running.stop();
    }
  });

  test('the right to attest is for the relay’s signers only, and a bundle’s name must be that of its signer', async () => {
    const post = (name: string, signerName: string) =>
      asRelay.request(bundlesPath, {
        method: 'POST',
        body: {
          apiVersion: 'certificates.k8s.io/v1beta1',
          kind: 'ClusterTrustBundle',
          metadata: { name },
          spec: { signerName, trustBundle: pem },
        },
      });
    const pem = await first;
    const foreign = await post('k8s.example.com:web:mine', 'k8s.example.com/web');
    expect([foreign.status, foreign.text]).toEqual([403, expect.stringContaining('attest')]);
    const misnamed = await post('mine', signer);
    expect([misnamed.status, misnamed.text]).toEqual([422, expect.stringContaining('kubernetes.io:kubelet-serving:')]);
  });

  test('the leader asks the real endpoint and writes at once; another replica only after it', async () => {
    const dev: DevServer = await startDevServer();
    await plane.admin.request(`${configMapPath}/kubelet-serving-ca`, { method: 'DELETE' });
    const start = (): Promise<Relay> =>
      startRelay({
        kubeconfig: identity.kubeconfig(),
        endpoint: dev.url,
        args: [
          `--trust-config-map=${signer}=default/kubelet-serving-ca`,
          '--cluster-trust-bundles=countersign',
          '--leader-elect',
          '--lease-namespace',
          identity.namespace,
        ],
      });
    const relays: Relay[] = [];
    try {
      relays.push(await start());
      const ca = (await dev.caPem()).trim();
      await eventually(async () => (await configMap())?.trim() === ca, 'the ConfigMap');
      const names = async () =>
        (await plane.admin.expectOk<{ items: { metadata: { name: string } }[] }>(bundlesPath)).items.map(
          ({ metadata }) => metadata.name,
        );
      await eventually(async () => (await names()).length === defaultSignerNames.length, 'a bundle of each signer');
      expect(await names()).toEqual(
        defaultSignerNames.map((name) => `${name.replace('/', ':')}:countersign`).toSorted(),
      );
      const [leader] = relays;
      expect(await leader!.metric('trust_bundles_total', 'subject="ConfigMap"', 'result="written"')).toBe(1);
      expect(await leader!.metric('alarms_total', 'cause="TrustBundle"')).toBe(0);

      relays.push(await start());
      const [, standby] = relays;
      await plane.admin.expectOk(`${configMapPath}/kubelet-serving-ca`, { method: 'DELETE' });
      expect(await standby!.metric('leader')).toBe(0);
      expect(await standby!.metric('trust_bundles_total')).toBe(0);
      expect(await configMap()).toBeUndefined();
      await leader!.stop();
      await eventually(async () => (await configMap())?.trim() === ca, 'the next leader made it again');
      expect(await standby!.metric('trust_bundles_total', 'subject="ConfigMap"', 'result="written"')).toBe(1);
    } finally {
      for (const relay of relays) await relay.stop();
      await dev.stop();
    }
  });
});
