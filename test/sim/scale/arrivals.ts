/** Who asks one cluster for certificates: people whose requests are approved already, and nodes that join or renew. */
import type { World } from './aws/account.ts';
import type { ApiServer } from './api-server.ts';
import type { Attestations } from './aws/attestations.ts';
import type { Pairs } from './certificate.ts';
import { attestation } from './numbers.ts';

/**
 * `approved`: of users, by another approver. `join`: a node with a bootstrap token and a proof. `renewal`: of a node in the
 * cluster, approved by another approver. `serving`: of a node, pending, for a signer that demands no proof. `nodeServing`: of a node
 * that has just joined, for the signer of its stock kubelet, which demands that its machine is on record.
 */
export const kinds = ['approved', 'join', 'renewal', 'serving', 'nodeServing'] as const;
export type Kind = (typeof kinds)[number];

export const signers = {
  approved: 'kubernetes.io/kube-apiserver-client',
  join: 'kubernetes.io/kube-apiserver-client-kubelet',
  renewal: 'example.com/renewal',
  serving: 'kubernetes.io/kubelet-serving',
  nodeServing: 'example.com/kubelet-serving',
} as const satisfies Readonly<Record<Kind, string>>;

/** Of a request by its name. */
export const uidOf = (name: string): string => `uid-${name}`;

export interface Life {
  readonly kind: Kind;
  readonly requester: string;
  readonly from: number;
  /** When its certificate was stored. */
  until?: number;
  /** Requests that it took. */
  asked: number;
}

export interface Arrivals {
  readonly lives: readonly Life[];
  readonly waiting: number;
  /** Now. `name`: of the request, and of the node that makes it. */
  ask(kind: Kind, name: string, requester: string): void;
}

export function createArrivals(
  { timeline }: Pick<World, 'timeline'>,
  api: ApiServer,
  attestations: Attestations,
  pairs: Pairs,
  /** Whether each node that has joined asks for a serving certificate, and when. */
  servesAfter?: () => number,
): Arrivals {
  const lives: Life[] = [];
  const latest = new Map<Life, string>();
  let waiting = 0;

  function ask(kind: Kind, name: string, requester: string): void {
    const life: Life = { kind, requester, from: timeline.now(), asked: 0 };
    lives.push(life);
    waiting += 1;
    if (kind === 'join') join(life, name, attestation.patienceMilliseconds);
    else post(life, name, () => {});
  }

  /** As kubelet-authenticator: fresh evidence after a refusal, and after a while without a decision. */
  function join(life: Life, name: string, patience: number): void {
    // Another request of the same node counts from then on, and the earlier one is left lying.
    const uid = post(life, `${name}-${life.asked}`, (how) => {
      if (uid !== latest.get(life)) return;
      cancel();
      if (how === 'denied') timeline.after(attestation.againMilliseconds, () => join(life, name, patience));
    });
    attestations.proved(uid, name);
    const cancel = timeline.after(patience, () => {
      if (life.until === undefined) join(life, name, patience * 2);
    });
  }

  /** The request counts as waiting since its node has joined. */
  function serve({ requester }: Life, name: string): void {
    const life: Life = { kind: 'nodeServing', requester, from: timeline.now(), asked: 0 };
    lives.push(life);
    const node = name.slice(0, name.lastIndexOf('-'));
    attestations.served(
      post(life, `serving-${node}`, () => {}),
      node,
    );
  }

  function post(life: Life, name: string, ended: (how: 'issued' | 'denied') => void): string {
    const { kind } = life;
    const { request, usages } = pairs[kind];
    const uid = uidOf(name);
    life.asked += 1;
    latest.set(life, uid);
    api.create({
      name,
      uid,
      requester: kind === 'join' || kind === 'approved' ? life.requester : nodeUser,
      groups: groups[kind],
      signerName: signers[kind],
      usages,
      request,
      approved: kind === 'approved' || kind === 'renewal',
      ended(how) {
        // What comes of a request that its node has given up is of no use to it.
        if (how === 'issued' && life.until === undefined && (kind !== 'join' || uid === latest.get(life))) {
          life.until = timeline.now();
          if (kind === 'join' && servesAfter !== undefined) timeline.after(servesAfter(), () => serve(life, name));
          else waiting -= 1;
        }
        ended(how);
      },
    });
    return uid;
  }

  return {
    lives,
    get waiting() {
      return waiting;
    },
    ask,
  };
}

export const nodeUser = 'system:node:scale';
const groups: Readonly<Record<Kind, readonly string[]>> = {
  approved: ['system:authenticated'],
  join: ['system:bootstrappers', 'system:authenticated'],
  renewal: ['system:nodes', 'system:authenticated'],
  serving: ['system:nodes', 'system:authenticated'],
  nodeServing: ['system:nodes', 'system:authenticated'],
};
