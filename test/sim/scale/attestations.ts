/** What the attest function of one cluster does with its table, STS and EC2. */
import type { Account, World } from './account.ts';
import { attestProof } from './attest-function.ts';
import type { Concluded } from './attest-function.ts';
import type { AttestationTable } from './attestation-table.ts';
import { attestation } from './numbers.ts';

export interface Attestations {
  /** Throws as attest() throws. */
  attest(uid: string): Promise<Concluded>;
  /** What sign reads of it: the verdict, then the machine's record. Nothing where nobody proved anything. */
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
      // Nobody has to prove anything: judged by the profile, and no call made.
      if (proof === undefined) return 'approve';
      return attestProof({
        async findVerdict() {
          await table.read(1);
          return verdicts.get(uid);
        },
        fresh: () => timeline.now() - proof.signedAt <= attestation.freshMilliseconds,
        look: () => table.read(attestation.lookUnits),
        callerIdentity: account.callerIdentity,
        describeInstance: account.describeInstance,
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
      if (!proofs.has(uid)) return;
      await table.read(1);
      await table.read(1);
    },
  };
}
