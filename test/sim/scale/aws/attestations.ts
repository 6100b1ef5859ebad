/** What the attest function of one cluster does with its table, STS and EC2. */
import type { Account, World } from './account.ts';
import { attestProof, attestServing } from './attest-function.ts';
import type { Concluded } from './attest-function.ts';
import type { AttestationTable } from './attestation-table.ts';
import { attestation } from '../numbers.ts';

export interface Attestations {
  /** Throws as attest() throws. */
  attest(uid: string): Promise<Concluded>;
  /** What sign reads: the locks of the key and of the node name; where a proof is demanded the verdict, then record and lock of the machine. */
  standing(uid: string): Promise<void>;
  /** A node has signed the evidence of that request now. */
  proved(uid: string, node: string): void;
  /** That request is of a node on record, for its serving certificate. */
  served(uid: string, node: string): void;
}

interface Proof {
  readonly node: string;
  readonly signedAt: number;
  readonly places: readonly number[];
}

export function createAttestations(
  { timeline, random }: World,
  account: Account,
  table: AttestationTable,
): Attestations {
  const chance = random.stream('proofs');
  const proofs = new Map<string, Proof>();
  const servings = new Map<string, { readonly node: string; readonly places: readonly number[] }>();
  /** By node: when EC2 was asked about it last, as its record has it. */
  const seen = new Map<string, number>();
  const verdicts = new Map<string, Concluded>();
  async function serve(uid: string, { node, places }: { node: string; places: readonly number[] }): Promise<Concluded> {
    const startedAt = timeline.now();
    let lookedAt = seen.get(node);
    return attestServing({
      findLock: () => table.read(1),
      async recall() {
        await table.read(attestation.recallUnits);
        return verdicts.get(uid);
      },
      async lookup() {
        await table.read(attestation.holderUnits);
        await table.read(attestation.servingLookUnits);
        lookedAt = seen.get(node);
      },
      seen: () => lookedAt !== undefined && startedAt - lookedAt < attestation.seenMilliseconds,
      async describeInstance() {
        await account.describeInstance();
        lookedAt = startedAt;
      },
      async claim(verdict) {
        await table.transact(places);
        const other = verdicts.get(uid);
        if (other === undefined) verdicts.set(uid, verdict);
        if (other === undefined && lookedAt !== undefined) seen.set(node, lookedAt);
        return other;
      },
    });
  }

  return {
    proved(uid, node) {
      const places = Array.from({ length: attestation.claimItems }, () => chance.next());
      proofs.set(uid, { node, signedAt: timeline.now(), places });
    },
    served(uid, node) {
      servings.set(uid, { node, places: Array.from({ length: attestation.servingItems }, () => chance.next()) });
    },
    async attest(uid) {
      const proof = proofs.get(uid);
      const serving = servings.get(uid);
      if (serving !== undefined) return serve(uid, serving);
      // No proof is demanded: only the locks of key and node are read.
      const startedAt = timeline.now();
      if (proof === undefined) {
        await Promise.all([table.read(1), table.read(1)]);
        return 'approve';
      }
      return attestProof({
        findLock: () => table.read(1),
        async recall() {
          await table.read(attestation.recallUnits);
          return verdicts.get(uid);
        },
        fresh: () => timeline.now() - proof.signedAt <= attestation.freshMilliseconds,
        lookup: () => table.read(attestation.lookUnits),
        callerIdentity: account.callerIdentity,
        describeInstance: account.describeInstance,
        async claim(verdict) {
          await table.transact(verdict === 'approve' ? proof.places : proof.places.slice(0, 1));
          // Two may have been on their way: the first one's stands.
          const other = verdicts.get(uid);
          if (other === undefined) verdicts.set(uid, verdict);
          if (other === undefined && verdict === 'approve') seen.set(proof.node, startedAt);
          return other;
        },
      });
    },
    async standing(uid) {
      await Promise.all([table.read(1), table.read(1)]);
      if (!proofs.has(uid) && !servings.has(uid)) return;
      await table.read(1);
      await Promise.all([table.read(1), table.read(1)]);
    },
  };
}
