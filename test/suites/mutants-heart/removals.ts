/**
 * Every check of what decides who gets a certificate (check-removals.ts says how they are found). Here each choice counts:
 * what is decided by a table of cases or by a conditional expression is decided all the same.
 */
import { join } from 'node:path';
import { planted, removalsIn } from '../../harness/removals/check-removals.ts';
import type { Removal } from '../../harness/removals/check-removals.ts';

export const files = [
  'attest.ts',
  'proof.ts',
  'admission.ts',
  'tofu.ts',
  'second-look.ts',
  'limits.ts',
  'serving-names.ts',
  'evidence.ts',
  'verdict-check.ts',
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
  ['proof.ts', 'asked ??= examined.verify()', 'asked ??= examined.verify()', 'examined.verify()'],
  ['proof.ts', 'audience: settings.audience', 'settings.audience', "''"],
  ['proof.ts', 'spki: request.publicKey.spki', 'request.publicKey.spki', "Buffer.from('')"],
  [
    'admission.ts',
    'byNodeItself: question.username === `${nodeUserPrefix}${question.nodeName}`',
    'question.username === `${nodeUserPrefix}${question.nodeName}`',
    'true',
  ],
  ['admission.ts', 'secure: provider.secure', 'provider.secure', 'true'],
  [
    'admission.ts',
    'allowRestart: provider.restartWindow !== undefined',
    'provider.restartWindow !== undefined',
    'true',
  ],
  ['admission.ts', 'record: seen.identity', 'seen.identity', 'undefined'],
  ['admission.ts', 'holder: seen.holder', 'seen.holder', 'undefined'],
  ['admission.ts', '[...state.violations, ', 'state.violations', '[]'],
  ['admission.ts', 'seen, spend(question, examined))', 'spend(question, examined)', '[]'],
  ['admission.ts', 'once: spend(question, examined)', 'spend(question, examined)', '[]'],
  ['admission.ts', 'once: examined?.once ?? []', 'examined?.once ?? []', '[]'],
  ['admission.ts', 'machines: examined?.machines ?? []', 'examined?.machines ?? []', '[]'],
  ['admission.ts', '= context.machine ?? {}', 'context.machine ?? {}', '{}'],
  ['admission.ts', 'retire: holder', 'holder', 'undefined'],
  ['admission.ts', 'audit: [retired]', '[retired]', '[]'],
  [
    'admission.ts',
    'addresses: [...record.addresses, ...newAddresses]',
    '[...record.addresses, ...newAddresses]',
    'record.addresses',
  ],
  ['tofu.ts', 'switch (record.state)', 'record.state', "'active'"],
  ['second-look.ts', 'now - holder.lastSeen <=', 'now - holder.lastSeen', 'Infinity'],
  ['tofu.ts', 'Math.max(record.lastSeen, now)', 'Math.max(record.lastSeen, now)', 'now'],
  ['tofu.ts', '.slice(0, keptKeys)', 'keptKeys', 'Infinity'],
  ['second-look.ts', 'startedAt > record.startedAt', 'startedAt > record.startedAt', 'startedAt >= record.startedAt'],
  ['serving-names.ts', '[...new Set(sans.ip)]', 'new Set(sans.ip)', 'sans.ip'],
  ['serving-names.ts', 'const asked = name.toLowerCase()', 'name.toLowerCase()', 'name'],
  ['serving-names.ts', 'other.toLowerCase() === asked', 'other.toLowerCase()', 'other'],
];

export function findRemovals(): readonly Removal[] {
  return [
    ...files.flatMap((file) => removalsIn({ folder, file }, { choices: true })),
    ...byHand.map(([file, within, find, instead]) => planted({ folder, file }, within, find, instead)),
  ];
}
