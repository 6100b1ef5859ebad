/** Removals that change no answer to anybody, each with the reason. Whatever is not here must be needed by a case. */
export interface Equivalent {
  readonly file: string;
  readonly without: string;
  /** Where that stands in more than one statement. */
  readonly check?: string;
  readonly because: string;
}

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
    file: 'admission.ts',
    without: 'serving → true',
    because: 'the profiles of node client certificates refuse names before this, so there are none to look for',
  },
  {
    file: 'admission.ts',
    without: "'renewal'",
    check: "case 'renewal':",
    because: 'what is not said to be a first key is none',
  },
  {
    file: 'admission.ts',
    without: "'restart'",
    check: "case 'restart': return false;",
    because: 'likewise',
  },
  {
    file: 'tofu.ts',
    without: 'startedAt !== undefined',
    because: 'nothing is later than undefined: the comparison is false, and the type does not know',
  },
  {
    file: 'tofu.ts',
    without: 'record.startedAt !== undefined',
    because: 'likewise',
  },
];
