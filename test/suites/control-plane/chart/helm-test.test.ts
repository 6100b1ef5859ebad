/**
 * `helm test` on the real API server: Helm makes the objects and waits for the pod. Instead of a kubelet, the test runs the pod's
 * container as image.test.ts does (the image's content in a read-only root) and writes the end of it into the pod's status.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildRelay, bundleName } from '../../../../deploy/image/build.ts';
import { entrypointOf, images } from '../../../../deploy/image/images.ts';
import { startControlPlane, type ControlPlane } from '../../../harness/kubernetes/control-plane.ts';
import { createObject } from '../../../harness/kubernetes/objects.ts';
import { temporaryFolder } from '../../../harness/processes/processes.ts';
import { installRelay, startDevServer, startRelay, type DevServer, type Relay } from '../../../harness/stack/stack.ts';
import { requireTools } from '../../../tools/tools.ts';
import { container, namespacesMissing } from './container.ts';
import { chart, example, helm, objects, podTemplate, release, template } from './helm.ts';
import type { PodSpec, Rendered } from './helm.ts';

const { skip } = await requireTools('etcd', 'kube-apiserver', 'kubectl', 'helm');
const entrypoint = entrypointOf(images.relay, bundleName);

const inPodNetwork = {
  name: 'in the pod network',
  file: 'plain-manifests.yaml',
  place: 'networked',
  level: 'restricted',
};
const inNodeNetwork = {
  name: 'in the node’s network',
  file: 'instance-role.yaml',
  place: 'hosted',
  level: 'privileged',
};

describe.skipIf(skip || namespacesMissing())('helm test', () => {
  const folder = temporaryFolder('helm-test');
  let plane: ControlPlane;
  let signer: DevServer;
  let relay: Relay;
  let port: number;
  beforeAll(async () => {
    await buildRelay(join(folder.path, 'out'));
    signer = await startDevServer();
    plane = await startControlPlane();
    const identity = await installRelay(plane);
    relay = await startRelay({ kubeconfig: identity.kubeconfig(), endpoint: signer.url });
    port = Number(new URL(relay.url).port);
  });
  afterAll(async () => {
    await relay?.stop();
    await plane?.stop();
    await signer?.stop();
    folder.remove();
  });

  /** The releases differ in name: the relay's ClusterRole, for example, is of the whole cluster. */
  async function installed({ file, place, level }: typeof inPodNetwork): Promise<string> {
    const labels = { 'pod-security.kubernetes.io/enforce': level };
    await createObject(plane.admin, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: place, labels } });
    const options = ['--values', example(file), '--set', `metrics.port=${port}`, '--set', 'namespace.create=false'];
    await run('install', place, chart, '--namespace', place, ...options);
    return place;
  }
  const run = (...args: readonly string[]) => helm(args, { KUBECONFIG: plane.adminKubeconfig });
  const podPath = (place: string) => `/api/v1/namespaces/${place}/pods/${place}-${release}-test`;

  interface TestPod {
    readonly spec: PodSpec;
    readonly status: { readonly phase: string };
  }
  async function podOf(place: string): Promise<TestPod> {
    let pod: TestPod | undefined;
    await expect
      .poll(
        async () => {
          const { status, json } = await plane.admin.request(podPath(place));
          pod = status === 200 ? (json() as TestPod) : undefined;
          return pod?.status.phase;
        },
        { timeout: 120_000 },
      )
      .toBe('Pending');
    return pod!;
  }

  async function end(place: string, phase: 'Succeeded' | 'Failed'): Promise<void> {
    const body = { ...(await plane.admin.expectOk<object>(podPath(place))), status: { phase } };
    await plane.admin.expectOk(`${podPath(place)}/status`, { method: 'PUT', body });
  }

  const leftOf = async (place: string): Promise<string[]> => {
    const label = 'app.kubernetes.io/component=test';
    const text = await plane.kubectl(['get', 'pod,service,networkpolicy', '-n', place, '-l', label, '-o', 'name']);
    return text.split('\n').filter((line) => line !== '');
  };

  test.each([inPodNetwork, inNodeNetwork])('passes $name, and leaves nothing behind', async (how) => {
    const place = await installed(how);
    const testing = run('test', place, '--namespace', place);
    testing.catch(() => undefined); // read below
    const { spec } = await podOf(place);
    // Nothing but the relay's image, and no rights.
    expect(spec).toMatchObject({ automountServiceAccountToken: false });
    expect(spec).not.toHaveProperty('serviceAccountName');
    expect(spec['volumes']).toBeUndefined();
    const [{ args, ...pod }] = spec.containers as [PodSpec['containers'][0]];
    const own = podTemplate(objects(await template(example(how.file)))).spec.containers[0]!;
    expect([pod.image, pod.securityContext]).toEqual([own.image, own.securityContext]);
    expect(pod).not.toHaveProperty('command');

    // What a kubelet and the cluster's DNS do: the container, and the addresses of the replicas.
    const image = container({
      root: join(folder.path, place),
      files: { [entrypoint.at(-1)!]: join(folder.path, 'out', bundleName) },
      texts: { '/etc/hosts': `127.0.0.1 localhost ${place}-${release}-test.${place}.svc\n` },
    });
    const child = spawn(image.command, image.args(...entrypoint, ...args), {
      env: { PATH: process.env['PATH'], HOME: '/nonexistent' },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let said = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (said += text));
    const [code] = (await once(child, 'close')) as [number | null];
    expect(said).toBe(`127.0.0.1:${port}: healthy and ready\n`);
    expect(code).toBe(0);
    await end(place, 'Succeeded');
    expect(await testing).toMatch(/Phase: +Succeeded/);
    expect(await leftOf(place)).toEqual([]);
  });

  test('fails with the pod, which stays for its log until the next run', async () => {
    const place = await installed({ ...inPodNetwork, place: 'failing' });
    const testing = run('test', place, '--namespace', place).catch((error: unknown) => error as Error);
    await podOf(place);
    await end(place, 'Failed');
    expect(await testing).toBeInstanceOf(Error);
    expect(await leftOf(place)).toEqual([`pod/${place}-${release}-test`]);
    const again = run('test', place, '--namespace', place);
    again.catch(() => undefined); // read below
    await podOf(place);
    await end(place, 'Succeeded');
    expect(await again).toMatch(/Phase: +Succeeded/);
    expect(await leftOf(place)).toEqual([]);
  });

  test('is not part of the release: the chart’s other objects are the same with and without it', async () => {
    const file = example('plain-manifests.yaml');
    const [without, whole] = [objects(await template(file)), objects(await template(file, { tests: true }))];
    const own = ({ metadata }: Rendered): boolean => metadata.annotations?.['helm.sh/hook'] === 'test';
    expect(whole.filter((each) => !own(each))).toEqual(without);
    const hooks = whole.filter(own);
    expect(hooks.map(({ kind }) => kind).toSorted()).toEqual(['NetworkPolicy', 'NetworkPolicy', 'Pod', 'Service']);
    // No object that selects relays selects the pod.
    const { labels = {} } = hooks.find(({ kind }) => kind === 'Pod')!.metadata;
    for (const { kind, spec } of without) {
      const { selector, podSelector = selector } = (spec ?? {}) as Record<
        string,
        { matchLabels: Record<string, string> }
      >;
      if (podSelector?.matchLabels === undefined) continue;
      expect(
        Object.entries(podSelector.matchLabels).every(([key, value]) => labels[key] === value),
        kind,
      ).toBe(false);
    }
  });
});
