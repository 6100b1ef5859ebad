/** Removals that change no answer to anybody, each with the reason. Whatever is not here must be needed by a case. */
import type { Equivalent } from '../../harness/removals/judge.ts';

export const equivalent: readonly Equivalent[] = [
  {
    file: 'attest.ts',
    without: "decision === 'approve'",
    because:
      'whoever reads a verdict back insists that it has violations exactly when it is no approval: the type does not know',
  },
  {
    file: 'attest.ts',
    without: 'violations === undefined',
    because: 'the other half of the same',
  },
  {
    file: 'attest.ts',
    without: 'identity === undefined → false',
    because:
      'an approval on record has an identity; of a field that is undefined and one that is absent, the answer tells the same',
  },
  {
    file: 'attestation/admission.ts',
    without: 'serving → true',
    because: 'the profiles of node client certificates refuse names before this, so there are none to look for',
  },
  {
    file: 'attestation/admission.ts',
    without: "'renewal'",
    check: "case 'renewal':",
    because: 'what is not said to be a first key is none',
  },
  {
    file: 'attestation/admission.ts',
    without: "'restart'",
    check: "case 'restart': return false;",
    because: 'likewise',
  },
  {
    file: 'attest.ts',
    without: 'admission.admitted === true → false',
    because: 'who is let in brings no observation: the type does not know',
  },
  {
    file: 'attestation/admission.ts',
    without: 'observed === undefined → false',
    because: 'of a field that is undefined and one that is absent, whoever reads it takes the same',
  },
  {
    file: 'attestation/second-look.ts',
    without: 'mark !== undefined',
    because: 'the distance from undefined is no number, and compares to nothing: the type does not know',
  },
  {
    file: 'attestation/second-look.ts',
    without: 'startedAt === undefined',
    because: 'nothing is later than undefined: the comparison is false, and the type does not know',
  },
  {
    file: 'attestation/second-look.ts',
    without: 'record.startedAt === undefined',
    because: 'likewise',
  },
  {
    file: 'attest.ts',
    without: 'attestation === undefined → false',
    because:
      'where nothing is attested, what was recalled is not looked at: only a call is saved, which the call budget counts',
  },
  {
    file: 'attest.ts',
    without: 'attestation === undefined',
    check: 'if (attestation === undefined || recalled === undefined) return approved;',
    because: 'where nothing is attested, nothing is recalled',
  },
  {
    file: 'attest.ts',
    without: 'recalled === undefined',
    because: 'where something is attested, something is recalled: the type does not say so',
  },
  {
    file: 'attestation/admission.ts',
    without: '→ true',
    check: 'allowRestart: provider.restartWindow !== undefined',
    because: 'a provider without a window has one of no length, in which no restart is let in',
  },
  {
    file: 'attestation/admission.ts',
    without: 'unfit !== undefined',
    because:
      'of a stock kubelet: the holder of a node name is active, since one transaction retires a machine and passes its name on',
  },
];
