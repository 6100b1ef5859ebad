/** Every check of what decides whether a request may be signed, and of what a request and a certificate are read with. */
import { join } from 'node:path';
import { planted, removalsIn, sourceOf } from '../../harness/removals/check-removals.ts';
import type { Removal } from '../../harness/removals/check-removals.ts';

export const files = [
  'kubernetes/triage.ts',
  'issue.ts',
  'policy/check-profile.ts',
  'policy/general-rules.ts',
  'policy/custom-rules.ts',
  'policy/subject-rules.ts',
  'policy/serving-rules.ts',
  'policy/reserved-names.ts',
  'policy/in-tree-rules.ts',
  'policy/patterns.ts',
  'x509/certificate-request.ts',
  'encoding/pem.ts',
  'x509/distinguished-name.ts',
  'x509/subject-alt-names.ts',
  'x509/public-key.ts',
  'x509/proof-of-possession.ts',
  'x509/check-issued.ts',
  'x509/read-certificate.ts',
  'x509/validity.ts',
] as const;

export const folder = join(import.meta.dirname, '../../../core');

/** Lists that are checks: each entry is removed where the list is looked at. */
const lists: readonly (readonly [file: string, list: string, within: string, entry: string])[] = [
  ['policy/serving-rules.ts', 'neverHosts', '[...neverHosts, ', 'entry'],
  ['policy/serving-rules.ts', 'neverAddresses', '[...neverAddresses, ', 'entry.text'],
  ['policy/reserved-names.ts', 'controlPlaneNames', 'controlPlaneNames.some(isMatch)', 'entry'],
];

export function findRemovals(): readonly Removal[] {
  return [
    ...files.flatMap((file) => removalsIn({ folder, file }, { choices: true })),
    ...lists.flatMap(([file, list, within, entry]) =>
      entriesOf(file, list).map((text) =>
        planted({ folder, file }, within, list, `${list}.filter((entry) => ${entry} !== ${text})`),
      ),
    ),
  ];
}

function entriesOf(file: string, list: string): readonly string[] {
  const source = sourceOf({ folder, file });
  const [, text = ''] =
    new RegExp(`\\nexport const ${list}[^=]*= \\[([^\\]]*)\\]|\\nconst ${list} = \\[([^\\]]*)\\]`)
      .exec(source)
      ?.filter((part) => part !== undefined) ?? [];
  const entries = text.replace(/\/\/.*/g, '').match(/'[^']+'/g) ?? [];
  if (entries.length < 5) throw new Error(`${file} must have a list of text ${list}`);
  return entries;
}
