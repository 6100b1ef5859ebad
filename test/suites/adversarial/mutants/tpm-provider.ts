/** Every check of the tpm provider and of its parsers. */
import type { Subject } from '../../../harness/mutants/subject.ts';

const files = [
  'attestation-key.ts',
  'challenge.ts',
  'device.ts',
  'ek-certificate.ts',
  'endorsement-key.ts',
  'event-log.ts',
  'evidence.ts',
  'pcrs.ts',
  'provider.ts',
  'quote.ts',
  'structures/attest.ts',
  'structures/public-area.ts',
  'structures/public-key.ts',
  'structures/signature.ts',
  'structures/structure-reader.ts',
];

export const subject: Subject = {
  module: import.meta.filename,
  checkedFiles: files.map((file) => `core/attestation/tpm/${file}`),
  choices: true,
  changes: [],
  cases: ['structures/public-area', 'structures/signature', 'structures/attest', 'event-log', 'cases', 'provider'].map(
    (name) => `test/unit/core/attestation/tpm/${name}.test.ts`,
  ),
};
