/** Every check of the x509 provider. */
import type { Subject } from '../../../harness/mutants/subject.ts';

const folder = 'core/attestation/x509';
const verifier = 'core/x509/chain/verify-chain.ts';

/** Limits, orders and patterns whose groups are read: no rule of checks.ts finds them. */
const texts: readonly (readonly [file: string, find: string, instead: string])[] = [
  [`${folder}/evidence.ts`, '/^([1-9][0-9]{12})\\.', '/([1-9][0-9]{12})\\.'],
  [`${folder}/evidence.ts`, '[A-Za-z0-9_-]{16,128}$/', '[A-Za-z0-9_-]{16,128}/'],
  [`${folder}/evidence.ts`, '{16,128}', '{0,128}'],
  [verifier, '...validFirst(roots, now)', '...roots'],
  [verifier, '...validFirst(others, now)', '...others'],
  [`${folder}/signature.ts`, "'csr-attest/x509/v1\\0'", "''"],
  [`${folder}/signature.ts`, 'saltLength: 32', 'saltLength: 20'],
  [`${folder}/rules.ts`, '`x509#${rule.root}/${rule.kind}/${value}`', '`x509#${rule.kind}/${value}`'],
  [`${folder}/rules.ts`, '`x509#${rule.root}/${rule.kind}/${value}`', '`x509#${rule.root}/${value}`'],
  [`${folder}/provider.ts`, 'signedContent(binding(nonce))', "signedContent(binding(''))"],
  ['core/policy/name-templates.ts', '`^${written', '`${written'],
  ['core/policy/name-templates.ts', '.join(`(${labels[kind]})`)}$`', '.join(`(${labels[kind]})`)}`'],
];

export const subject: Subject = {
  module: import.meta.filename,
  checkedFiles: [
    `${folder}/provider.ts`,
    `${folder}/evidence.ts`,
    'core/x509/chain/chain-certificate.ts',
    `${folder}/signature.ts`,
    verifier,
    'core/x509/chain/name-constraints.ts',
    `${folder}/rules.ts`,
    'core/policy/name-templates.ts',
  ],
  changes: texts.map(([file, find, instead]) => ({ file, breaks: `→ ${instead}`, find, instead })),
  cases: ['test/suites/adversarial/mutants/x509-provider-cases.ts'],
};
