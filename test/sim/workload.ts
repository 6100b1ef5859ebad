/**
 * Who lives in a simulated cluster: machines that join, renew and end, people who ask, approve, deny and delete, an
 * operator with the register, and a thief with a bootstrap token, what he overheard and the relay's own credential.
 */
import { createHash } from 'node:crypto';
import type { ClusterConfiguration } from '../../core/configuration.ts';
import { decodeRequestObject } from '../../core/kubernetes.ts';
import type { JsonObject } from '../../core/ports.ts';
import { requestDigest } from '../../core/request-digest.ts';
import { ulid } from '../../core/ulid.ts';
import type { NullPlatform } from '../harness/null-provider.ts';
import type { SimulatedAttestations } from './attestations.ts';
import type { Functions } from './functions.ts';
import type { Judge, Truth } from './judge.ts';
import type { Random } from './random.ts';
import type { SimulatedRequests, Stored } from './request-api.ts';
import { types } from './request-api.ts';
import { keyOf, nodeRequest, userRequest } from './requests.ts';
import { epoch, startProcess } from './stage.ts';
import type { Stage } from './stage.ts';

export const nodeSigner = 'kubernetes.io/kube-apiserver-client-kubelet';
export const servingSigner = 'kubernetes.io/kubelet-serving';
export const userSigner = 'kubernetes.io/kube-apiserver-client';

export interface Town {
  readonly stage: Stage;
  readonly cluster: ClusterConfiguration;
  readonly platform: NullPlatform;
  readonly attestations: SimulatedAttestations;
  readonly requests: SimulatedRequests;
  readonly functions: Functions;
  readonly judge: Judge;
  readonly truths: Map<string, Truth>;
  readonly gone: Map<string, number>;
  /** Whether the relay approves node requests; otherwise people do. */
  readonly approver: boolean;
}

interface Machine {
  readonly id: string;
  readonly node: string;
  /** Its client key now; numbers of the pool. */
  key: number;
  proof: string | undefined;
  ended: boolean;
}

interface Asked {
  readonly what: string;
  readonly signerName: string;
  readonly request: string;
  readonly key: number;
  readonly by: { readonly username: string; readonly groups: readonly string[] };
  readonly genuine: boolean;
  readonly plain?: boolean;
  /** Instead of a new one. */
  readonly name?: string;
}

const bootstrap = {
  username: 'system:bootstrap:abcdef',
  groups: ['system:bootstrappers', 'system:authenticated'],
};
const nodeUser = (node: string) => ({
  username: `system:node:${node}`,
  groups: ['system:nodes', 'system:authenticated'],
});

/** Plans a life for this seed. It is over when faults are. */
export function settle(town: Town): void {
  const { stage, requests, platform, truths } = town;
  const random = stage.random.stream('life');
  const { timeline } = stage;
  const end = stage.rates.until;
  let made = 0;
  let proofs = 0;
  let keys = 0;

  /** Most of what happens happens early, so that it ends while there is trouble. */
  const sometime = (from = 0): number => from + (end - from) * random.next() ** 2;
  const at = (when: number, run: () => void): void => void timeline.after(when - timeline.now(), run);
  const soon = (milliseconds: number, run: () => void): void =>
    void timeline.after(random.between(0, milliseconds), () => stage.troubled() && run());

  function ask({ what, signerName, request, key, by, genuine, plain = false, name }: Asked): string {
    made += 1;
    const uid = uidFrom(random);
    const called = name ?? `csr-${made}`;
    const object = {
      apiVersion: 'certificates.k8s.io/v1',
      kind: 'CertificateSigningRequest',
      metadata: { name: called, uid },
      spec: {
        request,
        signerName,
        usages: ['digital signature', signerName === servingSigner ? 'server auth' : 'client auth'],
        ...by,
      },
      status: {},
    };
    const attested = signerName !== userSigner;
    const byNode = by.username.startsWith('system:node:');
    const spkiSha256 = createHash('sha256').update(keyOf(key).spki).digest('hex');
    const digest = digestOf(object, town.cluster);
    truths.set(uid, { uid, what: `${called} (${what})`, digest, spkiSha256, attested, genuine, byNode, plain });
    stage.tell(() => `${called} is created: ${what}`);
    requests.create(object);
    return uid;
  }

  // ── Machines ──────────────────────────────────────────────────────────────────────────────────────────────────────

  const machines: Machine[] = [];
  const nodes = ['node-a', 'node-b', 'node-c'] as const;

  function start(id: string, node: string): void {
    platform.machines.set(id, { nodeNames: [node], startedAt: epoch + Math.floor(timeline.now()) });
    // Now and then its disk is a copy of another's, and so is its key.
    const copied = random.chance(0.2) ? machines[random.below(machines.length)]?.key : undefined;
    const machine: Machine = { id, node, key: copied ?? keys++ % 24, proof: undefined, ended: false };
    machines.push(machine);
    stage.tell(() => `machine ${id} starts and is to be ${node}`);
    join(machine);
    // Its first answer was lost, or it believes so.
    if (random.chance(0.5)) soon(30_000, () => join(machine));
    if (random.chance(0.5)) soon(60_000, () => renew(machine));
    if (random.chance(0.7)) soon(60_000, () => serve(machine));
  }

  function join(machine: Machine): void {
    if (machine.ended) return;
    const { id, node, key } = machine;
    const proof = `proof-${++proofs}`;
    machine.proof = proof;
    const request = nodeRequest({ node, key, machine: id }, { machine: id, proof });
    const what = `${id} joins as ${node}, ${proof}`;
    ask({ what, signerName: nodeSigner, request, key, by: bootstrap, genuine: true });
  }

  /** The node itself can only ask with a certificate. */
  function renew(machine: Machine): void {
    if (machine.ended || !isNode(machine)) return;
    machine.key = keys++ % 24;
    const { id, node, key } = machine;
    const evidence = { machine: id, proof: `proof-${++proofs}` };
    const request = nodeRequest({ node, key, machine: id }, evidence);
    ask({ what: `${id} renews ${node}`, signerName: nodeSigner, request, key, by: nodeUser(node), genuine: true });
  }

  function serve(machine: Machine): void {
    if (machine.ended || !isNode(machine)) return;
    const { id, node } = machine;
    const key = keys++ % 24;
    const request = nodeRequest({ node, key, serving: true });
    const what = `${id} serves as ${node}`;
    ask({ what, signerName: servingSigner, request, key, by: nodeUser(node), genuine: true });
  }

  function isNode({ node }: Machine): boolean {
    const user = `joins as ${node},`;
    return requests
      .objects()
      .some(
        ({ metadata, status }) =>
          status['certificate'] !== undefined && truths.get(metadata.uid)?.what.includes(user) === true,
      );
  }

  function terminate(machine: Machine): void {
    if (machine.ended) return;
    machine.ended = true;
    stage.tell(() => `machine ${machine.id} is terminated`);
    platform.machines.set(machine.id, { nodeNames: [machine.node], state: 'gone' });
    town.gone.set(`null#${machine.id}`, timeline.now());
    if (random.chance(0.8)) soon(20_000, () => start(`${machine.id}x`, machine.node));
  }

  const count = 2 + random.below(4);
  for (let number = 1; number <= count; number += 1) {
    // Now and then two of them are to have one name, at one time.
    const node = random.pick(nodes);
    at(random.chance(0.3) ? 100 : sometime(), () => start(`m${number}`, node));
  }
  for (let number = 0; number < 2; number += 1)
    if (random.chance(0.4))
      at(sometime(5_000), () => {
        const machine = machines[random.below(machines.length)];
        if (machine !== undefined) terminate(machine);
      });

  // ── People ────────────────────────────────────────────────────────────────────────────────────────────────────────

  function decide(name: string, uid: string, type: 'Approved' | 'Denied'): void {
    const found = requests.find(name);
    if (found?.metadata.uid !== uid || types(found).length > 0) return;
    stage.tell(() => `somebody makes ${name} ${type}`);
    const condition = { type, status: 'True', reason: 'ByHand', message: '' };
    requests.change(name, (old) => ({ ...old, status: { ...old.status, conditions: [condition] } }));
  }

  function askAsUser(name?: string): void {
    const user = random.pick(['alice', 'bob']);
    const key = 24 + random.below(4);
    const by = { username: user, groups: ['system:authenticated'] };
    const request = userRequest(user, key);
    const what = `${user} asks`;
    const more = name === undefined ? {} : { name };
    const uid = ask({ what, signerName: userSigner, request, key, by, genuine: true, plain: true, ...more });
    const called = nameOfUid(uid);
    const decision = random.chance(0.85) ? 'Approved' : 'Denied';
    soon(15_000, () => decide(called, uid, decision));
    if (name !== undefined || random.chance(0.7)) return;
    // Deleted in the middle, and the name given to another request.
    soon(25_000, () => {
      if (requests.find(called)?.metadata.uid !== uid) return;
      stage.tell(() => `${called} is deleted`);
      requests.delete(called);
      if (random.chance(0.8)) soon(300, () => requests.find(called) === undefined && askAsUser(called));
    });
  }
  const nameOfUid = (uid: string): string =>
    requests.objects().find(({ metadata }) => metadata.uid === uid)?.metadata.name ?? '';

  for (let number = 0; number < 1 + random.below(3); number += 1) at(sometime(), () => askAsUser());

  /** By hand, whatever attest would say. */
  function approveNodes(): void {
    for (const object of requests.objects())
      if (object.spec['signerName'] !== userSigner && random.chance(0.4))
        decide(object.metadata.name, object.metadata.uid, random.chance(0.9) ? 'Approved' : 'Denied');
    soon(15_000, approveNodes);
  }
  if (!town.approver) approveNodes();

  // ── The operator ──────────────────────────────────────────────────────────────────────────────────────────────────

  async function operate(): Promise<void> {
    const records = [...town.attestations.identities.values()];
    const record = records[random.below(records.length)];
    if (record === undefined) return;
    const action = random.chance(0.5) ? 'reset' : 'revoke';
    const now = epoch + Math.floor(timeline.now());
    const id = ulid(now, random.bytes(10));
    const audit = { id, at: now, by: 'operator', action, subject: record.identity, reason: 'simulated' } as const;
    stage.tell(() => `the operator does ${action} ${record.identity}`);
    await town.attestations.register[action](record, audit);
    town.judge.registered();
  }
  for (let number = 0; number < 2; number += 1) if (random.chance(0.5)) at(sometime(3_000), () => void operate());

  // ── A client of the webhook protocol, which knows nothing of attest ───────────────────────────────────────────────

  const webhook = town.functions.connect(startProcess(stage, 'webhook'));
  const never = new AbortController().signal;
  function post(): void {
    // Any state that ever was, as something between may have kept it.
    const states = requests.history.filter(({ object }) => types(object).includes('Approved'));
    const state = states[random.below(states.length)];
    if (state !== undefined) webhook.sign(state.object, never).catch(() => {});
    soon(10_000, post);
  }
  if (random.chance(0.6)) soon(10_000, post);

  // ── The thief ─────────────────────────────────────────────────────────────────────────────────────────────────────

  const stolen = town.functions.connect(startProcess(stage, 'thief'));

  function steal(): void {
    soon(12_000, steal);
    const key = 28 + random.below(4);
    const node = random.pick(nodes);
    const joined = machines.filter(({ id, proof }) => proof !== undefined && isSpent(id));
    const victim = joined[random.below(joined.length)];
    switch (random.below(5)) {
      case 0: {
        const request = nodeRequest({ node, key, machine: 'm0' }, { machine: 'm0', proof: `proof-${++proofs}` });
        ask({
          what: `a thief as ${node}, no machine`,
          signerName: nodeSigner,
          request,
          key,
          by: bootstrap,
          genuine: false,
        });
        return;
      }
      case 1: {
        const request = nodeRequest({ node, key });
        const uid = ask({
          what: `a thief as ${node}`,
          signerName: nodeSigner,
          request,
          key,
          by: bootstrap,
          genuine: false,
        });
        forge(requests.objects().find(({ metadata }) => metadata.uid === uid));
        return;
      }
      case 2: {
        // A request is readable to many: evidence that was shown is known.
        if (victim?.proof === undefined) return;
        const { id, proof } = victim;
        const request = nodeRequest({ node: victim.node, key, machine: id }, { machine: id, proof });
        const what = `a thief with ${proof} of ${id}`;
        ask({ what, signerName: nodeSigner, request, key, by: bootstrap, genuine: false });
        return;
      }
      case 3: {
        // Likewise under the UID of a request that has its certificate, where no proof is asked.
        const object = requests
          .objects()
          .find(({ spec, status }) => spec['signerName'] === userSigner && status['certificate'] !== undefined);
        if (object !== undefined) forge({ ...object, spec: { ...object.spec, request: userRequest('eve', key) } });
        return;
      }
      default: {
        // The relay's own credential: another key under the UID of a request that was judged.
        const known = requests
          .objects()
          .filter(
            ({ metadata, spec }) => spec['signerName'] !== userSigner && town.attestations.verdicts.has(metadata.uid),
          );
        const object = known[random.below(known.length)];
        if (object === undefined) return;
        const request = nodeRequest({ node, key });
        forge({ ...object, spec: { ...object.spec, request } });
      }
    }
  }

  function forge(object: Stored | undefined): void {
    if (object === undefined) return;
    stage.tell(() => `the thief posts ${object.metadata.name} as if it were approved`);
    const conditions = [{ type: 'Approved', status: 'True', reason: 'Forged', message: '' }];
    stolen.sign({ ...object, status: { conditions } }, never).catch(() => {});
  }

  /** Only what was spent is harmless to know: the null provider binds no proof to a key. */
  function isSpent(id: string): boolean {
    const machine = machines.find((each) => each.id === id);
    return requests
      .objects()
      .some(
        ({ metadata }) =>
          truths.get(metadata.uid)?.what.endsWith(`, ${machine?.proof ?? ''})`) === true &&
          town.attestations.verdicts.get(metadata.uid)?.decision === 'approve',
      );
  }
  if (random.chance(0.7)) soon(20_000, steal);
}

function digestOf(json: JsonObject, cluster: ClusterConfiguration): string {
  const decoded = decodeRequestObject(json);
  if (!decoded.ok) throw new Error(decoded.message);
  return requestDigest(cluster.name, decoded.object, decoded.object.signerName ?? '');
}

function uidFrom(random: Random): string {
  const hex = Buffer.from(random.bytes(16)).toString('hex');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
