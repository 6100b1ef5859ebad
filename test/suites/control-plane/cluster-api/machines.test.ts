/**
 * Each precondition on the objects of Cluster API, with the real definitions, API servers and relays. What is missing is refused by
 * its own reason; once it is mended the same machine gets its certificate.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  answerTo,
  machineRights,
  providerIdOf,
  relayOfGreen,
  startManagedSite,
  untilAnswered,
} from '../../../harness/cluster-api/managed-site.ts';
import type { ManagedSite, Workload } from '../../../harness/cluster-api/managed-site.ts';
import { createCluster, type MachineLife } from '../../../harness/cluster-api/machine-life.ts';
import type { FakeInstance } from '../../../harness/fake-aws/machine/instance.ts';
import { signers } from '../../../harness/attestation/attested-site.ts';
import { postNodeRequest } from '../../../harness/stack/approval.ts';
import { requireTools } from '../../../tools/tools.ts';

const { skip } = await requireTools('etcd', 'kube-apiserver', 'kubectl', 'cluster-api');

describe.skipIf(skip)('a machine of Cluster API', () => {
  let site: ManagedSite;
  let blue: Workload;
  let green: Workload;
  beforeAll(async () => {
    site = await startManagedSite();
    ({ blue, green } = site);
  });
  afterAll(() => site?.stop());

  /** An instance that EC2 would let join either cluster. */
  const launch = (name: string): FakeInstance => site.platform.launch(name);
  /** A Machine in the state in which its instance joins. */
  async function machineFor(instance: FakeInstance, { cluster }: Workload, name?: string): Promise<MachineLife> {
    const machine = await cluster.createMachine(name ?? instance.tags['Name'] ?? '');
    await machine.bootstrapReady();
    await machine.provisioned(providerIdOf(instance));
    return machine;
  }

  test('without a Machine: MachineNotFound, until there is one', async () => {
    const instance = launch('no-machine');
    const refused = await blue.ask(instance);
    expect(refused.reason).toBe('MachineNotFound');
    expect(refused.message).toContain(providerIdOf(instance));
    await machineFor(instance, blue);
    await untilAnswered(() => blue.ask(instance), { before: 'MachineNotFound', reason: 'issued' });
  });

  test('that EC2 has started before its bootstrap data was there: MachineNotReady, until it is', async () => {
    const instance = launch('not-ready');
    const machine = await blue.cluster.createMachine('not-ready');
    await machine.provisioned(providerIdOf(instance));
    const refused = await untilAnswered(() => blue.ask(instance), {
      before: 'MachineNotFound',
      reason: 'MachineNotReady',
    });
    expect(refused.message).toContain('Machine "default/not-ready"');
    await machine.bootstrapReady();
    await untilAnswered(() => blue.ask(instance), { before: 'MachineNotReady', reason: 'issued' });
  });

  test('of another Cluster of the same management cluster never joins this one', async () => {
    const instance = launch('of-green');
    const machine = await machineFor(instance, green);
    const refused = await untilAnswered(() => blue.ask(instance), {
      before: 'MachineNotFound',
      reason: 'MachineOfOtherCluster',
    });
    expect(refused.message).toContain('belongs to Cluster "default/green"');
    expect((await green.ask(instance)).reason).toBe('issued');
    // Nothing in blue knows it, so the same instance may become a machine of blue when green has given it up.
    await machine.gone();
    await machineFor(instance, blue);
    await untilAnswered(() => blue.ask(instance), { before: 'MachineOfOtherCluster', reason: 'issued' });
  });

  test('of another namespace is not found: the relay reads one namespace', async () => {
    const { admin } = blue.stack.plane;
    await admin.expectOk('/api/v1/namespaces', { method: 'POST', body: { metadata: { name: 'elsewhere' } } });
    const other = await createCluster(admin, { name: 'blue', namespace: 'elsewhere' });
    const instance = launch('elsewhere');
    await machineFor(instance, { ...blue, cluster: other });
    // A Machine that the relay does read, created after it, shows that the relay has seen what there was.
    const later = launch('later');
    await machineFor(later, blue);
    await untilAnswered(() => blue.ask(later), { before: 'MachineNotFound', reason: 'issued' });
    expect((await blue.ask(instance)).reason).toBe('MachineNotFound');
  });

  test('that is being deleted: MachineDeleting, until another Machine has the instance', async () => {
    const instance = launch('leaves');
    const machine = await blue.cluster.createMachine('leaves');
    await machine.deleting();
    await machine.bootstrapReady();
    await machine.provisioned(providerIdOf(instance));
    const refused = await untilAnswered(() => blue.ask(instance), {
      before: 'MachineNotFound',
      reason: 'MachineDeleting',
    });
    expect(refused.message).toContain('Machine "default/leaves"');
    await machine.gone();
    await machineFor(instance, blue, 'stays');
    await untilAnswered(() => blue.ask(instance), { before: ['MachineNotFound', 'MachineDeleting'], reason: 'issued' });
  });

  test('whose nodeRef is another node: MachineMismatch, until the controller corrects it', async () => {
    const instance = launch('renamed');
    const machine = await blue.cluster.createMachine('renamed');
    await machine.joined('another-node');
    await machine.bootstrapReady();
    await machine.provisioned(providerIdOf(instance));
    const refused = await untilAnswered(() => blue.ask(instance), {
      before: 'MachineNotFound',
      reason: 'MachineMismatch',
    });
    expect(refused.message).toContain('nodeRef "another-node"');
    await machine.joined('renamed');
    await untilAnswered(() => blue.ask(instance), { before: 'MachineMismatch', reason: 'issued' });
  });

  test('whose Machine was edited to the provider ID of another: refused by the evidence', async () => {
    const [victim, thief] = [launch('victim'), launch('thief')];
    await machineFor(victim, blue);
    const edited = await machineFor(thief, blue);
    await untilAnswered(() => blue.ask(victim), { before: 'MachineNotFound', reason: 'issued' });

    // An editor of Machines gives the thief's Machine the victim's provider ID. The thief has its own evidence alone.
    await edited.edit({ spec: { providerID: providerIdOf(victim) } });
    await untilAnswered(() => blue.ask(thief), { before: 'issued', reason: 'MachineNotFound' });
    const asVictim = { node: 'thief', providerId: providerIdOf(victim) };
    expect((await blue.ask(thief, asVictim)).reason).toBe('MachineAmbiguous');
    expect((await blue.ask(thief, { ...asVictim, node: 'victim' })).reason).toBe('MachineAmbiguous');

    await edited.edit({ spec: { providerID: providerIdOf(thief) } });
    await untilAnswered(() => blue.ask(thief), { before: 'MachineNotFound', reason: 'issued' });
  });

  test('that names the provider ID of another instance in its request: refused by the evidence', async () => {
    const [owner, liar] = [launch('owner'), launch('liar')];
    await machineFor(owner, blue);
    await untilAnswered(() => blue.ask(owner), { before: 'MachineNotFound', reason: 'issued' });
    const { reason, message } = await blue.ask(liar, { providerId: providerIdOf(owner) });
    expect(reason).toBe('AttestationInvalid');
    expect(message).toContain(`must be "${providerIdOf(liar)}"`);
  });

  test('whose attestor the Cluster does not list: AttestorNotAuthorized, until it does', async () => {
    const instance = launch('tpm-only');
    const machine = await blue.cluster.createMachine('tpm-only');
    await machine.provisioned(providerIdOf(instance));
    for (const annotations of [{ attestors: 'tpm' }, { authentication: 'false', attestors: null }]) {
      await blue.cluster.annotate(securityOf(annotations));
      // The Cluster is checked first, so this reason shows that the relay has the annotation.
      const refused = await untilAnswered(() => blue.ask(instance), {
        before: ['MachineNotFound', 'MachineNotReady'],
        reason: 'AttestorNotAuthorized',
      });
      expect(refused.message).toContain('Cluster "default/blue"');
    }
    await machine.bootstrapReady();
    expect((await blue.ask(instance)).reason).toBe('AttestorNotAuthorized');
    await blue.cluster.annotate(securityOf({ authentication: 'true', attestors: 'aws,tpm' }));
    await untilAnswered(() => blue.ask(instance), { before: 'AttestorNotAuthorized', reason: 'issued' });
    await blue.cluster.annotate(securityOf({ authentication: null, attestors: null }));
  });

  test('in a MachinePool: refused until the pool has its bootstrap data and lists it', async () => {
    const [member, stranger] = [launch('member'), launch('stranger')];
    const pool = await blue.cluster.createPool('pool');
    await pool.members([providerIdOf(member)]);
    await untilAnswered(() => blue.ask(member), { before: 'MachineNotFound', reason: 'MachineNotReady' });
    await pool.bootstrapReady();
    await untilAnswered(() => blue.ask(member), { before: 'MachineNotReady', reason: 'issued' });
    expect((await blue.ask(stranger)).reason).toBe('MachineNotFound');
    await pool.members([providerIdOf(member), providerIdOf(stranger)], ['member']);
    await untilAnswered(() => blue.ask(stranger), { before: 'MachineNotFound', reason: 'issued' });
  });

  test('asks without a provider ID for its serving certificate: the Machine with its nodeRef is compared with the record', async () => {
    const instance = launch('serves');
    const machine = await machineFor(instance, blue);
    const { key, certificatePem = '' } = await untilAnswered(() => blue.ask(instance), {
      before: 'MachineNotFound',
      reason: 'issued',
    });
    const login = { certificatePem, keyPem: key.keyPem };
    const node = await blue.stack.plane.client(login);
    let count = 0;
    const serve = async () => {
      const name = `serving-${++count}`;
      const address = instance.interfaces[0]!.addresses[0]!.address;
      const spec = { sans: { ip: [address] } };
      await postNodeRequest(node, name, 'serves', { spec, signerName: signers.serving, usage: 'server auth' });
      return { ...(await answerTo(blue.stack, name)), key };
    };
    try {
      expect((await serve()).reason).toBe('MachineNotFound');
      await machine.joined('serves');
      await untilAnswered(serve, { before: 'MachineNotFound', reason: 'issued' });
      // The Machine of the node is edited: the record of the machine has the provider ID that EC2 confirmed.
      await machine.edit({ spec: { providerID: 'aws:///eu-central-1a/i-0ffffffffffffffff' } });
      await untilAnswered(serve, { before: 'issued', reason: 'MachineMismatch' });
      await machine.edit({ spec: { providerID: providerIdOf(instance) } });
      await untilAnswered(serve, { before: 'MachineMismatch', reason: 'issued' });
    } finally {
      node.close();
    }
  });

  test('is looked up with each right of the manifest, and the relay tries nothing else in the management cluster', () => {
    const granted = machineRights('green').flatMap(({ verbs, resources = [] }) =>
      resources.flatMap((resource) => verbs.map((verb) => `${verb} ${resource} in default`)),
    );
    const events = blue.stack.plane.auditEvents({ user: relayOfGreen });
    const used = events.flatMap(({ verb, objectRef }) =>
      objectRef === undefined ? [] : `${verb} ${objectRef.resource} in ${objectRef.namespace}`,
    );
    expect([...new Set(used)].toSorted()).toEqual(granted.toSorted());
    expect(events.filter(({ responseStatus }) => responseStatus?.code === 403)).toEqual([]);
  });

  test('of a Cluster that is being deleted, or does not exist: none joins', async () => {
    const instance = launch('last');
    const machine = await green.cluster.createMachine('last');
    await machine.provisioned(providerIdOf(instance));
    await green.cluster.deleting();
    const before = ['MachineNotFound', 'MachineNotReady'];
    await untilAnswered(() => green.ask(instance), { before, reason: 'MachineDeleting' });
    await green.cluster.gone();
    const refused = await untilAnswered(() => green.ask(instance), {
      before: 'MachineDeleting',
      reason: 'MachineNotFound',
    });
    expect(refused.message).toContain('Cluster "default/green" of attestation.clusterApi does not exist');
  });
});

/** The annotations in place of `spec.security`, which no released definition has. */
function securityOf({ authentication, attestors }: { authentication?: string | null; attestors?: string | null }) {
  return {
    ...(authentication === undefined ? {} : { 'cluster.x-k8s.io/kubelet-authentication': authentication }),
    ...(attestors === undefined ? {} : { 'cluster.x-k8s.io/authorized-attestors': attestors }),
  };
}
