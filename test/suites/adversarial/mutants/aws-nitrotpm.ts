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
  cases: ['test/unit/core/attestation/aws-nitrotpm/provider.test.ts', 'test/unit/core/attestation/registrar.test.ts'],
};
