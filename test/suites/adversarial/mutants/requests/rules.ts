/** Every check of what decides whether a request may be signed, and of what reads requests and certificates. */
import { sourceOf } from '../../../../harness/mutants/mutant.ts';
import type { Change } from '../../../../harness/mutants/mutant.ts';
import type { Equivalent, Subject } from '../../../../harness/mutants/subject.ts';

/** Lists that are checks: each entry is removed where the list is looked at. */
const lists: readonly (readonly [file: string, list: string, within: string, entry: string])[] = [
  ['core/policy/serving-rules.ts', 'neverHosts', '[...neverHosts, ', 'entry'],
  ['core/policy/serving-rules.ts', 'neverAddresses', '[...neverAddresses, ', 'entry.text'],
  ['core/policy/reserved-names.ts', 'controlPlaneNames', 'controlPlaneNames.some(isMatch)', 'entry'],
];

const equivalent: readonly Equivalent[] = [
  {
    file: 'core/issue.ts',
    without: "verdictCheck.kind === 'attested'",
    check: "verdictCheck.kind === 'attested' && verdictCheck.firstKey",
    because: 'only an attested request has firstKey: the condition is there for the type',
  },
];

/** From the fastest. */
const testFiles = [
  'core/kubernetes/triage',
  'core/policy/check-profile',
  'core/policy/custom-rules',
  'core/policy/serving-rules',
  'core/configuration/resolve/serving',
  'core/policy/reserved-names',
  'core/x509/hidden-names',
  'core/policy/explain-profile',
  'core/policy/patterns',
  'core/x509/subject-alt-names',
  'core/encoding/pem',
  'core/x509/validity',
  'core/x509/certificate-request',
  'core/x509/provider-id',
  'core/x509/public-key',
  'core/x509/read-certificate',
  'core/x509/leaf-certificate',
  'core/x509/hostile-requests',
  'lambdas/sign/node-names',
  'lambdas/sign/handler',
  'lambdas/sign/ledger-answers',
  'lambdas/sign/one-certificate',
  'lambdas/attest/stories/verdict-check',
  'lambdas/attest/stories/story',
] as const;

export const subject: Subject = {
  module: import.meta.filename,
  checkedFiles: [
    'core/kubernetes/triage.ts',
    'core/issue.ts',
    'core/sign-once.ts',
    'core/policy/check-profile.ts',
    'core/policy/general-rules.ts',
    'core/policy/custom-rules.ts',
    'core/policy/subject-rules.ts',
    'core/policy/serving-rules.ts',
    'core/policy/reserved-names.ts',
    'core/policy/in-tree-rules.ts',
    'core/policy/patterns.ts',
    'core/x509/certificate-request.ts',
    'core/encoding/pem.ts',
    'core/x509/distinguished-name.ts',
    'core/x509/subject-alt-names.ts',
    'core/x509/public-key.ts',
    'core/x509/proof-of-possession.ts',
    'core/x509/check-issued.ts',
    'core/x509/read-certificate.ts',
    'core/x509/validity.ts',
  ],
  choices: true,
  changes: lists.flatMap(([file, list, within, entry]) =>
    entriesOf(file, list).map((text): Change => {
      const instead = `${list}.filter((entry) => ${entry} !== ${text})`;
      return { file, breaks: `→ ${instead}`, within, find: list, instead, isExpression: true };
    }),
  ),
  equivalent,
  cases: testFiles.map((file) => `test/unit/${file}.test.ts`),
};

function entriesOf(file: string, list: string): readonly string[] {
  const source = sourceOf(file);
  const [, text = ''] =
    new RegExp(`\\nexport const ${list}[^=]*= \\[([^\\]]*)\\]|\\nconst ${list} = \\[([^\\]]*)\\]`)
      .exec(source)
      ?.filter((part) => part !== undefined) ?? [];
  const entries = text.replace(/\/\/.*/g, '').match(/'[^']+'/g) ?? [];
  if (entries.length < 5) throw new Error(`${file} must have a list of text ${list}`);
  return entries;
}
