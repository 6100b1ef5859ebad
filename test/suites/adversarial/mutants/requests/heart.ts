/**
 * The modules that decide who gets a certificate, without each of their checks. Here each choice counts: a table of cases and
 * a conditional expression decide too.
 */
import type { Subject } from '../../../../harness/mutants/subject.ts';
import { equivalent } from './heart-equivalent.ts';

/** Expressions that are no checks: what is examined, what is recorded, and for how long. */
const expressions: readonly (readonly [file: string, within: string, find: string, instead: string])[] = [
  ['attest.ts', 'now + verdictMilliseconds', 'verdictMilliseconds', '0'],
  [
    'attest.ts',
    "requestSha256: sha256(object.request).toString('hex')",
    "sha256(object.request).toString('hex')",
    "''",
  ],
  [
    'attest.ts',
    "spkiSha256: sha256(request.publicKey.spki).toString('hex')",
    'sha256(request.publicKey.spki)',
    "sha256(Buffer.from(''))",
  ],
  ['attest.ts', 'tries < maxTries', 'maxTries', '1'],
  [
    'attestation/examine-evidence.ts',
    'asked ??= examined.value.verify()',
    'asked ??= examined.value.verify()',
    'examined.value.verify()',
  ],
  ['attestation/examine-evidence.ts', 'audience: settings.audience', 'settings.audience', "''"],
  ['attestation/examine-evidence.ts', 'pcrs: wanted.pcrs', 'wanted.pcrs', 'undefined'],
  ['attestation/examine-evidence.ts', 'spki: request.publicKey.spki', 'request.publicKey.spki', "Buffer.from('')"],
  [
    'attestation/admission.ts',
    'byNodeItself: question.username === `${nodeUserPrefix}${question.nodeName}`',
    'question.username === `${nodeUserPrefix}${question.nodeName}`',
    'true',
  ],
  ['attestation/admission.ts', 'secure: provider.secure', 'provider.secure', 'true'],
  [
    'attestation/admission.ts',
    'allowRestart: provider.restartWindow !== undefined',
    'provider.restartWindow !== undefined',
    'true',
  ],
  ['attestation/admission.ts', 'record: records.identity', 'records.identity', 'undefined'],
  ['attestation/admission.ts', 'holder: records.holder', 'records.holder', 'undefined'],
  ['attestation/admission.ts', '[...violations, ', 'violations', '[]'],
  [
    'attestation/admission.ts',
    'newAddresses, spentEvidence(question, examined))',
    'spentEvidence(question, examined)',
    '[]',
  ],
  ['attestation/claims.ts', 'once: spentEvidence(question, examined)', 'spentEvidence(question, examined)', '[]'],
  ['attestation/admission.ts', 'entry: records.entry ?? machine.entry', 'records.entry ?? machine.entry', 'undefined'],
  ['attestation/admission.ts', 'once: examined?.once ?? []', 'examined?.once ?? []', '[]'],
  ['attestation/admission.ts', 'machines: examined?.machines ?? []', 'examined?.machines ?? []', '[]'],
  ['attestation/check-machine.ts', 'const object = objectOf(question)', 'objectOf(question)', 'undefined'],
  [
    'attestation/admission.ts',
    'const noObject = checkObjects(question, provider.name)',
    'checkObjects(question, provider.name)',
    'undefined',
  ],
  [
    'attestation/admission.ts',
    'only: objectOf(question)?.addresses ?? []',
    'objectOf(question)?.addresses ?? []',
    '[]',
  ],
  ['attestation/claims.ts', 'retire: holder', 'holder', 'undefined'],
  ['attestation/claims.ts', 'audit: [retired]', '[retired]', '[]'],
  [
    'attestation/claims.ts',
    'addresses: [...record.addresses, ...newAddresses]',
    '[...record.addresses, ...newAddresses]',
    'record.addresses',
  ],
  ['attestation/first-use.ts', 'switch (record.state)', 'record.state', "'active'"],
  ['attestation/second-look.ts', 'now - holder.lastSeen <=', 'now - holder.lastSeen', 'Infinity'],
  ['attestation/first-use.ts', 'Math.max(record.lastSeen, now)', 'Math.max(record.lastSeen, now)', 'now'],
  ['attestation/first-use.ts', '.slice(0, keptKeys)', 'keptKeys', 'Infinity'],
  [
    'attestation/second-look.ts',
    'startedAt > record.startedAt',
    'startedAt > record.startedAt',
    'startedAt >= record.startedAt',
  ],
  ['attestation/serving-names.ts', '[...new Set(sans.ip)]', 'new Set(sans.ip)', 'sans.ip'],
  ['attestation/serving-names.ts', 'const asked = name.toLowerCase()', 'name.toLowerCase()', 'name'],
  ['attestation/serving-names.ts', '?? other.toLowerCase()) === name', 'other.toLowerCase()', 'other'],
  ['attestation/serving-names.ts', '(canonicalAddress(other) ??', 'canonicalAddress(other)', 'undefined'],
];

const testFiles = [
  'stories/story',
  'every-refusal',
  'faults/one-check',
  'stories/verdict-check',
  'stories/tofu',
  'stories/second-look',
  'faults/retired',
  'stories/challenge',
  'limits',
  'stories/lock',
  'stories/serving-names',
  'stories/machine-objects',
  'binding',
  'stories/gce-vtpm-requests',
  'threats/tpm',
] as const;

export const subject: Subject = {
  module: import.meta.filename,
  checkedFiles: [
    'core/attest.ts',
    'core/read-and-check-request.ts',
    'core/attestation/examine-evidence.ts',
    'core/attestation/admission.ts',
    'core/attestation/check-machine.ts',
    'core/attestation/claims.ts',
    'core/attestation/cluster-api/check-objects.ts',
    'core/attestation/device.ts',
    'core/attestation/declined.ts',
    'core/attestation/first-use.ts',
    'core/attestation/second-look.ts',
    'core/attestation/records/request-limits.ts',
    'core/attestation/serving-names.ts',
    'core/attestation/evidence/evidence.ts',
    'core/attestation/check-verdict.ts',
  ],
  choices: true,
  changes: expressions.map(([file, within, find, instead]) => ({
    file: `core/${file}`,
    breaks: `→ ${instead}`,
    within,
    find,
    instead,
    isExpression: true,
  })),
  equivalent,
  cases: testFiles.map((file) => `test/unit/lambdas/attest/${file}.test.ts`),
};
