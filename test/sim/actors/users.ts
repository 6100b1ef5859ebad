/** Users: they ask for themselves, approve, deny and delete, and now and then ask for what no signer signs. */
import { maxRelayedBytes } from '../../../core/kubernetes/certificate-signing-request.ts';
import { handApproved, insecureSigner, nodeSigner, userSigner } from '../scenario.ts';
import { junk, keyOf, nodeRequest, nonsense, nonsenseRequest, tooLarge, userRequest } from './requests.ts';
import { etcdBytes } from '../ports/stored.ts';
import { bootstrap, nodes, person } from './simulated-cluster.ts';
import type { Asked, Life } from './simulated-cluster.ts';

/** More than the relay works on; and with the rest of the object less than etcd takes, or just as much. */
const paddings = { large: 'x'.repeat(maxRelayedBytes), full: 'x'.repeat(etcdBytes) } as const;

export function startUsers(life: Life): void {
  const { runtime, scenario, requests, random, at, soon, sometime } = life;

  function askAsUser(name?: string): void {
    const user = random.pick(['alice', 'bob']);
    const key = 24 + random.below(4);
    const uid = life.ask({
      what: `${user} asks`,
      signerName: userSigner,
      request: userRequest(user, key),
      spki: keyOf(key).spki,
      by: person(user),
      plain: true,
      ...(name === undefined ? {} : { name }),
    });
    const called = nameOfUid(uid);
    const decision = random.chance(0.85) ? 'Approved' : 'Denied';
    soon(15_000, () => life.decide(called, uid, decision));
    if (name !== undefined || random.chance(0.7)) return;
    // Deleted in the middle, and the name given to another request.
    soon(25_000, () => {
      if (requests.find(called)?.metadata.uid !== uid) return;
      runtime.tell(() => `${called} is deleted`);
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
      if (!handApproved.has(String(object.spec['signerName'])) && random.chance(0.4))
        life.decide(object.metadata.name, object.metadata.uid, random.chance(0.9) ? 'Approved' : 'Denied');
    soon(15_000, approveNodes);
  }
  if (!scenario.approver) approveNodes();

  /** What is wrong with it is told by the request alone. */
  function askNonsense(): void {
    const key = 32 + random.below(2);
    const eve = { signerName: userSigner, spki: keyOf(key).spki, by: person('eve'), sound: false };
    const wrong = Object.keys(nonsense) as (keyof typeof nonsense)[];
    const kinds: readonly [Asked, ...Asked[]] = [
      { ...eve, what: 'eve asks something unreadable', request: junk },
      { ...eve, what: 'eve asks too much', request: tooLarge },
      { ...eve, what: 'eve asks to serve', request: userRequest('eve', key), usages: ['server auth'] },
      ...wrong.map((what) => ({ ...eve, what: `eve asks: ${what}`, request: nonsenseRequest(what, key) })),
      asNode(nodeSigner),
      ...(scenario.insecure ? [asNode(insecureSigner)] : []),
    ];
    const asked = random.pick(kinds);
    const uid = life.ask(asked);
    if (asked.signerName === userSigner) soon(10_000, () => life.decide(nameOfUid(uid), uid, 'Approved'));

    function asNode(signerName: string): Asked {
      const request = nodeRequest({ node: 'node-a', key });
      const usages = ['client auth', 'server auth'];
      return { ...eve, what: 'eve asks for other usages', signerName, request, by: bootstrap, usages };
    }
  }
  for (let number = 0; number < 2; number += 1) if (random.chance(0.5)) at(sometime(), askNonsense);

  /** Mallory has the token of those who join, and fills requests until answers hardly fit into etcd, or do not. */
  function askPadded(): void {
    const key = 34 + random.below(2);
    const padded = random.pick(['large', 'full'] as const);
    const [by, signerName] = random.pick([[bootstrap, nodeSigner] as const, [person('mallory'), userSigner] as const]);
    const asNode = signerName === nodeSigner;
    const uid = life.ask({
      what: `mallory asks, ${padded}`,
      signerName,
      request: asNode ? nodeRequest({ node: random.pick(nodes), key }) : userRequest('mallory', key),
      spki: keyOf(key).spki,
      by,
      padded,
      padding: paddings[padded],
    });
    if (!asNode) soon(10_000, () => life.decide(nameOfUid(uid), uid, 'Approved'));
  }
  if (random.chance(0.3)) for (let number = 0; number < 1 + random.below(4); number += 1) at(sometime(), askPadded);

  /** A person in a node's place: nothing but the review, or a profile that names its requesters, stops her. */
  function askAsNode(): void {
    const key = 32 + random.below(2);
    const node = random.pick(nodes);
    life.ask({
      what: `alice asks to be ${node}`,
      signerName: nodeSigner,
      request: nodeRequest({ node, key }),
      spki: keyOf(key).spki,
      by: person('alice'),
      node,
      unpermitted: true,
    });
  }
  if (random.chance(0.3)) at(sometime(), askAsNode);
}
