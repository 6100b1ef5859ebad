/** Two first uses at once, of one thing, both having looked before either writes: exactly one may win. */
import { deepStrictEqual, strictEqual } from 'node:assert/strict';
import type { AttestationStore, Claim, Lookup } from '../../core/ports/attestation-store.ts';
import { now, sceneOf, spent } from './attestation-scene.ts';
import type { Scene, StoreUnderTest } from './attestation-scene.ts';

export const raceKinds = ['node name', 'machine', 'proof', 'address'] as const;
export type RaceKind = (typeof raceKinds)[number];

export interface Racer {
  readonly claim: Claim;
  readonly look: Lookup;
}

/** What two requests would write that have nothing in common but this. */
export function racersFor(kind: RaceKind, scene: Scene): readonly [Racer, Racer] {
  const { a, b, n, m, p, q, x, y } = scene;
  const shared = {
    'node name': { second: b, secondNode: n },
    machine: { second: a, secondNode: m },
    proof: { second: b, secondNode: m },
    address: { second: b, secondNode: m },
  }[kind];
  const first = { identity: a, nodeName: n, addresses: [x] };
  const second = { identity: shared.second, nodeName: shared.secondNode, addresses: [kind === 'address' ? x : y] };
  return [
    racer(scene, scene.first({ once: [spent(p, 'aa')] }, first)),
    racer(scene, scene.first({ once: [spent(kind === 'proof' ? p : q, 'bb')] }, second)),
  ];
}

function racer({ n }: Scene, claim: Claim): Racer {
  const record = claim.identity.kind === 'none' ? undefined : claim.identity.record;
  const { identity, nodeName = n, addresses = [] } = record ?? {};
  const look = { now, nodeName, once: claim.once, addresses, machines: [] };
  return { claim, look: identity === undefined ? look : { ...look, identity } };
}

/** One race between two handles, the racer `ahead` sent first. Gives which one won. */
async function race(
  kind: RaceKind,
  made: StoreUnderTest,
  handles: readonly [AttestationStore, AttestationStore],
  ahead: 0 | 1 = 0,
): Promise<0 | 1> {
  const scene = sceneOf(made);
  const racers = racersFor(kind, scene);
  const order = ahead === 0 ? ([0, 1] as const) : ([1, 0] as const);
  const seen = await Promise.all(order.map((i) => handles[i].lookup(racers[i].look)));
  deepStrictEqual(seen, [nothing, nothing]);
  const wins = [false, false];
  await Promise.all(
    order.map(async (i) => {
      wins[i] = (await handles[i].claim(racers[i].claim, now)).kind === 'written';
    }),
  );
  return judge(scene, racers, wins);
}

/** Exactly one was written, and of the other nothing at all. */
export async function judge(
  { store }: Scene,
  racers: readonly [Racer, Racer],
  wins: readonly boolean[],
): Promise<0 | 1> {
  strictEqual(wins.filter(Boolean).length, 1, `${wins.filter(Boolean).length} of two first uses were written`);
  const winner = wins[0] === true ? 0 : 1;
  const [won, lost] = [racers[winner], racers[1 - winner] ?? racers[0]];
  const { identity: write, once, verdict, newAddresses } = won.claim;
  if (write.kind === 'none') throw new TypeError('the winner claims no identity');
  const after = await store.lookup(won.look);
  deepStrictEqual(after, {
    identity: write.record,
    once: once.map(({ requestSha256 }) => requestSha256),
    addresses: newAddresses.map(() => write.record.identity),
    listed: false,
  });
  strictEqual(await store.findVerdict(lost.claim.verdict.uid, now), undefined);
  deepStrictEqual(await store.findVerdict(verdict.uid, now), verdict);
  const { identity, nodeName } = lost.look;
  if (identity !== write.record.identity) strictEqual(await store.findIdentity(identity ?? ''), undefined);
  if (nodeName !== write.record.nodeName) strictEqual(await store.findNode(nodeName), undefined);
  return winner;
}

const nothing = { once: [undefined], addresses: [undefined], listed: false };

/** Many rounds, some at a time, now one racer ahead and now the other. Gives how often each of them won. */
export async function raceMany(
  kind: RaceKind,
  made: StoreUnderTest,
  { rounds, atOnce }: { readonly rounds: number; readonly atOnce: number },
): Promise<readonly [number, number]> {
  const [one, two] = [made.store, (await made.reopen()).store];
  const wins: [number, number] = [0, 0];
  let begun = 0;
  const work = async (): Promise<void> => {
    while (begun < rounds) {
      begun += 1;
      // Each racer on each handle, each of them ahead.
      const handles = begun % 4 < 2 ? ([one, two] as const) : ([two, one] as const);
      wins[await race(kind, made, handles, begun % 2 === 0 ? 0 : 1)] += 1;
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  return wins;
}
