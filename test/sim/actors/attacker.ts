/**
 * Those who mean no good or know no better: an attacker with a bootstrap token, what he overheard and the relay's own
 * credential, and a client of the webhook protocol, which knows nothing of attest.
 */
import { insecureSigner, nodeSigner, servingSigner, userSigner } from '../scenario.ts';
import type { Machines } from './machines.ts';
import { types } from '../ports/stored.ts';
import type { Stored } from '../../harness/kubernetes/request-server.ts';
import type { NullDevice } from '../../harness/attestation/null-provider.ts';
import { awaitChallenge } from './tpm.ts';
import { keyOf, nodeRequest, userRequest } from './requests.ts';
import type { SentEvidence } from './requests.ts';
import { startProcess } from '../runtime.ts';
import { bootstrap, nodes, nodeUser } from './simulated-cluster.ts';
import type { Life } from './simulated-cluster.ts';

const never = new AbortController().signal;

export function settleWebhook(life: Life): void {
  const { requests, random, soon } = life;
  const webhook = life.connect(startProcess(life.runtime, 'webhook'));

  function post(): void {
    // Any state that ever was, as something between may have kept it.
    const states = requests.history.filter(({ object }) => types(object).includes('Approved'));
    const state = states[random.below(states.length)];
    if (state !== undefined) webhook.sign(state.object, never).catch(() => {});
    // And an unapproved request, which is refused.
    const pending = requests.objects().find((object) => types(object).length === 0);
    if (pending !== undefined && random.chance(0.2)) webhook.sign(pending, never).catch(() => {});
    const elsewhere = { spec: { ...state?.object.spec, signerName: 'example.com/elsewhere' } };
    if (state !== undefined && random.chance(0.1))
      webhook.sign({ ...state.object, ...elsewhere }, never).catch(() => {});
    soon(10_000, post);
  }
  if (random.chance(0.6)) soon(10_000, post);
}

export function startAttacker(life: Life, machines: Machines): void {
  const { runtime, scenario, requests, random, soon } = life;
  const stolen = life.connect(startProcess(runtime, 'attacker'));

  function ask(what: string, node: string, evidence?: SentEvidence): string {
    const key = 28 + random.below(4);
    return life.ask({
      what,
      signerName: nodeSigner,
      request: nodeRequest({ node, key, ...(evidence === undefined ? {} : { machine: evidence.machine }) }, evidence),
      spki: keyOf(key).spki,
      by: bootstrap,
      evidence: evidence !== undefined,
      node,
    });
  }

  function ownTpm(challenge?: string): { readonly device?: NullDevice } {
    if (!scenario.tpm) return {};
    const device = { akName: 'ak of the thief', resetCount: 9, clock: 9_000_000 };
    return { device: { ...device, ...(challenge === undefined ? {} : { answer: { challenge, secret: 'guessed' } }) } };
  }

  /** The endorsement key of a machine is no secret: the thief names it, and quotes with a key of their own TPM. */
  function withOwnTpm(): void {
    const victim = machines.all[random.below(machines.all.length)];
    if (victim === undefined) return;
    const { id, node } = victim;
    const uid = ask(`an attacker as ${id} with a TPM of their own`, node, {
      machine: id,
      proof: machines.proof(),
      ...ownTpm(),
    });
    awaitChallenge(life, uid, (challenge) => {
      const evidence = { machine: id, proof: machines.proof(), ...ownTpm(challenge) };
      ask(`an attacker answers a challenge of ${id}`, node, evidence);
    });
  }

  const deeds: readonly [() => void, ...(() => void)[]] = [
    function withoutMachine(): void {
      const node = random.pick(nodes);
      ask(`an attacker as ${node}, no machine`, node, { machine: 'm0', proof: machines.proof(), ...ownTpm() });
    },
    function withoutProof(): void {
      const node = random.pick(nodes);
      const uid = ask(`an attacker as ${node}`, node);
      forge(requests.objects().find(({ metadata }) => metadata.uid === uid));
    },
    function ofAnotherKind(): void {
      const node = random.pick(nodes);
      ask(`an attacker as ${node} with proof of another kind`, node, { machine: 'm1', version: 'null/v9' });
    },
    /** A request is readable to many: evidence that was shown is known. */
    function withProofOfAnother(): void {
      const victims = machines.all.filter(({ shown }) => shown !== undefined && isSpent(shown.proof));
      const victim = victims[random.below(victims.length)];
      if (victim?.shown === undefined) return;
      ask(`an attacker with ${victim.shown.proof} of ${victim.id}`, victim.node, victim.shown);
    },
    /** The relay's own credential, and the UID of a request that has its certificate, where no proof is asked. */
    function underAnIssuedUid(): void {
      const object = requests
        .objects()
        .find(({ spec, status }) => spec['signerName'] === userSigner && status['certificate'] !== undefined);
      const request = userRequest('eve', 28 + random.below(4));
      if (object !== undefined) forge({ ...object, spec: { ...object.spec, request } });
    },
    /** Likewise another key under the UID of a request that was judged. */
    function underAJudgedUid(): void {
      const known = requests
        .objects()
        .filter(
          ({ metadata, spec }) => spec['signerName'] !== userSigner && life.attestations.verdicts.has(metadata.uid),
        );
      const object = known[random.below(known.length)];
      if (object === undefined) return;
      const key = 28 + random.below(4);
      const node = random.pick(nodes);
      const sans = object.spec['signerName'] === nodeSigner ? {} : { sans: { dns: [node] } };
      forge({ ...object, spec: { ...object.spec, request: nodeRequest({ node, key, ...sans }) } });
    },
    /** A name without a machine, with the credentials of a node of that name. */
    function asUnknownNode(): void {
      const key = 28 + random.below(4);
      life.ask({
        what: 'an attacker serves as node-z',
        signerName: servingSigner,
        request: nodeRequest({ node: 'node-z', key, sans: { dns: ['node-z'] } }),
        spki: keyOf(key).spki,
        by: nodeUser('node-z'),
        genuine: true,
        node: 'node-z',
        names: ['node-z'],
      });
    },
  ];

  /**
   * An attacker with the relay's credential gets whatever is signed without proof. They get nothing only where proof is
   * demanded from the beginning to the end.
   */
  function forge(object: Stored | undefined): void {
    if (object === undefined) return;
    const signerName = String(object.spec['signerName']);
    const evidence = life.truthOf(object)?.evidence === true;
    const enforced = scenario.epochs.every(({ demands }) => {
      const demand = demands.get(signerName);
      return (
        demand?.mode === 'enforce' && (demand.required || (evidence && object === requests.find(object.metadata.name)))
      );
    });
    const answered = signerName === userSigner && object.status['certificate'] !== undefined;
    if (signerName === insecureSigner || !(enforced || answered)) return;
    runtime.tell(() => `the attacker posts ${object.metadata.name} as if it were approved`);
    const conditions = [{ type: 'Approved', status: 'True', reason: 'Forged', message: '' }];
    stolen.sign({ ...object, status: { conditions } }, never).catch(() => {});
  }

  /** Only what was spent is harmless to know: the null provider binds no proof to a key. */
  function isSpent(proof: string): boolean {
    return requests
      .objects()
      .some(
        (object) =>
          life.truthOf(object)?.proof === proof &&
          life.attestations.verdicts.get(object.metadata.uid)?.decision === 'approve',
      );
  }

  function steal(): void {
    soon(12_000, steal);
    if (scenario.tpm && random.chance(0.3)) withOwnTpm();
    else random.pick(deeds)();
  }
  if (random.chance(0.7)) soon(20_000, steal);
}
