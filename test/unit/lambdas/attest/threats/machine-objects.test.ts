/**
 * SECURITY.md, "With Machine objects of Cluster API", row by row: two clusters of one management cluster, whose rules about EC2
 * admit the instances of both. Real handlers, real adapters, the strict fake AWS.
 */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import type { AttestContext, MachineObject } from '../../../../../core/ports/signing-endpoint.ts';
import {
  audience,
  openSite,
  provedRequest,
  requestFor,
  signers,
  startAwsPlatform,
} from '../../../../harness/attestation/attested-site.ts';
import type { AttestedSite, AwsPlatform, Proved } from '../../../../harness/attestation/attested-site.ts';
import { contextOf, machineObject } from '../../../../harness/attestation/machine-objects.ts';
import type { FakeInstance } from '../../../../harness/fake-aws/machine/instance.ts';
import { captured, clusters } from './attempt.ts';
import { describeThreats } from './rows.ts';
import type { Threat } from './rows.ts';

const withMachines = Object.fromEntries(
  Object.entries(clusters).map(([name, cluster]) => {
    const attestation = { ...(cluster['attestation'] as object), machines: 'clusterApi' };
    return [name, { ...cluster, attestation }] as const;
  }),
);

let platform: AwsPlatform;
const open: AttestedSite[] = [];
beforeAll(async () => {
  platform = await startAwsPlatform();
});
afterEach(() => {
  for (const site of open.splice(0)) site.close();
});
afterAll(() => platform.close());

async function openBoth(): Promise<AttestedSite> {
  const site = await openSite({ clusters: withMachines, aws: platform.ports, now: platform.now });
  open.push(site);
  return site;
}

const idOf = ({ availabilityZone, instanceId }: FakeInstance): string => `aws:///${availabilityZone}/${instanceId}`;
const machineOf = (instance: FakeInstance, change: Partial<MachineObject> = {}): MachineObject =>
  machineObject({ clusterName: 'prod', providerId: idOf(instance), ...change });
const worker = (): FakeInstance => platform.launch('worker-1', { privateIp: '10.0.0.7' });
const proved = (instance: FakeInstance, asked: Proved = {}) => provedRequest(platform, instance, asked);

/** The request with what the relay found, then approved. */
async function answers(
  object: object,
  context: AttestContext | undefined,
  site?: AttestedSite,
): ReturnType<Threat['tries'][number]> {
  const both = site ?? (await openBoth());
  const first = await both.attest(object, context === undefined ? {} : { context });
  return { said: first.said, signed: (await both.sign(object)).said };
}

const threats: Readonly<Record<string, Threat>> = {
  'hold a bootstrap token of a cluster, on a machine of another cluster': {
    codes: ['MachineOfOtherCluster'],
    tries: [
      async () => {
        const other = worker();
        return answers(proved(other), contextOf([machineOf(other, { clusterName: 'other' })]));
      },
      async () => {
        const other = worker();
        return answers(proved(other), contextOf([machineOf(other, { namespace: 'team-b' })]));
      },
    ],
  },
  'write a Machine of a cluster for a machine of another cluster': {
    codes: ['MachineAmbiguous'],
    tries: [
      async () => {
        const other = worker();
        const written = machineOf(other, { name: 'written' });
        return answers(proved(other), contextOf([machineOf(other, { clusterName: 'other' }), written]));
      },
    ],
  },
  'write the provider ID of their machine into the Machine of a node, to become this node': {
    codes: ['IdentityNotAllowed', 'MachineMismatch'],
    tries: [
      async () => {
        const thief = platform.launch('thief');
        const edited = machineOf(thief, { nodeName: 'worker-1' });
        return answers(proved(thief, { node: 'worker-1' }), contextOf([edited]));
      },
      async () => {
        const thief = platform.launch('thief');
        const edited = machineOf(thief, { nodeName: 'worker-1' });
        return answers(proved(thief, { node: 'thief' }), contextOf([edited]));
      },
    ],
  },
  'write the provider ID of a machine in another account into a Machine': {
    codes: ['IdentityNotAllowed'],
    tries: [
      async () => {
        const foreign = platform.launch('worker-1', { account: '999988887777' });
        return answers(proved(foreign), contextOf([machineOf(foreign)]));
      },
    ],
  },
  'name the provider ID of a Machine in the request, with the evidence of another machine': {
    codes: ['AttestationInvalid'],
    tries: [
      async () => {
        const [node, thief] = [platform.launch('worker-2'), worker()];
        const request = proved(thief, { evidence: { providerId: idOf(node) } });
        return answers(request, contextOf([machineOf(node)]));
      },
    ],
  },
  'start an instance that the EC2 rules admit, without a Machine': {
    codes: ['MachineNotFound'],
    tries: [async () => answers(proved(worker()), contextOf([]))],
  },
  'keep the instance of a Machine that is being deleted': {
    codes: ['MachineDeleting'],
    tries: [
      async () => {
        const going = worker();
        return answers(proved(going), contextOf([machineOf(going, { deleting: true })]));
      },
    ],
  },
  'send a request past the relay': {
    codes: ['MachineNotFound'],
    tries: [async () => answers(proved(worker()), undefined)],
  },
  'steal the relay’s credential, and send Machines of their own making': {
    codes: ['AttestationInvalid', 'AttestationMissing', 'IdentityNotAllowed', 'MachineMismatch'],
    tries: [
      async () => answers(requestFor(), contextOf([machineObject({ clusterName: 'prod', nodeName: 'worker-1' })])),
      async () =>
        answers(
          captured({ platform }, {}),
          contextOf([machineOf([...platform.aws.instances.values()].at(-1) as FakeInstance)]),
        ),
      async () => {
        const own = platform.launch('worker-1', { account: '999988887777' });
        return answers(proved(own), contextOf([machineOf(own, { nodeName: 'worker-1', addresses: ['10.0.0.7'] })]));
      },
      async () => answers(proved(worker()), contextOf([machineOf(platform.launch('worker-2'))])),
    ],
  },
  'do so for an instance that the EC2 rules admit, and that has no Machine': {
    codes: ['issued'],
    tries: [
      async () => {
        const alone = worker();
        return answers(proved(alone), contextOf([machineOf(alone)]));
      },
    ],
  },
};

describeThreats('### With Machine objects of Cluster API', threats);

test('a machine joins its own cluster, and gets its serving certificate there; in the other cluster it gets nothing', async () => {
  const site = await openBoth();
  const own = worker();
  const context = contextOf([machineOf(own)]);
  const client = proved(own);
  expect(await answers(client, context, site)).toEqual({ said: 'approve', signed: 'issued' });
  const sans = { ip: ['10.0.0.7'] };
  const serving = requestFor({ signerName: signers.serving, by: 'node', csr: { sans } });
  const found = contextOf([machineOf(own, { nodeName: 'worker-1', addresses: ['10.0.0.7'] })]);
  expect(await answers(serving, found, site)).toEqual({ said: 'approve', signed: 'issued' });

  const elsewhere = proved(own, { evidence: { audience: audience('other'), clusterName: 'other' } });
  const refused = await site.attest(elsewhere, { cluster: 'other', context });
  expect(refused).toMatchObject({
    said: 'MachineOfOtherCluster',
    message: expect.stringContaining(
      'belongs to Cluster "default/prod", and this endpoint is for Cluster "default/other"',
    ) as string,
  });
  expect((await site.sign(elsewhere, { cluster: 'other' })).said).toBe('MachineOfOtherCluster');
});

test('the serving request of a stock kubelet is compared with the machine on record', async () => {
  const site = await openBoth();
  const own = worker();
  expect((await site.attest(proved(own), { context: contextOf([machineOf(own)]) })).said).toBe('approve');
  const ask = async (change: Partial<MachineObject>) => {
    const serving = requestFor({ signerName: signers.serving, by: 'node', csr: { sans: { ip: ['10.0.0.7'] } } });
    return (await site.attest(serving, { context: contextOf([machineOf(own, { nodeName: 'worker-1', ...change })]) }))
      .said;
  };
  expect(await ask({ providerId: idOf(platform.launch('worker-1')) })).toBe('MachineMismatch');
  expect(await ask({ clusterName: 'other' })).toBe('MachineOfOtherCluster');
  expect(await ask({})).toBe('approve');
});

test('a provider ID that EC2 confirmed costs one call of DescribeInstances; a machine that is not listed yet costs none', async () => {
  const site = await openBoth();
  const own = worker();
  const calls = (): number => platform.ec2.calls.length;
  const before = calls();
  for (let count = 0; count < 5; count += 1)
    expect((await site.attest(proved(own), { context: contextOf([]) })).said).toBe('MachineNotFound');
  expect(calls()).toBe(before);
  expect((await site.attest(proved(own), { context: contextOf([machineOf(own)]) })).said).toBe('approve');
  expect(calls()).toBe(before + 1);
});
