/* A real kubelet on a machine that no cloud vouches for: it joins by its TPM, serves, and renews. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { requireKubelet, startMachine, type Kubelet, type Machine } from '../../../harness/kubernetes/kubelet.ts';
import { conditionOf, eventually } from '../../../harness/stack/requests.ts';
import type { SoftwareTpm } from '../../../harness/tpm/software-tpm.ts';
import { firstToken, startKubeadmCluster, type KubeadmCluster } from '../../control-plane/join/kubeadm-cluster.ts';
import {
  audience,
  clientSigner,
  identityOf,
  startTpmCluster,
  stockServing,
  type TpmCluster,
} from '../tpm/tpm-cluster.ts';
import { installOn, type JoiningNode } from './joining-node.ts';
import { failures, isReady, logins, presentedCertificate, proxiedHealth, readyCondition } from './node.ts';

const { skip } = await requireKubelet('kubeadm', 'kube-controller-manager', 'swtpm');

const nodeName = 'edge-kubelet';

describe.skipIf(skip)('a real kubelet on a machine with a TPM', () => {
  let cluster: TpmCluster;
  let kubeadm: KubeadmCluster;
  let tpm: SoftwareTpm;
  let machine: Machine;
  let node: Omit<JoiningNode, 'instanceId'>;
  let kubelet: Kubelet;
  beforeAll(async () => {
    // kubelet-authenticator renews after 70 to 80 % of it.
    cluster = await startTpmCluster({ maxTtl: '100s' });
    kubeadm = await startKubeadmCluster(cluster.stack.plane);
    await kubeadm.waitForSignature('abcdef');
    tpm = await cluster.tpm(nodeName);
    machine = await startMachine();
    await cluster.allow(tpm, { nodeName, addresses: [machine.address] });
    node = installOn(machine, nodeName, tpm.environment);
    writeFileSync(join(machine.dir, 'client-cas.pem'), cluster.stack.trustBundle);
  }, 240_000);
  afterAll(async () => {
    await node?.stop();
    await kubeadm?.stop();
    await cluster?.stop();
  });

  const decisions = async (signerName: string) =>
    (await cluster.requests(signerName))
      .map((request) => conditionOf(request, 'Denied')?.reason ?? conditionOf(request, 'Approved')?.type ?? 'pending')
      .toSorted();

  test('is a Ready node after two requests, and the API server reaches it', { timeout: 240_000 }, async () => {
    const joined = await node.run([
      'join',
      kubeadm.endpoint,
      `--token=${firstToken}`,
      `--discovery-token-ca-cert-hash=${kubeadm.pin}`,
      '--provider=tpm',
      `--audience=${audience}`,
      `--node-name=${nodeName}`,
      '--serving=kubelet',
      `--client-ca-bundle=${join(machine.dir, 'client-cas.pem')}`,
    ]);
    expect(joined).toMatchObject({ code: 0 });
    kubelet = await node.startKubelet(cluster.stack.plane);
    await eventually(() => isReady(cluster.stack.plane, kubelet, nodeName), `${nodeName} is Ready`);
    expect(await decisions(clientSigner)).toEqual(['Approved', 'AttestationChallenge']);
    // The stock kubelet's serving request has no evidence: the operator's list vouches for the address.
    await eventually(
      async () => (await proxiedHealth(cluster.stack.plane, nodeName)) === 'ok',
      'the API server reaches it',
    );
    expect(await decisions(stockServing)).toEqual(['Approved']);
    const serving = await presentedCertificate(machine.address, kubelet.port);
    expect(serving.subjectAltName).toContain(`IP Address:${machine.address}`);
    expect(await tpm.handles('transient')).toEqual([]);
  });

  test('renews with a quote alone: no challenge, no restart, never NotReady', { timeout: 240_000 }, async () => {
    const before = node.clientCertificate();
    const ready = (await readyCondition(cluster.stack.plane, nodeName))!;
    await eventually(() => node.clientCertificate().serialNumber !== before.serialNumber, 'the plugin renewed', 180);
    const renewed = node.clientCertificate();
    const user = `system:node:${nodeName}`;
    await eventually(
      () => logins(cluster.stack.plane, user).has(renewed.fingerprint256),
      'the kubelet logs in with the renewed certificate',
    );
    expect(renewed.publicKey.equals(before.publicKey)).toBe(false);
    expect((await decisions(clientSigner)).filter((decision) => decision !== 'Approved')).toEqual([
      'AttestationChallenge',
    ]);
    const record = await cluster.service.attestations('demo')!.store.findIdentity(identityOf(tpm));
    expect(record).toMatchObject({ state: 'active', nodeName });
    expect(record!.renewals).toBeGreaterThan(0);
    expect(await readyCondition(cluster.stack.plane, nodeName)).toMatchObject({
      status: 'True',
      lastTransitionTime: ready.lastTransitionTime,
    });
    expect(failures(cluster.stack.plane, user)).toEqual([]);
  });
});
