/** Mutants of heart.ts that change no answer, each with the reason. A case must catch every other one. */
import type { Equivalent } from '../../../../harness/mutants/subject.ts';

export const equivalent: readonly Equivalent[] = [
  {
    file: 'core/attestation/admission.ts',
    without: 'evidence.provider === provider → true',
    because:
      'only the providers of EC2 share identities, and both of them ask STS and EC2’s key again; the cases of this subject have no machine of both',
  },
  {
    file: 'core/attestation/first-use.ts',
    without: 'described === undefined → false',
    because: 'a record with a field that is undefined is stored without it',
  },
  {
    file: 'core/attest.ts',
    without: "decision === 'approve'",
    because:
      'the reader of a stored verdict checks that it has violations exactly when it is a denial; the type does not say so',
  },
  {
    file: 'core/attest.ts',
    without: 'violations === undefined',
    because: 'the same: a denial has violations',
  },
  {
    file: 'core/attest.ts',
    without: 'identity === undefined → false',
    because:
      'a recorded approval has an identity; the answer is the same with a field that is undefined and with no field',
  },
  {
    file: 'core/attestation/admission.ts',
    without: 'serving → true',
    because:
      'the profiles of node client certificates refuse requests with names before this, so that there are no names',
  },
  {
    file: 'core/attestation/first-use.ts',
    without: "'renewal'",
    check: "case 'renewal':",
    because: 'a key is a first key only where firstKey is true, and undefined is not true',
  },
  {
    file: 'core/attestation/first-use.ts',
    without: "'restart'",
    check: "case 'restart': return false;",
    because: 'the same',
  },
  {
    file: 'core/attest.ts',
    without: "admission.kind === 'admitted' → false",
    because: 'an admission has no observation; the type does not say so',
  },
  {
    file: 'core/attest.ts',
    without: "admission.kind === 'refused'",
    check:
      "if (admission.kind === 'refused' && admission.transient === true) return answer(verdict, question.wanted.mode, false);",
    because: 'only a refusal is transient; the type checker wants the check',
  },
  {
    file: 'core/attestation/second-look.ts',
    without: 'mark !== undefined',
    because:
      'a difference from undefined is NaN, and every comparison with NaN is false; the type checker wants the check',
  },
  {
    file: 'core/attestation/second-look.ts',
    without: 'startedAt === undefined',
    because: 'every comparison with undefined is false; the type checker wants the check',
  },
  {
    file: 'core/attestation/second-look.ts',
    without: 'record.startedAt === undefined',
    because: 'the same',
  },
  {
    file: 'core/attest.ts',
    without: 'attestation === undefined → false',
    because:
      'where no attestation is configured, recalled records are not used: the check saves a call, and test/suites/control-plane/counting counts calls',
  },
  {
    file: 'core/attest.ts',
    without: 'attestation === undefined',
    check: 'if (attestation === undefined || recalled === undefined) return approved;',
    because: 'where no attestation is configured, no record is recalled',
  },
  {
    file: 'core/attest.ts',
    without: 'recalled === undefined',
    because: 'where attestation is configured, the records are recalled; the type does not say so',
  },
  {
    file: 'core/attestation/admission.ts',
    without: '→ true',
    check: 'allowRestart: provider.restartWindow !== undefined',
    because: 'the restart window of a provider without one has no length, so that no restart is admitted in it',
  },
  {
    file: 'core/attest.ts',
    without: "checked.kind === 'unreadable'",
    because: 'an unreadable request has violations, which deny it two lines below; the type does not say so',
  },
  {
    file: 'core/read-and-check-request.ts',
    without: 'signerName === undefined',
    because: 'a readable request has a signer name, or a default one; the type does not say so',
  },
  {
    file: 'core/attestation/admission.ts',
    without: "evidence.kind === 'record'",
    because: 'only serving requests may come without evidence; the type does not say so',
  },
  {
    file: 'core/attestation/admission.ts',
    without: "evidence.kind === 'evidence' → true",
    because: 'a request without evidence has no examined evidence either: the field is undefined',
  },
];
