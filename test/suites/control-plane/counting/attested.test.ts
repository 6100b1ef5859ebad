import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ApiClient } from '../../../harness/kubernetes/api-client.ts';
import { postNodeRequest } from '../../../harness/stack/approval.ts';
import { account, region, signers } from '../../../harness/attestation/attested-site.ts';
import type { Emulator } from '../../../harness/aws/emulator.ts';
import { makeNodeEvidence, type NodeEvidenceOptions } from '../../../harness/fake-aws/machine/node-evidence.ts';
import { startMiniStack } from '../../../harness/aws/ministack.ts';
import type { Relay } from '../../../harness/stack/stack.ts';
import {
  approve,
  certificatePemOf,
  createRequest,
  eventually,
  readRequest,
  settled,
} from '../../../harness/stack/requests.ts';
import { requireTools } from '../../../tools/tools.ts';
import { callsOf } from './budget.ts';
import { startCountedWorld, type CountedWorld } from './counted-world.ts';

const { skip } = await requireTools('etcd', 'kube-apiserver', 'kubectl', 'ministack');

const unattested = 'example.com/reports';
const configuration = {
  version: 1,
  clusters: {
    demo: {
      cas: { ca: { subject: { commonName: 'counted CA' } } },
      profiles: {
        [signers.client]: { attestation: { providers: ['aws'] } },
        [signers.awsClient]: {},
        [signers.serving]: { attestation: { providers: ['aws'] } },
        [unattested]: {
          usages: { allowed: ['client auth'] },
          subject: { commonNames: ['jane'] },
          requester: { groups: ['system:masters'] },
        },
      },
      approval: { [signers.awsClient]: 'approve', [signers.serving]: 'approve', [unattested]: 'approve' },
      attestation: {
        audience: 'counted',
        aws: {
          accounts: { [account]: {} },
          regions: [region],
          tags: { 'kubernetes.io/cluster/demo': 'owned' },
          nodeName: ['tag:Name'],
        },
      },
    },
  },
};
const signerCount = Object.keys(configuration.clusters.demo.profiles).length;
const many = 100;

/** The same where machines prove themselves: attest, its table, STS and EC2 are counted too. */
describe.skipIf(skip)('calls for a certificate of a machine that proves itself', () => {
  let emulator: Emulator;
  let world: CountedWorld;
  let relay: Relay;
  let token: ApiClient;
  /** A machine that has joined, logged in as its node. */
  let joined: { readonly instanceId: string; readonly client: ApiClient };

  beforeAll(async () => {
    emulator = await startMiniStack({ auth: false });
    world = await startCountedWorld(emulator, configuration);
    token = await world.stack.bootstrap('abcdef');
  });
  afterAll(async () => {
    joined?.client.close();
    await world?.stop();
    await emulator?.stop();
  });

  const launch = (nodeName: string): string =>
    world.platform.aws.launch({
      account,
      region,
      tags: { 'kubernetes.io/cluster/demo': 'owned', Name: nodeName },
    }).instanceId;
  const prove = (nodeName: string, instanceId: string, more: Partial<NodeEvidenceOptions> = {}) =>
    makeNodeEvidence(world.platform.aws, instanceId, {
      clusterName: 'demo',
      audience: 'counted',
      signerName: signers.awsClient,
      nodeName,
      providerId: `aws:///${world.platform.aws.instances.get(instanceId)!.availabilityZone}/${instanceId}`,
      ...more,
    });
  const post = (client: ApiClient, name: string, pem: string, signerName: string = signers.awsClient) =>
    postNodeRequest(client, name, 'unused', { signerName, pem });

  test('the relay starts: a list and a watch for each signer', async () => {
    const calls = await world.during(async () => {
      relay = await world.relay('--leader-elect', '--concurrency', '8');
    });
    expect(calls).toEqual(callsOf(['start', signerCount]));
  });

  test('a machine joins, first of all that new environments of the functions meet, and renews', async () => {
    world.startAnew();
    const instanceId = launch('n1');
    const evidence = prove('n1', instanceId);
    const join = async () => {
      await post(token, 'joins', evidence.request);
      await world.reaches('joins', 'Approved, issued');
    };
    expect(await world.during(join)).toEqual(callsOf('cold', 'proved'));
    const certificatePem = certificatePemOf(await readRequest(world.stack.plane, 'joins'));
    const client = await world.stack.plane.client({ certificatePem, keyPem: evidence.csr.keyPem });
    joined = { instanceId, client };
    const renew = async () => {
      await post(client, 'renews', prove('n1', instanceId).request);
      await world.reaches('renews', 'Approved, issued');
    };
    expect(await world.during(renew)).toEqual(callsOf('proved'));
  });

  test('its stock kubelet asks for a serving certificate, and for another one with a new address', async () => {
    const [first] = world.platform.aws.instances.get(joined.instanceId)!.interfaces;
    const [primary] = first!.addresses;
    const serving = async (name: string, ip: readonly string[]) => {
      await postNodeRequest(joined.client, name, 'n1', {
        signerName: signers.serving,
        usage: 'server auth',
        spec: { sans: { ip } },
      });
      await world.reaches(name, 'Approved, issued');
    };
    expect(await world.during(() => serving('serves', [primary!.address]))).toEqual(callsOf('servingSeen'));
    const elastic = { address: '198.51.100.7', dnsName: 'ec2-198-51-100-7.eu-central-1.compute.amazonaws.com' };
    const interfaces = [{ ...first!, addresses: [{ ...primary!, public: elastic }] }];
    world.platform.aws.change(joined.instanceId, { interfaces });
    const both = [primary!.address, elastic.address];
    expect(await world.during(() => serving('serves-more', both))).toEqual(callsOf('serving'));
  });

  test('a machine joins, and another approver approves', async () => {
    const byHand = async () => {
      const proof = prove('n2', launch('n2'), { signerName: signers.client });
      await post(token, 'by-hand', proof.request, signers.client);
      await eventually(async () => (await relay.metric('decisions_total', 'decision="noted"')) === 1, 'it is noted');
      await approve(world.stack.plane, 'by-hand');
      await world.reaches('by-hand', 'Approved, issued');
    };
    expect(await world.during(byHand)).toEqual(callsOf('provedByHand'));
    const again = async () => expect(await world.deliver('by-hand')).toBe(200);
    expect(await world.during(again)).toEqual(callsOf('provedAgain'));
  });

  test.each([
    ['evidence of a version that is not taken', 'unfit', { version: 'aws/v9' }],
    ['a proof for another deployment', 'disproved', { audience: 'another' }],
  ] as const)('%s', async (_, way, change) => {
    const denied = async () => {
      await post(token, way, prove(way, launch(way), change).request);
      await world.reaches(way, 'Denied');
    };
    expect(await world.during(denied)).toEqual(callsOf(way));
  });

  test('a signer that demands no proof', async () => {
    const unproved = async () => {
      const asked = { name: 'reports', signer: unattested, request: { subject: { CN: 'jane' } } } as const;
      await createRequest(world.stack.plane.admin, asked);
      await world.reaches('reports', 'Approved, issued');
    };
    expect(await world.during(unproved)).toEqual(callsOf('judgedThere'));
  });

  test(`${many} machines at once: nothing but ${many} times the same`, async () => {
    const names = Array.from({ length: many }, (_, i) => `node-${i}`);
    const burst = async () => {
      await Promise.all(names.map((name) => post(token, name, prove(name, launch(name)).request)));
      await settled(world.stack.plane, names);
    };
    expect(await world.during(burst)).toEqual(callsOf(['proved', many]));
  });

  test('by a webhook client that knows no attest', async () => {
    await relay.stop();
    await post(token, 'webhook', prove('n4', launch('n4'), { signerName: signers.client }).request, signers.client);
    await approve(world.stack.plane, 'webhook');
    const straight = async () => expect(await world.deliver('webhook')).toBe(200);
    expect(await world.during(straight)).toEqual(callsOf('provedWebhook'));
  });
});
