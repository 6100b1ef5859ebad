import { X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startApprovalStack, type ApprovalStack } from '../../../harness/stack/approval.ts';
import {
  audience,
  awsSettings,
  signers,
  startAwsPlatform,
  type AwsPlatform,
} from '../../../harness/attestation/attested-site.ts';
import { leftovers, requireKubelet, type Kubelet } from '../../../harness/kubernetes/kubelet.ts';
import {
  certificatePemOf,
  conditionOf,
  eventually,
  readRequest,
  readRequests,
  type CsrObject,
} from '../../../harness/stack/requests.ts';
import type { Relay } from '../../../harness/stack/stack.ts';
import { byTier, onlyDeep } from '../../../harness/determinism/tier.ts';
import { startKubeadmCluster, firstToken, type KubeadmCluster } from '../../control-plane/join/kubeadm-cluster.ts';
import { launchNode, type JoiningNode } from './joining-node.ts';
import { failures, isReady, logins, presentedCertificate, proxiedHealth, readyCondition, requestsOf } from './node.ts';

const { skip } = await requireKubelet('kubeadm', 'kube-controller-manager');

/**
 * kubelet-authenticator renews after 70 to 80 % of it: in the deep tier, which waits for renewals, what is left is for the
 * relay and a loaded machine.
 */
const maxTtl = byTier({ default: '1h', deep: '100s' });
const configuration = JSON.stringify({
  version: 1,
  clusters: {
    demo: {
      cas: { ca: { subject: { commonName: 'kubelet demo CA' } } },
      profiles: {
        [signers.awsClient]: { maxTtl },
        [signers.awsServing]: { maxTtl },
        [signers.serving]: { maxTtl: '1h', attestation: { providers: ['aws'] } },
      },
      approval: { [signers.awsClient]: 'approve', [signers.awsServing]: 'approve', [signers.serving]: 'approve' },
      attestation: { audience: audience('demo'), aws: awsSettings },
    },
  },
});
const bootstrapUser = `system:bootstrap:${firstToken.split('.')[0]}`;

/*
 * A control plane as kubeadm leaves it, its token among them; kube-controller-manager signs cluster-info and nothing else.
 * Nodes join by the command that an operator would be shown.
 */
describe.skipIf(skip)('a real kubelet that joins by proving its machine', () => {
  let platform: AwsPlatform;
  let stack: ApprovalStack;
  let cluster: KubeadmCluster;
  let relay: Relay;
  const nodes: JoiningNode[] = [];

  beforeAll(async () => {
    platform = await startAwsPlatform();
    stack = await startApprovalStack(configuration, platform.ports, {
      apiServerArgs: ['--enable-admission-plugins=NodeRestriction'],
    });
    cluster = await startKubeadmCluster(stack.plane);
    await cluster.waitForSignature('abcdef');
    relay = await stack.relay();
  });
  afterAll(async () => {
    for (const node of nodes.splice(0)) await node.stop();
    await cluster?.stop();
    await stack?.stop();
    await platform?.close();
  });

  async function launch(nodeName: string): Promise<JoiningNode> {
    const node = await launchNode(platform, nodeName);
    nodes.push(node);
    writeFileSync(join(node.machine.dir, 'client-cas.pem'), stack.trustBundle);
    return node;
  }

  const joinArgs = ({ nodeName, machine }: JoiningNode, serving: string): string[] => [
    'join',
    cluster.endpoint,
    `--token=${firstToken}`,
    `--discovery-token-ca-cert-hash=${cluster.pin}`,
    `--audience=${audience('demo')}`,
    `--node-name=${nodeName}`,
    `--serving=${serving}`,
    `--client-ca-bundle=${resolve(machine.dir, 'client-cas.pem')}`,
  ];

  /** A node that runs, and since when it has been Ready. */
  interface Running extends JoiningNode {
    readonly user: string;
    readonly kubelet: Kubelet;
    readonly readySince: string;
  }
  const running: Running[] = [];
  /** Of the second of them. */
  let firstServing: X509Certificate | undefined;

  async function joinAs(serving: 'kubelet' | 'attested'): Promise<Running> {
    const nodeName = `joins-${serving}`;
    const node = await launch(nodeName);
    expect(await node.run(joinArgs(node, serving))).toMatchObject({ code: 0 });
    if (serving === 'attested') await node.serve();
    const kubelet = await node.startKubelet(stack.plane);
    await eventually(() => isReady(stack.plane, kubelet, nodeName), `${nodeName} is Ready`);
    const { lastTransitionTime } = (await readyCondition(stack.plane, nodeName))!;
    return { ...node, user: `system:node:${nodeName}`, kubelet, readySince: lastTransitionTime };
  }

  const reachable = ({ nodeName }: JoiningNode): Promise<void> =>
    eventually(async () => (await proxiedHealth(stack.plane, nodeName)) === 'ok', `the API server reaches ${nodeName}`);
  const of = async (user: string, signerName: string): Promise<CsrObject[]> =>
    requestsOf(await readRequests(stack.plane), user).filter(({ spec }) => spec.signerName === signerName);

  /** Resolves when each one logs in with another certificate than before. */
  async function renewed(before: readonly X509Certificate[]): Promise<void> {
    for (const [index, node] of running.entries()) {
      const old = before[index]!;
      await eventually(() => node.clientCertificate().serialNumber !== old.serialNumber, 'the plugin renewed', 150);
      const current = node.clientCertificate();
      await eventually(() => logins(stack.plane, node.user).has(current.fingerprint256), 'the kubelet logs in with it');
      expect(current.publicKey.equals(old.publicKey)).toBe(false);
    }
  }

  /** What a node's owner would notice: none of it is to be. */
  async function troubles(): Promise<string[]> {
    const found: string[] = [];
    for (const { nodeName, user, kubelet, readySince } of running) {
      const ended = kubelet.process.ended();
      const ready = await readyCondition(stack.plane, nodeName);
      const health = await proxiedHealth(stack.plane, nodeName);
      if (ended !== undefined) found.push(`${nodeName} ended: ${ended}`);
      if (ready?.status !== 'True' || ready.lastTransitionTime !== readySince)
        found.push(`${nodeName} was not Ready all the time: ${ready?.message}`);
      if (health !== 'ok') found.push(`${nodeName} does not serve: ${health}`);
      found.push(...failures(stack.plane, user));
    }
    return found;
  }

  test('is a Ready node, and serves: with a certificate that it asked for itself, or that was asked for with evidence', async () => {
    running.push(...(await Promise.all([joinAs('kubelet'), joinAs('attested')])));
    for (const node of running) await reachable(node);
    // Nobody but the plugin asked with the token, and for nothing but this.
    const withToken = requestsOf(await readRequests(stack.plane), bootstrapUser);
    expect(withToken.map(({ spec }) => spec.signerName)).toEqual([signers.awsClient, signers.awsClient]);

    for (const [index, signerName] of [signers.serving, signers.awsServing].entries()) {
      const node = running[index]!;
      const asked = await of(node.user, signerName);
      expect(asked.map((request) => conditionOf(request, 'Approved')?.message)).toEqual([
        expect.stringContaining(node.instanceId),
      ]);
      expect(node.clientCertificate().issuer).toBe('CN=kubelet demo CA');
      firstServing = await presentedCertificate(node.machine.address, node.kubelet.port);
      expect(firstServing.subjectAltName).toContain(`IP Address:${node.machine.address}`);
    }
    expect(await troubles()).toEqual([]);
  });

  test.each(onlyDeep)(
    'renews its client certificate without a restart, a refusal, or NotReady',
    { timeout: 200_000 },
    async () => {
      await renewed(running.map((node) => node.clientCertificate()));
      expect(await troubles()).toEqual([]);
    },
  );

  test.each(onlyDeep)(
    'serves with the renewed certificate that was put in the place of the old one',
    { timeout: 200_000 },
    async () => {
      const [, { kubelet, machine }] = running as [Running, Running];
      const presented = () => presentedCertificate(machine.address, kubelet.port);
      await eventually(async () => (await presented()).serialNumber !== firstServing!.serialNumber, 'it is reloaded');
      expect((await presented()).publicKey.equals(firstServing!.publicKey)).toBe(false);
      expect(await troubles()).toEqual([]);
    },
  );

  test.each(onlyDeep)(
    'goes on while nobody signs, though it is time to renew, and renews when they are back',
    { timeout: 300_000 },
    async () => {
      await relay.process.stop();
      const before = running.map((node) => node.clientCertificate());
      const pending = async (): Promise<CsrObject[]> =>
        (await Promise.all(running.map(({ user }) => of(user, signers.awsClient))))
          .flat()
          .filter(({ status }) => status.conditions === undefined);
      await eventually(async () => (await pending()).length > 0, 'it is time for one of them', 150);
      const [asked] = await pending();
      expect(await troubles()).toEqual([]);
      await relay.restart();
      await eventually(
        async () => (await readRequest(stack.plane, asked!.metadata.name)).status.certificate !== undefined,
        'signed',
      );

      await renewed(before);
      // What waited is what was collected, and nothing else was asked for.
      const owner = running.find(({ user }) => user === asked!.spec.username)!;
      const { fingerprint256 } = new X509Certificate(
        certificatePemOf(await readRequest(stack.plane, asked!.metadata.name)),
      );
      expect(owner.clientCertificate().fingerprint256).toBe(fingerprint256);
      // Past the end of what they had: from here on only the new ones count.
      const end = Math.max(...before.map(({ validToDate }) => validToDate.getTime()));
      for (const { user } of running)
        await eventually(() => heartbeats(stack.plane, user).some((at) => at > end), `${user} renews its lease`);
      expect(await troubles()).toEqual([]);
    },
  );

  test('another machine with the same token is refused the first one’s name, with the reason', async () => {
    const { plane } = stack;
    const thief = await launch('joins-kubelet'); // it may even be called so in its account
    expect(await thief.run(joinArgs(thief, 'none'))).toMatchObject({ code: 0 });
    const known = new Set((await readRequests(plane)).map(({ metadata }) => metadata.name));
    const { code, stdout, stderr } = await thief.exec();
    expect({ code, printed: stdout.length }).toEqual({ code: 1, printed: 0 }); // a failure must not show a key
    expect(stderr).toContain('TofuNodeTaken');
    const asked = (await readRequests(plane)).filter(({ metadata }) => !known.has(metadata.name));
    expect(asked).toHaveLength(1);
    expect(conditionOf(asked[0]!, 'Denied')).toMatchObject({ reason: 'TofuNodeTaken' });
    const described = await plane.kubectl(['describe', 'csr', asked[0]!.metadata.name]);
    expect(described).toMatch(/Warning\s+TofuNodeTaken/);
    for (const secret of [firstToken, 'BEGIN']) expect(stderr).not.toContain(secret);
  });

  test('nothing of all this stays on the machines it ran on', async () => {
    const machines = nodes.map(({ machine }) => machine);
    for (const node of nodes.splice(0)) await node.stop();
    expect(machines.flatMap(leftovers)).toEqual([]);
  });
});

function heartbeats(plane: ApprovalStack['plane'], user: string): number[] {
  return plane
    .auditEvents({ user })
    .filter(({ objectRef, responseStatus }) => objectRef?.resource === 'leases' && responseStatus?.code === 200)
    .map(({ requestReceivedTimestamp }) => Date.parse(requestReceivedTimestamp));
}
