/** What the attest function of one cluster does with its table, STS and EC2. */
import type { Account, World } from './account.ts';
import { attestProof } from './attest-function.ts';
import type { Concluded } from './attest-function.ts';
import type { AttestationTable } from './attestation-table.ts';
import { attestation } from '../numbers.ts';

export interface Attestations {
  /** Throws as attest() throws. */
  attest(uid: string): Promise<Concluded>;
  /** What sign reads: the locks of the key and of the node name; where a proof is demanded the verdict, then record and lock of the machine. */
  standing(uid: string): Promise<void>;
  /** A node has signed the evidence of that request now. */
  proved(uid: string): void;
}

export function createAttestations(
  { timeline, random }: World,
  account: Account,
  table: AttestationTable,
): Attestations {
  const chance = random.stream('proofs');
  const proofs = new Map<string, { readonly signedAt: number; readonly places: readonly number[] }>();
  const verdicts = new Map<string, Concluded>();
  return {
    proved(uid) {
      const places = Array.from({ length: attestation.claimItems }, () => chance.next());
      proofs.set(uid, { signedAt: timeline.now(), places });
    },
    async attest(uid) {
      const proof = proofs.get(uid);
      // No proof is demanded: only the locks of key and node are read.
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
        countRefusal: () => table.count(),
        async claim(verdict) {
          await table.transact(verdict === 'approve' ? proof.places : proof.places.slice(0, 1));
          // Two may have been on their way: the first one's stands.
          const other = verdicts.get(uid);
          if (other === undefined) verdicts.set(uid, verdict);
          return other;
        },
      });
    },
    async standing(uid) {
      await Promise.all([table.read(1), table.read(1)]);
      if (!proofs.has(uid)) return;
      await table.read(1);
      await Promise.all([table.read(1), table.read(1)]);
    },
  };
}
