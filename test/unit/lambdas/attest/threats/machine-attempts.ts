/** By who has a machine and wants another's name, place or addresses, and by who was let in before. */
import { descriptionLasts } from '../../../../../core/attestation/evidence/last-description.ts';
import { nameGrace } from '../../../../../core/attestation/retirement/retire-gone.ts';
import type { AttestationStore, ChangeResult, IdentityRecord } from '../../../../../core/ports/attestation-store.ts';
import { prove, requestFor, signers } from '../../../../harness/attestation/attested-site.ts';
import type { AwsPlatform, Proved } from '../../../../harness/attestation/attested-site.ts';
import type { FakeInstance } from '../../../../harness/fake-aws/machine/instance.ts';
import { letIn, notAllowed, refused, register, serving } from './attempt.ts';
import type { Attempt, Attempts, Sans, Scene } from './attempt.ts';

const otherDisk = /root volume and the first interface/;

export const machineAttempts = {
  'start an instance in a listed account': {
    'without the tag': notAllowed(/does not have the tag/, ({ platform, proved }) =>
      proved(platform.launch('worker-1', { tags: { 'kubernetes.io/cluster/prod': 'shared' } })),
    ),
    'in another VPC': notAllowed(/in VPC vpc-0bbbbbbbbbbbbbbbb/, ({ platform, proved }) =>
      proved(platform.launch('worker-1', { vpcId: 'vpc-0bbbbbbbbbbbbbbbb' })),
    ),
    'under a name that is not its own': notAllowed(/may not be called "cp-1"/, ({ platform, proved }) =>
      proved(platform.launch('worker-7'), { node: 'cp-1' }),
    ),
    'with a name that means every name': notAllowed(/may not be called "cp-1"/, ({ platform, proved }) =>
      proved(platform.launch('*'), { node: 'cp-1' }),
    ),
    'whose metadata any pod can read': notAllowed(/metadata hop limit of 2/, ({ platform, proved }) => {
      const worker = platform.launch('worker-1');
      const metadataOptions = { ...worker.metadataOptions, httpPutResponseHopLimit: 2 };
      platform.aws.change(worker.instanceId, { metadataOptions });
      return proved(worker);
    }),
  },
  'claim the name of a node that exists, a control-plane node included': {
    'with a machine that may have it': refused('TofuNodeTaken', async (scene) => {
      await register(scene, scene.platform.launch('worker-1'));
      return scene.proved(scene.platform.launch('worker-1'));
    }),
    "a control-plane node's": refused('TofuNodeTaken', async (scene) => {
      await register(scene, scene.platform.launch('cp-1'), { node: 'cp-1' });
      return scene.proved(scene.platform.launch('cp-1'), { node: 'cp-1' });
    }),
    'while the first one is stopped': refused('TofuNodeTaken', async (scene) => {
      const worker = scene.platform.launch('worker-1');
      await register(scene, worker);
      scene.platform.aws.stop(worker.instanceId);
      return scene.proved(scene.platform.launch('worker-1'));
    }),
    'as that node itself': refused('TofuNodeTaken', async (scene) => {
      await register(scene, scene.platform.launch('worker-1'));
      return scene.proved(scene.platform.launch('worker-1'), { by: 'node' });
    }),
  },
  'register a machine it has under a second name': {
    'its tag changed': refused('TofuNodeMismatch', async (scene) => {
      const worker = scene.platform.launch('worker-1');
      await register(scene, worker);
      scene.platform.aws.change(worker.instanceId, { tags: { ...worker.tags, Name: 'worker-2' } });
      return scene.proved(worker, { node: 'worker-2' });
    }),
    'for serving': refused('TofuNodeMismatch', async (scene) => {
      const worker = scene.platform.launch('worker-1', { privateIp: '10.0.0.7' });
      await register(scene, worker);
      return scene.proved(worker, { node: 'worker-2', ...withNames({ ip: ['10.0.0.7'] }) });
    }),
  },
  'come back with a machine that is registered, and a bootstrap token': {
    'with a new key': refused('TofuReuse', async (scene) => {
      const worker = scene.platform.launch('worker-1');
      await register(scene, worker);
      return scene.proved(worker);
    }),
    'after a stop and start': refused('TofuReuse', async (scene) => {
      const worker = scene.platform.launch('worker-1');
      await register(scene, worker);
      scene.platform.aws.stop(worker.instanceId);
      scene.platform.aws.start(worker.instanceId);
      return scene.proved(worker);
    }),
  },
  'use the evidence of an instance that was terminated': {
    'with its credentials, which outlive it': notAllowed(/is terminated/, ({ platform, proved }) => {
      const worker = platform.launch('worker-1');
      platform.aws.terminate(worker.instanceId);
      return proved(worker);
    }),
    'or stopped': notAllowed(/is stopped/, ({ platform, proved }) => {
      const worker = platform.launch('worker-1');
      platform.aws.stop(worker.instanceId);
      return proved(worker);
    }),
    'and have it serve': notAllowed(/is not running/, async (scene) => {
      const object = await serving(scene, { ip: ['10.0.0.7'] });
      scene.platform.aws.terminate(lastOf(scene.platform).instanceId);
      scene.wait(descriptionLasts);
      return object;
    }),
  },
  'swap the root volume of a node': {
    'before its first use': notAllowed(otherDisk, ({ platform, proved }) => {
      const worker = platform.launch('worker-1');
      swapLater(platform, worker);
      return proved(worker);
    }),
    'and have it renew as the node itself': notAllowed(otherDisk, async (scene) => {
      const worker = scene.platform.launch('worker-1');
      await register(scene, worker);
      swapLater(scene.platform, worker);
      return scene.proved(worker, { by: 'node' });
    }),
    'and have it serve': notAllowed(otherDisk, async (scene) => {
      const object = await serving(scene, { ip: ['10.0.0.7'] });
      swapLater(scene.platform, lastOf(scene.platform));
      scene.wait(descriptionLasts);
      return object;
    }),
  },
  'race two first uses': {
    'of one name': refused(
      'TofuNodeTaken',
      (scene) => {
        const workers = [scene.platform.launch('worker-1'), scene.platform.launch('worker-1')];
        return race(
          scene,
          workers.map((worker) => scene.proved(worker)),
        );
      },
      { store: lookTogether },
    ),
    'of one machine': refused(
      'TofuReuse',
      (scene) => {
        const worker = scene.platform.launch('worker-1');
        return race(scene, [scene.proved(worker), scene.proved(worker)]);
      },
      { store: lookTogether },
    ),
  },
  'use a verdict for another request': {
    'with another key': underOneUid(() => ({})),
    'of another node': underOneUid(() => ({ node: 'cp-1' })),
    'from another signer': underOneUid(() => ({ signerName: signers.awsClient })),
    'by another requester': underOneUid((key) => ({ key, by: 'node' })),
    'for other usages': underOneUid((key) => ({
      key,
      usages: ['key encipherment', 'digital signature', 'client auth'],
    })),
    'put under another UID in the table itself': refused(
      'UidReused',
      async ({ site, platform }) => {
        const { request } = prove(platform, platform.launch('worker-1'));
        await site.attest(requestFor({ request }));
        return requestFor({ request });
      },
      { store: oneVerdictForAll },
    ),
  },
  'be approved, and then be removed before sign issues the certificate': {
    'its machine locked': refused('Locked', (scene) => letInAnd(scene, lockIt)),
    'its record reset': refused('Revoked', (scene) => letInAnd(scene, resetIt), { attested: 'approve' }),
    'its record reset, and its machine back with another key': refused(
      'Revoked',
      async (scene) => {
        const object = await letInAnd(scene, resetIt);
        scene.platform.advance(1);
        await letIn(scene, scene.proved(lastOf(scene.platform)));
        return object;
      },
      { attested: 'approve' },
    ),
    'its machine retired': refused('Revoked', (scene) => letInAnd(scene, retireIt), { attested: 'approve' }),
    'retired, and renewing under an outdated answer of EC2': refused('Revoked', async (scene) => {
      await letInAnd(scene, retireIt);
      return scene.proved(lastOf(scene.platform), { by: 'node' });
    }),
    'retired, and serving under an outdated answer of EC2': refused('Revoked', async (scene) => {
      await letInAnd(scene, retireIt);
      return requestFor({ signerName: signers.serving, by: 'node', csr: { sans: { dns: ['worker-1'] } } });
    }),
    'locked, and renewing': refused('Locked', async (scene) => {
      await letInAnd(scene, lockIt);
      return scene.proved(lastOf(scene.platform), { by: 'node' });
    }),
    'locked, and serving': refused('Locked', async (scene) => {
      await letInAnd(scene, lockIt);
      return requestFor({ signerName: signers.serving, by: 'node', csr: { sans: { dns: ['worker-1'] } } });
    }),
  },
  "ask for a serving certificate with another machine's address, a service's name or the control plane's": {
    'an address of no machine': foreign({ ip: ['10.0.0.8'] }),
    'an address beside its own': foreign({ ip: ['10.0.0.7', '10.0.0.8'] }),
    loopback: reserved({ ip: ['127.0.0.1'] }),
    'the service address of the API server': reserved({ ip: ['10.96.0.1'] }),
    'the shared control-plane endpoint': reserved({ ip: ['192.168.0.100'] }),
    'its DNS name': reserved({ dns: ['api.example.com'] }),
    'kubernetes.default.svc': reserved({ dns: ['kubernetes.default.svc'] }),
    kubernetes: reserved({ dns: ['kubernetes'] }),
    'a service of the cluster': reserved({ dns: ['vault.default.svc.cluster.local'] }),
    "another node's name": foreign({ dns: ['worker-2'] }),
    'every name': refused('SanNotPermitted', (scene) => serving(scene, { dns: ['*.example.com'] })),
    'an address of a range that another machine used first': refused('NameNotOwned', async (scene) => {
      const sans = { ip: ['192.168.0.7'] };
      await letIn(scene, await serving(scene, sans));
      await register(scene, scene.platform.launch('worker-2'), { node: 'worker-2' });
      return requestFor({ node: 'worker-2', signerName: signers.serving, by: 'node', csr: { sans } });
    }),
    'with evidence': refused('NameNotOwned', async (scene) => {
      const worker = scene.platform.launch('worker-1', { privateIp: '10.0.0.7' });
      await register(scene, worker);
      return scene.proved(worker, withNames({ ip: ['10.0.0.8'] }));
    }),
  },
} satisfies Attempts;

function foreign(sans: Sans): Attempt {
  return refused('NameNotOwned', (scene) => serving(scene, sans));
}

function reserved(sans: Sans): Attempt {
  return refused('NameReserved', (scene) => serving(scene, sans));
}

function withNames(sans: Sans): Proved {
  return { signerName: signers.awsServing, by: 'node', csr: { sans } };
}

/** Launched last. */
function lastOf({ aws }: AwsPlatform): FakeInstance {
  const last = [...aws.instances.values()].at(-1);
  if (last === undefined) throw new Error('nothing was launched');
  return last;
}

/** So late that the volume cannot have been attached at launch. */
function swapLater({ aws }: AwsPlatform, { instanceId }: FakeInstance): void {
  aws.swapRootVolume(instanceId);
  const volumes = aws.instances.get(instanceId)?.volumes ?? [];
  aws.change(instanceId, { volumes: volumes.map((each) => ({ ...each, attachTime: each.attachTime + 3_600_000 })) });
}

/** Both have looked before either writes. */
function lookTogether(embedded: AttestationStore): AttestationStore {
  const both = Promise.withResolvers<void>();
  let looks = 0;
  return {
    ...embedded,
    async lookup(question) {
      const seen = await embedded.lookup(question);
      looks += 1;
      if (looks === 2) both.resolve();
      if (looks <= 2) await both.promise;
      return seen;
    },
  };
}

/** Two at once: one is let in, and the other is what was attempted. */
async function race({ site }: Scene, objects: readonly object[]): Promise<object> {
  const said = (await Promise.all(objects.map((object) => site.attest(object)))).map((each) => each.said);
  const [loser, ...others] = objects.filter((_, index) => said[index] !== 'approve');
  if (loser === undefined || others.length > 0) throw new Error(`not exactly one was let in: ${said.join()}`);
  return loser;
}

/** After a request was let in: another under its UID, by the same machine. */
function underOneUid(other: (key: NonNullable<Proved['key']>) => Proved): Attempt {
  return refused('UidReused', async ({ site, platform, proved }) => {
    const worker = platform.launch('worker-1');
    const { request, key } = prove(platform, worker);
    const first = requestFor({ request });
    await letIn({ site }, first);
    return proved(worker, { ...other(key), uid: first.metadata.uid });
  });
}

/** An attacker who may write the table answers every request with the first verdict. */
function oneVerdictForAll(embedded: AttestationStore): AttestationStore {
  let first: string | undefined;
  return {
    ...embedded,
    findVerdict: (uid, now) => embedded.findVerdict((first ??= uid), now),
    recall: (uid, count, now) => embedded.recall((first ??= uid), count, now),
  };
}

type FoundOut = (scene: Scene, record: IdentityRecord) => Promise<ChangeResult>;

async function letInAnd(scene: Scene, foundOut: FoundOut): Promise<object> {
  const { site, platform, proved } = scene;
  const object = proved(platform.launch('worker-1'));
  await letIn({ site }, object);
  const record = await site.store.findNode('worker-1');
  if (record === undefined) throw new Error('not registered');
  if ((await foundOut(scene, record)).kind !== 'written') throw new Error('not written');
  return object;
}

const by = { id: '1', at: 1, by: 'me', reason: 'found out' };

function resetIt({ site }: Scene, record: IdentityRecord): Promise<ChangeResult> {
  return site.register.reset(record, { ...by, action: 'reset', subject: record.identity });
}

/** As the schedule does when EC2 has reported the machine as terminated twice. */
function retireIt({ site }: Scene, record: IdentityRecord): Promise<ChangeResult> {
  const audit = { ...by, action: 'retire', subject: record.identity } as const;
  return site.store.retire(record, { nameFreeAt: Date.now() + nameGrace, audit });
}

/** As `countersign lock` does: the node name and the machine, by one lock. */
function lockIt({ site }: Scene, { identity, nodeName }: IdentityRecord): Promise<ChangeResult> {
  return site.register.lock({ ...by, identity, nodeName }, { ...by, action: 'lock', subject: identity, nodeName });
}
