import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { postNodeRequest, startApprovalStack, stateOf, type ApprovalStack } from '../../../harness/stack/approval.ts';
import {
  audience,
  awsSettings,
  prove,
  signers,
  startAwsPlatform,
  type AwsPlatform,
} from '../../../harness/attestation/attested-site.ts';
import { networkInterface, type InstanceSpec } from '../../../harness/fake-aws/machine/instance.ts';
import {
  leftovers,
  requireKubelet,
  startMachine,
  type Kubelet,
  type Machine,
} from '../../../harness/kubernetes/kubelet.ts';
import { conditionOf, eventually, readRequests, type CsrObject } from '../../../harness/stack/requests.ts';
import { isReady, proxiedHealth, requestsOf } from './node.ts';

const { skip } = await requireKubelet();

/*
 * A cluster on its way to attestation: stock kubelets still join with a token alone. A node that sends evidence is put on
 * record. The machine that serves under a node's name must be the one on record.
 */
const configuration = JSON.stringify({
  version: 1,
  clusters: {
    demo: {
      cas: { ca: { subject: { commonName: 'kubelet demo CA' } } },
      profiles: {
        [signers.client]: { maxTtl: '1h', attestation: { providers: ['aws'], mode: 'audit' } },
        [signers.serving]: { maxTtl: '1h', attestation: { providers: ['aws'] } },
      },
      approval: { [signers.client]: 'approve', [signers.serving]: 'approve' },
      attestation: { audience: audience('demo'), aws: awsSettings },
    },
  },
});

describe.skipIf(skip)('the stock kubelet’s serving certificate, held against the machine on record', () => {
  let platform: AwsPlatform;
  let stack: ApprovalStack;
  let machine: Machine;

  beforeAll(async () => {
    machine = await startMachine();
    platform = await startAwsPlatform();
    stack = await startApprovalStack(configuration, platform.ports, {
      apiServerArgs: ['--enable-admission-plugins=NodeRestriction'],
    });
    await stack.bind('system:certificates.k8s.io:certificatesigningrequests:nodeclient', 'system:bootstrappers');
    await stack.relay();
  });
  afterAll(async () => {
    await machine?.stop();
    await stack?.stop();
    await platform?.close();
  });

  /** An instance on record as this node: it proved itself once, with a token of its own. */
  async function enrol(nodeName: string, tokenId: string, spec: InstanceSpec = {}) {
    const instance = platform.launch(nodeName, spec);
    const token = await stack.bootstrap(tokenId);
    const evidence = { clusterName: 'demo', audience: audience('demo') };
    const { request } = prove(platform, instance, { node: nodeName, signerName: signers.client, evidence });
    const name = `enrols-${nodeName}`;
    await postNodeRequest(token, name, nodeName, { pem: request });
    await eventually(async () => (await stateOf(stack.plane, name)) === 'Approved, issued', `${nodeName} enrolled`);
    return instance;
  }

  async function startStock(nodeName: string, tokenId: string): Promise<Kubelet> {
    const { plane } = stack;
    const kubelet = await machine.startKubelet({
      plane,
      nodeName,
      bootstrapToken: `${tokenId}.0123456789abcdef`,
      configuration: { rotateCertificates: true, serverTLSBootstrap: true },
    });
    await eventually(() => isReady(plane, kubelet, nodeName), `${nodeName} is Ready`);
    return kubelet;
  }

  const servingRequests = async (nodeName: string): Promise<CsrObject[]> =>
    requestsOf(await readRequests(stack.plane), `system:node:${nodeName}`).filter(
      ({ spec }) => spec.signerName === signers.serving,
    );

  test('its address is one that EC2 gives the machine: issued, and the API server believes it', async () => {
    const { instanceId } = await enrol('own-address', 'aaaaaa', { privateIp: machine.address });
    const kubelet = await startStock('own-address', 'aaaaaa');
    try {
      await eventually(async () => (await proxiedHealth(stack.plane, 'own-address')) === 'ok', 'it can be reached');
      const [request, ...more] = await servingRequests('own-address');
      expect(more).toEqual([]);
      expect(conditionOf(request!, 'Approved')).toMatchObject({
        reason: 'AutoApproved',
        message: expect.stringContaining(instanceId) as unknown,
      });
    } finally {
      await kubelet.stop();
    }
  });

  test('EC2 knows that machine by another address: denied by name, until it is given this one', async () => {
    const { plane } = stack;
    const { instanceId, region, launchTime } = await enrol('elsewhere', 'bbbbbb', { privateIp: '10.99.1.1' });
    const kubelet = await startStock('elsewhere', 'bbbbbb');
    try {
      const denials = async () =>
        (await servingRequests('elsewhere')).flatMap((request) => conditionOf(request, 'Denied') ?? []);
      await eventually(async () => (await denials()).length > 0, 'denied');
      expect((await denials())[0]).toMatchObject({
        status: 'True',
        reason: 'NameNotOwned',
        message: `address ${machine.address} does not belong to this machine`,
      });
      // It has nothing to serve with.
      expect(await proxiedHealth(plane, 'elsewhere')).toContain('tls');

      platform.aws.change(instanceId, { interfaces: [networkInterface(region, 0, machine.address, launchTime)] });
      await eventually(async () => (await proxiedHealth(plane, 'elsewhere')) === 'ok', 'asked again, and issued');
    } finally {
      await kubelet.stop();
    }
  });

  test('nothing of all this stays on the machine it ran on', async () => {
    await machine.stop();
    expect(leftovers(machine)).toEqual([]);
  });
});
