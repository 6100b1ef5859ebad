/**
 * What must come of requests whatever fails on the way, with any store: a machine's first use, its renewal and
 * its serving certificate each happen once; of two machines that want one name, one gets it, and the other is told so.
 */
import { X509Certificate } from 'node:crypto';
import { expect } from 'vitest';
import type { AttestationStore } from '../../core/ports/attestation-store.ts';
import { audience, awsSettings, prove, requestFor, signers } from '../harness/attestation/attested-site.ts';
import type { AwsPlatform, Functions, Said, SiteOptions } from '../harness/attestation/attested-site.ts';
import type { FakeInstance } from '../harness/fake-aws/machine/instance.ts';
import { newKey } from '../harness/x509/requests.ts';

const attested = { ca: 'ca', maxTtl: '1d', attestation: { providers: ['aws'] } };
export const storyClusters: SiteOptions['clusters'] = {
  prod: {
    profiles: { [signers.client]: attested, [signers.serving]: attested },
    attestation: { audience: audience('prod'), aws: awsSettings, addressRanges: ['192.168.0.0/24'] },
  },
};

export interface Actors {
  /** What each brings, made once: its proof outlives the runs. */
  readonly workers: readonly { readonly instance: FakeInstance; readonly first: string; readonly renewal: string }[];
}

export function createActors(platform: AwsPlatform): Actors {
  const workers = [1, 2].map(() => {
    const instance = platform.launch('worker-1', { privateIp: '10.0.0.7' });
    const [first, renewal] = [0, 1].map(() => prove(platform, instance, { key: newKey('P-256') }).request);
    return { instance, first: first ?? '', renewal: renewal ?? '' };
  });
  return { workers };
}

/** A worker that may die, and the one that takes its place. */
export interface Stage {
  readonly failing: Functions;
  readonly healthy: Functions;
  readonly dead: () => boolean;
  /** Until every lease is over, and no proof is too old. */
  readonly passTime: () => void;
  readonly store: Pick<AttestationStore, 'findNode' | 'findIdentity'>;
}

/** As the relay does: again while it is busy, and elsewhere when there is no answer any more. */
async function until(stage: Stage, ask: (functions: Functions) => Promise<Said>): Promise<Said> {
  for (let tries = 0; tries < 8; tries += 1) {
    const heard = !stage.dead();
    const answer = await ask(heard ? stage.failing : stage.healthy);
    // The answer of a dead worker does not arrive.
    if (answer.said !== 'busy' && (!heard || !stage.dead())) return answer;
    stage.passTime();
  }
  throw new Error('never answered');
}

/** On arrival, and once approved. `straight`: attest was not asked before sign asked it. */
async function run(stage: Stage, object: object, way: 'arrival' | 'straight'): Promise<readonly Said[]> {
  const attested = way === 'straight' ? [] : [await until(stage, (functions) => functions.attest(object))];
  return [...attested, await until(stage, (functions) => functions.sign(object))];
}

export async function oneMachine(
  stage: Stage,
  { workers: [worker] }: Actors,
  way: 'arrival' | 'straight',
): Promise<void> {
  if (worker === undefined) throw new Error('no worker');
  const objects = [
    requestFor({ request: worker.first }),
    requestFor({ request: worker.renewal, by: 'node' }),
    requestFor({ signerName: signers.serving, by: 'node', csr: { sans: { ip: ['192.168.0.7'] } } }),
  ];
  for (const object of objects) {
    const said = await run(stage, object, way);
    expect(said.map((each) => each.said)).toEqual(way === 'straight' ? ['issued'] : ['approve', 'issued']);
    // Once more, without faults: the very same certificate.
    const again = await stage.healthy.sign(object);
    expect(again.certificatePem).toBe(said.at(-1)?.certificatePem);
    expect(new X509Certificate(again.certificatePem ?? '').subject).toContain('CN=system:node:worker-1');
  }
  expect(await stage.store.findNode('worker-1')).toMatchObject({
    identity: identityOf(worker.instance),
    state: 'active',
    renewals: 1,
    uses: 3,
    rev: 3,
    addresses: ['192.168.0.7'],
  });
}

export async function twoMachines(stage: Stage, { workers }: Actors, way: 'arrival' | 'straight'): Promise<void> {
  const objects = workers.map(({ first }) => requestFor({ request: first }));
  const ends = await Promise.all(objects.map((object) => run(stage, object, way)));
  expect(ends.map((said) => said.at(-1)?.said ?? '').toSorted()).toEqual(['TofuNodeTaken', 'issued']);
  if (way === 'arrival')
    expect(ends.map(([said]) => said?.said ?? '').toSorted()).toEqual(['TofuNodeTaken', 'approve']);
  for (const [index, object] of objects.entries())
    expect((await stage.healthy.sign(object)).said).toBe(ends[index]?.at(-1)?.said);
  const [first, second] = await Promise.all(
    workers.map(({ instance }) => stage.store.findIdentity(identityOf(instance))),
  );
  const [holder, ...others] = [first, second].filter((record) => record !== undefined);
  expect(others).toEqual([]);
  expect(holder).toMatchObject({ nodeName: 'worker-1', uses: 1, rev: 1 });
  expect(await stage.store.findNode('worker-1')).toEqual(holder);
}

function identityOf({ account, region, instanceId }: FakeInstance): string {
  return `aws#aws/${account}/${region}/${instanceId}`;
}
