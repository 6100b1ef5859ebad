/** Every check of what decides whether a request may be signed, and of what a request and a certificate are read with. */
import { join } from 'node:path';
import { planted, removalsIn, sourceOf } from '../../harness/removals/check-removals.ts';
import type { Removal } from '../../harness/removals/check-removals.ts';

export const files = [
  'triage.ts',
  'issue.ts',
  'profiles.ts',
  'custom-rules.ts',
  'subject-rules.ts',
  'serving-rules.ts',
  'reserved-names.ts',
  'in-tree-rules.ts',
  'patterns.ts',
  'csr.ts',
  'pem.ts',
  'subject.ts',
  'subject-alt-names.ts',
  'keys.ts',
  'self-signature.ts',
  'certificate-check.ts',
  'certificate-facts.ts',
  'lifetime.ts',
] as const;

export const folder = join(import.meta.dirname, '../../../core');

/** Lists that are checks: each entry is removed where the list is looked at. */
const lists: readonly (readonly [file: string, list: string, within: string, entry: string])[] = [
  ['serving-rules.ts', 'neverHosts', '[...neverHosts, ', 'entry'],
  ['serving-rules.ts', 'neverAddresses', '[...neverAddresses, ', 'entry.text'],
  ['reserved-names.ts', 'controlPlaneNames', 'controlPlaneNames.some(isMatch)', 'entry'],
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
