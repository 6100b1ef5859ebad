/** Removals that change no answer, each with the reason. Every other one must be needed by a case. */
import type { Equivalent } from '../../harness/removals/judge.ts';

export const equivalent: readonly Equivalent[] = [
  {
    file: 'issue.ts',
    without: 'identity !== undefined',
    check: 'firstKey === true && identity !== undefined',
    because: 'a first key is reported together with its identity only: the type does not say so',
  },
  {
    file: 'x509/certificate-request.ts',
    without: "'problem' in element",
    because: 'what could not be read has no tag either, and the tag is compared next',
  },
  {
    file: 'x509/distinguished-name.ts',
    without: String.raw`/[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\ufffc\ufffd]|(?! )\p{Zs}/u`,
    because: 'it is evaluated when the module is loaded, before any check is removed; its use is removed instead',
  },
];
