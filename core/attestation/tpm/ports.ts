/** What the tpm provider needs from outside core/. */
import type { ChallengeKey } from '../../ports/challenge-key.ts';
import type { MachineEntry } from '../../ports/attestation-store.ts';

export interface TpmPorts {
  readonly challengeKey: ChallengeKey;
  randomBytes(count: number): Uint8Array;
  /** The operator's list: AttestationStore.findMachine. */
  findMachine(name: string): Promise<MachineEntry | undefined>;
}
