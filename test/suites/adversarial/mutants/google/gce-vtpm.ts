/** Every check of the gce-vtpm provider. */
import { join } from 'node:path';
import type { Subject } from '../../../../harness/mutants/subject.ts';

/** Limits and patterns: no rule of checks.ts finds them. */
const texts: readonly (readonly [file: string, find: string, instead: string])[] = [
  ['blocks.ts', 'leastSignatureBytes = 256', 'leastSignatureBytes = 1'],
  ['blocks.ts', 'mostSignatureBytes = 512', 'mostSignatureBytes = 5_120'],
  ['signing-key.ts', 'leastRsaBits = 2048', 'leastRsaBits = 1024'],
  ['vm-identity.ts', '^\\\\{"zone"', '\\\\{"zone"'],
  ['vm-identity.ts', '\\\\}$`', '\\\\}`'],
  ['../google/place.ts', "'[1-9][0-9]{0,19}'", "'[0-9]+'"],
  ['certified-key.ts', 'attribute.sign | attribute.userWithAuth', 'attribute.sign'],
  ['certified-key.ts', 'x: stripped(x), y: stripped(y)', 'x, y'],
];

const folder = 'core/attestation/gce-vtpm';

export const subject: Subject = {
  module: import.meta.filename,
  checkedFiles: [
    `${folder}/attestation-certificate.ts`,
    `${folder}/blocks.ts`,
    `${folder}/certificate-chain.ts`,
    `${folder}/certified-key.ts`,
    `${folder}/provider.ts`,
    `${folder}/signing-key.ts`,
    `${folder}/vm-identity.ts`,
    'core/attestation/google/place.ts',
    'core/attestation/google/vm.ts',
  ],
  equivalent: [
    {
      file: `${folder}/signing-key.ts`,
      without: "key.value.family !== 'RSA'",
      because: 'keys of other kinds have fewer bits than the least that is demanded',
    },
  ],
  changes: texts.map(([file, find, instead]) => ({ file: join(folder, file), breaks: `→ ${instead}`, find, instead })),
  cases: ['test/suites/adversarial/mutants/google/gce-vtpm-cases.ts'],
};
