/** Every check of the gce provider. */
import { join } from 'node:path';
import type { Subject } from '../../../../harness/mutants/subject.ts';

const folder = 'core/attestation/gce';

/** Limits, texts and lists: no rule of checks.ts finds them. */
const texts: readonly (readonly [file: string, find: string, instead: string])[] = [
  ['evidence.ts', 'maxTokenLength = 8_192', 'maxTokenLength = 81_920'],
  ['evidence.ts', '`csr-attest/gce/v1/${binding}`', 'binding'],
  ['token.ts', "['RS256']", "['RS256', 'RS512']"],
  ['token.ts', "['RS256']", "['RS256', 'HS256']"],
  ['token.ts', 'tokenLife = 5 * 60_000', 'tokenLife = 60 * 60_000'],
  ['token.ts', 'aheadMilliseconds = 60_000', 'aheadMilliseconds = 600_000'],
  ['token.ts', "token.slice(0, token.lastIndexOf('.'))", 'token'],
  ['token.ts', 'await compactVerify(token, key.value, { algorithms });', ''],
  ['provider.ts', 'binding(nonce)', "binding('')"],
  ['provider.ts', "machines === 'listed' ? [identity] : []", '[]'],
  ['provider.ts', "placeOf('gce', identity)", "placeOf('gce-vtpm', identity)"],
  ['../google/place.ts', "'[1-9][0-9]{0,19}'", "'[0-9]+'"],
  ['../../jwt/key-source.ts', 'set({ alg, kid })', 'set({ alg })'],
];

export const subject: Subject = {
  module: import.meta.filename,
  checkedFiles: [
    `${folder}/evidence.ts`,
    `${folder}/provider.ts`,
    `${folder}/token.ts`,
    'core/attestation/google/place.ts',
    'core/attestation/google/vm.ts',
    'core/jwt/token-header.ts',
  ],
  changes: texts.map(([file, find, instead]) => ({ file: join(folder, file), breaks: `→ ${instead}`, find, instead })),
  cases: ['test/suites/adversarial/mutants/google/gce-provider-cases.ts'],
};
