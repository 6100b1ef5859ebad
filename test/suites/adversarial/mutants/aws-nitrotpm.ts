/** Every check of the aws-nitrotpm provider besides those of aws and tpm, which have subjects of their own. */
import type { Subject } from '../../../harness/mutants/subject.ts';

export const subject: Subject = {
  module: import.meta.filename,
  checkedFiles: [
    'core/attestation/aws-nitrotpm/evidence.ts',
    'core/attestation/aws-nitrotpm/provider.ts',
    'core/attestation/evidence/registrar.ts',
  ],
  choices: true,
  changes: [],
  equivalent: [
    {
      file: 'core/attestation/aws-nitrotpm/provider.ts',
      without: 'confirm === undefined → false',
      because:
        'only evidence with an identity document has no confirm, and this provider takes none; the type does not say so',
    },
  ],
  cases: ['test/unit/core/attestation/aws-nitrotpm/provider.test.ts', 'test/unit/core/attestation/registrar.test.ts'],
};
