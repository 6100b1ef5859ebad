/**
 * `helm test` with the image of the relay, a real kubelet with containerd, the real API server and Helm. The relay itself is a process of
 * this machine, whose network the pod shares: a machine of the tests has no pod network.
 */
import { execFile } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { images, type Image } from '../../../deploy/image/images.ts';
import { pinnedPackages } from '../../../deploy/image/debian.ts';
import { buildImages } from '../../../deploy/image/layout.ts';
import { startControlPlane, type ControlPlane } from '../../harness/kubernetes/control-plane.ts';
import { leftovers, requireKubelet, startMachine, type Machine } from '../../harness/kubernetes/kubelet.ts';
import { createObject } from '../../harness/kubernetes/objects.ts';
import { temporaryFolder } from '../../harness/processes/processes.ts';
import { installRelay, startDevServer, startRelay, type DevServer, type Relay } from '../../harness/stack/stack.ts';
import { eventually } from '../../harness/stack/requests.ts';
import { chart, example, helm, objects, podTemplate, release, template } from '../control-plane/chart/helm.ts';
import { isReady } from '../node/kubelet/node.ts';
import { availablePackages, noDebian } from './containers.ts';

const { skip } = await requireKubelet('helm', 'containerd');

const file = example('instance-role.yaml');
const [place, nodeName] = ['hosted', 'chart-node'];
/** Not the name of the relay that is installed without Helm. */
const name = 'on-a-node';

/** In place of Kubernetes' pause image, which is in a registry: a process that waits. */
const sandbox: Image = {
  ...images.relay,
  name: 'pause',
  async build(out) {
    const script = await images.relay.build(out);
    writeFileSync(script.path, 'setInterval(() => {}, 60_000);');
    return script;
  },
};

describe.skipIf(skip || noDebian())('helm test on a node', () => {
  const folder = temporaryFolder('chart-on-a-node');
  let plane: ControlPlane;
  let signer: DevServer;
  let relay: Relay;
  let machine: Machine;
  beforeAll(async () => {
    const layout = join(folder.path, 'images');
    mkdirSync(layout);
    await buildImages(layout, {
      images: [images.relay, sandbox],
      architectures: [process.arch === 'arm64' ? 'arm64' : 'x64'],
      packages: pinnedPackages(availablePackages(folder.path)),
    });
    const archive = join(folder.path, 'images.tar');
    await promisify(execFile)('tar', ['-cf', archive, '-C', layout, '.']);
    machine = await startMachine('registry.example.com/countersign:pause');
    await machine.ctr(
      'images',
      'import',
      '--snapshotter',
      'native',
      '--base-name',
      'registry.example.com/countersign',
      archive,
    );
    const { image } = podTemplate(objects(await template(file))).spec.containers[0]!;
    await machine.ctr('images', 'tag', `registry.example.com/countersign:${images.relay.name}`, image);
    signer = await startDevServer();
    plane = await startControlPlane();
    const identity = await installRelay(plane);
    relay = await startRelay({ kubeconfig: identity.kubeconfig(), endpoint: signer.url });
  }, 600_000);
  afterAll(async () => {
    // A container outlives its containerd.
    await plane?.kubectl(['delete', 'pod', '--all', '-n', place, '--timeout=60s']).catch(() => undefined);
    await machine?.stop();
    await relay?.stop();
    await plane?.stop();
    await signer?.stop();
    folder.remove();
  });

  test('the kubelet runs the pod of the chart, which finds the relay ready', async () => {
    const labels = { 'pod-security.kubernetes.io/enforce': 'privileged' };
    await createObject(plane.admin, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: place, labels } });
    const kubelet = await machine.startKubelet({ plane, nodeName, kubeconfig: plane.adminKubeconfig });
    await eventually(() => isReady(plane, kubelet, nodeName), `${nodeName} is Ready`, 120);
    const run = (...args: readonly string[]) => helm(args, { KUBECONFIG: plane.adminKubeconfig });
    const port = new URL(relay.url).port;
    const options = ['--values', file, '--set', `metrics.port=${port}`, '--set', 'namespace.create=false'];
    await run('install', name, chart, '--namespace', place, ...options);
    const testing = run('test', name, '--namespace', place);
    testing.catch(() => undefined); // read below
    // In place of the scheduler: the only node.
    const path = `/api/v1/namespaces/${place}/pods/${name}-${release}-test`;
    await eventually(async () => (await plane.admin.request(path)).status === 200, 'Helm made the pod', 120);
    const binding = {
      apiVersion: 'v1',
      kind: 'Binding',
      metadata: { name: `${name}-${release}-test` },
      target: { kind: 'Node', name: nodeName },
    };
    await plane.admin.expectOk(`${path}/binding`, { method: 'POST', body: binding });
    const said = await testing.catch(async (error: unknown) => {
      throw new Error(`${(await plane.admin.request(path)).text}\n${kubelet.process.logTail(20)}`, { cause: error });
    });
    expect(said).toMatch(/Phase: +Succeeded/);
    // Helm deleted the pod, and the kubelet ended its containers.
    await eventually(async () => (await plane.admin.request(path)).status === 404, 'the pod is gone', 120);
    await machine.stop();
    expect(leftovers(machine)).toEqual([]);
  }, 300_000);
});
