import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { startApprovalStack, type ApprovalStack } from '../../harness/approval-stack.ts';
import { audience, awsSettings, signers, startAwsPlatform, type AwsPlatform } from '../../harness/attested-site.ts';
import { leftovers, requireKubelet } from '../../harness/kubelet.ts';
import { conditionOf, eventually, readRequests } from '../../harness/stack-requests.ts';
import { startKubeadmCluster, firstToken, type KubeadmCluster } from '../join/kubeadm-cluster.ts';
import { launchNode, type JoiningNode } from './joining-node.ts';
import { failures, isReady, logins, proxiedHealth, readyCondition, requestsOf } from './node.ts';

const { skip } = await requireKubelet('kubeadm', 'kube-controller-manager');

/** The plugin renews after 70 to 80 % of it, and these are what the relay and a loaded machine have left. */
const clientTtl = '100s';
const configuration = JSON.stringify({
  version: 1,
  clusters: {
    demo: {
      cas: { ca: { subject: { commonName: 'kubelet demo CA' } } },
      profiles: {
        [signers.awsClient]: { maxTtl: clientTtl },
        [signers.awsServing]: { maxTtl: '1h' },
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
  const nodes: JoiningNode[] = [];

  beforeAll(async () => {
    platform = await startAwsPlatform();
    stack = await startApprovalStack(configuration, platform.ports, {
      apiServerArgs: ['--enable-admission-plugins=NodeRestriction'],
    });
    cluster = await startKubeadmCluster(stack.plane);
    await cluster.waitForSignature('abcdef');
    await stack.relay();
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

  test.concurrent.for([
    ['kubelet', 'requester', signers.serving],
    ['attested', 'evidence', signers.awsServing],
  ] as const)(
    'serves with a certificate that is asked for by the %s (by its %s), and renews its client certificate unnoticed',
    { timeout: 240_000 },
    async ([serving, , servingSigner], { expect }) => {
      const { plane } = stack;
      const nodeName = `joins-${serving}`;
      const nodeUser = `system:node:${nodeName}`;
      const node = await launch(nodeName);
      const joined = await node.run(joinArgs(node, serving));
      expect(joined).toMatchObject({ code: 0 });
      if (serving === 'attested') await node.serve();
      const kubelet = await node.startKubelet(plane);
      await eventually(() => isReady(plane, kubelet, nodeName), `${nodeName} is Ready`);
      await eventually(async () => (await proxiedHealth(plane, nodeName)) === 'ok', 'the API server reaches it');
      const readySince = (await readyCondition(plane, nodeName))!.lastTransitionTime;

      // Nobody but the plugin asked with the token, and for nothing but this.
      const posted = (await readRequests(plane)).filter(({ spec }) => spec.username === bootstrapUser);
      expect(new Set(posted.map(({ spec }) => spec.signerName))).toEqual(new Set([signers.awsClient]));
      const first = node.clientCertificate();
      expect(first.issuer).toBe('CN=kubelet demo CA');
      const served = requestsOf(await readRequests(plane), nodeUser).filter(
        ({ spec }) => spec.signerName === servingSigner,
      );
      expect(served.map((request) => conditionOf(request, 'Approved')?.message)).toEqual([
        expect.stringContaining(node.instanceId),
      ]);

      await eventually(() => node.clientCertificate().serialNumber !== first.serialNumber, 'the plugin renewed', 150);
      const second = node.clientCertificate();
      await eventually(() => logins(plane, nodeUser).has(second.fingerprint256), 'the kubelet logs in with it');
      expect(second.publicKey.equals(first.publicKey)).toBe(false);
      // Past the end of the first one: from here on only the second counts.
      await eventually(() => Date.now() > first.validToDate.getTime() + 1_000, 'the first one is over');
      await eventually(async () => (await proxiedHealth(plane, nodeName)) === 'ok', 'the API server reaches it');
      await eventually(
        () => heartbeats(plane, nodeUser).some((at) => at > first.validToDate.getTime()),
        'its lease is renewed with nothing but the second',
      );

      expect(kubelet.process.ended()).toBeUndefined();
      expect(await readyCondition(plane, nodeName)).toMatchObject({ status: 'True', lastTransitionTime: readySince });
      expect(failures(plane, nodeUser)).toEqual([]);
      await kubelet.stop();
    },
  );

  test('another machine with the same token is refused the first one’s name, and told so', async ({ expect }) => {
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

  test('nothing of all this stays on the machines it ran on', async ({ expect }) => {
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
