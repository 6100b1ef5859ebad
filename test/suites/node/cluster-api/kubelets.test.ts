/**
 * Real kubelets of machines of Cluster API, through the life of a machine: it waits for its Machine, joins, is retired, and its
 * successor joins under the same name. Another kubelet is of a MachinePool.
 */
import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { secondLookAfter } from '../../../../core/attestation/second-look.ts';
import { audience } from '../../../harness/attestation/attested-site.ts';
import {
  providerIdOf,
  startManagedSite,
  untilAnswered,
  type ManagedSite,
} from '../../../harness/cluster-api/managed-site.ts';
import type { MachineLife } from '../../../harness/cluster-api/machine-life.ts';
import { leftovers, requireKubelet, type Kubelet } from '../../../harness/kubernetes/kubelet.ts';
import { conditionOf, eventually, readRequests } from '../../../harness/stack/requests.ts';
import { firstToken, startKubeadmCluster, type KubeadmCluster } from '../../control-plane/join/kubeadm-cluster.ts';
import { launchNode, type JoiningNode } from '../kubelet/joining-node.ts';
import { isReady, proxiedHealth, requestsOf } from '../kubelet/node.ts';

const { skip } = await requireKubelet('kubeadm', 'kube-controller-manager', 'cluster-api');

describe.skipIf(skip)('a real kubelet of Cluster API', () => {
  let site: ManagedSite;
  let cluster: KubeadmCluster;
  const nodes: JoiningNode[] = [];
  let first: { readonly node: JoiningNode; readonly kubelet: Kubelet; readonly machine: MachineLife };

  beforeAll(async () => {
    site = await startManagedSite();
    cluster = await startKubeadmCluster(site.blue.stack.plane);
    await cluster.waitForSignature('abcdef');
  });
  afterAll(async () => {
    for (const node of nodes.splice(0)) await node.stop();
    await cluster?.stop();
    await site?.stop();
  });

  /** An instance whose cloud-init has run `kubelet-authenticator join`. */
  async function launch(nodeName: string): Promise<JoiningNode> {
    const node = await launchNode(site.platform, nodeName);
    nodes.push(node);
    const bundle = resolve(node.machine.dir, 'client-cas.pem');
    writeFileSync(bundle, site.blue.stack.trustBundle);
    const joined = await node.run([
      'join',
      cluster.endpoint,
      `--token=${firstToken}`,
      `--discovery-token-ca-cert-hash=${cluster.pin}`,
      `--audience=${audience('blue')}`,
      '--cluster-name=demo',
      `--node-name=${nodeName}`,
      '--serving=kubelet',
      `--client-ca-bundle=${bundle}`,
    ]);
    expect(joined).toMatchObject({ code: 0 });
    return node;
  }
  const idOf = ({ instanceId }: JoiningNode) => providerIdOf(site.platform.aws.instances.get(instanceId)!);
  const plane = () => site.blue.stack.plane;
  const ready = (node: JoiningNode, kubelet: Kubelet) =>
    eventually(() => isReady(plane(), kubelet, node.nodeName), `${node.nodeName} is Ready`, 200);
  const serves = (nodeName: string) =>
    eventually(async () => (await proxiedHealth(plane(), nodeName)) === 'ok', `${nodeName} serves`, 200);
  const recordOf = (nodeName: string) => site.blue.service.attestations('demo')!.store.findNode(nodeName);
  /** Reasons of the denials of all requests with the token, in order. */
  const denials = async (): Promise<string[]> =>
    requestsOf(await readRequests(plane()), `system:bootstrap:${firstToken.split('.')[0]}`).flatMap(
      (request) => conditionOf(request, 'Denied')?.reason ?? [],
    );

  test('waits for its Machine, and joins as the same node when there is one', { timeout: 400_000 }, async () => {
    const node = await launch('worker-1');
    const machine = await site.blue.cluster.createMachine('worker-1');
    await machine.bootstrapReady();
    // EC2 has started the instance, and the controllers have not written its provider ID yet.
    const kubelet = await node.startKubelet(plane());
    await eventually(async () => (await denials()).includes('MachineNotFound'), 'the first request is denied');
    await machine.provisioned(idOf(node), [node.machine.address]);
    await ready(node, kubelet);
    expect(new Set(await denials())).toEqual(new Set(['MachineNotFound']));
    // The kubelet asks for its serving certificate itself, without evidence: its Machine must have the nodeRef.
    await machine.joined('worker-1');
    await serves('worker-1');
    first = { node, kubelet, machine };
  });

  test('of a MachinePool joins while the pool lists it', { timeout: 400_000 }, async () => {
    const node = await launch('member-1');
    const pool = await site.blue.cluster.createPool('members');
    await pool.bootstrapReady();
    await pool.members([idOf(node)]);
    const kubelet = await node.startKubelet(plane());
    await ready(node, kubelet);
    expect(await recordOf('member-1')).toMatchObject({
      state: 'active',
      identity: expect.stringContaining(node.instanceId) as unknown,
    });
    await kubelet.stop();
  });

  test(
    'is retired when EC2 has terminated it, and its successor joins under the same name',
    { timeout: 400_000 },
    async () => {
      const { node, kubelet, machine } = first;
      const record = () => recordOf(node.nodeName);
      // A Machine that is being deleted retires nothing: EC2 says that its instance runs.
      await machine.deleting();
      await kubelet.stop();
      site.platform.aws.terminate(node.instanceId);
      await plane().admin.expectOk(`/api/v1/nodes/${node.nodeName}`, { method: 'DELETE' });
      await machine.gone();
      // The relay tells attest about the deleted Node and Machine: the first look.
      await eventually(async () => (await record())?.unknownSince !== undefined, 'attest has looked');
      expect((await record())?.state).toBe('active');
      // The schedule of attest, minutes later: the second look.
      site.platform.advance(2 * secondLookAfter);
      await site.blue.service.look();
      site.platform.advance(-2 * secondLookAfter);
      expect(await record()).toMatchObject({ state: 'retired', nodeName: 'worker-1' });

      // A Machine with its provider ID brings nothing back: attest gives a retired machine no certificate.
      const ghost = await site.blue.cluster.createMachine('ghost');
      await ghost.bootstrapReady();
      await ghost.provisioned(idOf(node));
      const retired = site.platform.aws.instances.get(node.instanceId)!;
      await untilAnswered(() => site.blue.ask(retired), { before: 'MachineNotFound', reason: 'Revoked' });

      const successor = await launch('worker-1');
      const next = await site.blue.cluster.createMachine('worker-1-b');
      await next.bootstrapReady();
      await next.provisioned(idOf(successor), [successor.machine.address]);
      const started = await successor.startKubelet(plane());
      await ready(successor, started);
      await next.joined('worker-1');
      await serves('worker-1');
      expect(await record()).toMatchObject({
        state: 'active',
        identity: expect.stringContaining(successor.instanceId) as unknown,
      });
    },
  );

  test('nothing of all this stays on the machines it ran on', async () => {
    const machines = nodes.map(({ machine }) => machine);
    for (const node of nodes.splice(0)) await node.stop();
    expect(machines.flatMap(leftovers)).toEqual([]);
  });
});
