/**
 * Every check of what decides who gets a certificate (check-removals.ts says how they are found). Here each choice counts:
 * what is decided by a table of cases or by a conditional expression is decided all the same.
 */
import { join } from 'node:path';
import { planted, removalsIn } from '../../harness/removals/check-removals.ts';
import type { Removal } from '../../harness/removals/check-removals.ts';

export const files = [
  'attest.ts',
  'attestation/examine-evidence.ts',
  'attestation/admission.ts',
  'attestation/first-use.ts',
  'attestation/second-look.ts',
  'attestation/request-limits.ts',
  'attestation/serving-names.ts',
  'attestation/evidence/evidence.ts',
  'attestation/check-verdict.ts',
] as const;

export const folder = join(import.meta.dirname, '../../../core');

/** What no rule finds: what is looked at, what is recorded, and how long. Expressions all of them. */
const byHand: readonly (readonly [file: string, within: string, find: string, instead: string])[] = [
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
    'asked ??= examined.verify()',
    'asked ??= examined.verify()',
    'examined.verify()',
  ],
  ['attestation/examine-evidence.ts', 'audience: settings.audience', 'settings.audience', "''"],
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
  ['attestation/admission.ts', 'record: seen.identity', 'seen.identity', 'undefined'],
  ['attestation/admission.ts', 'holder: seen.holder', 'seen.holder', 'undefined'],
  ['attestation/admission.ts', '[...state.violations, ', 'state.violations', '[]'],
  ['attestation/admission.ts', 'seen, spend(question, examined))', 'spend(question, examined)', '[]'],
  ['attestation/admission.ts', 'once: spend(question, examined)', 'spend(question, examined)', '[]'],
  ['attestation/admission.ts', 'once: examined?.once ?? []', 'examined?.once ?? []', '[]'],
  ['attestation/admission.ts', 'machines: examined?.machines ?? []', 'examined?.machines ?? []', '[]'],
  ['attestation/admission.ts', '= context.machine ?? {}', 'context.machine ?? {}', '{}'],
  ['attestation/admission.ts', 'retire: holder', 'holder', 'undefined'],
  ['attestation/admission.ts', 'audit: [retired]', '[retired]', '[]'],
  [
    'attestation/admission.ts',
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
  ['attestation/serving-names.ts', 'other.toLowerCase() === asked', 'other.toLowerCase()', 'other'],
];

export function findRemovals(): readonly Removal[] {
  return [
    ...files.flatMap((file) => removalsIn({ folder, file }, { choices: true })),
    ...byHand.map(([file, within, find, instead]) => planted({ folder, file }, within, find, instead)),
  ];
}
