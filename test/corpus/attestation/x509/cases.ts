/** Everything that is put to the x509 provider, by what it is about. */
import { chainCases } from './chain-cases.ts';
import { certificateCases } from './certificate-cases.ts';
import { constraintCases } from './constraint-cases.ts';
import { evidenceCases } from './evidence-cases.ts';
import type { Case } from './judge.ts';
import { ruleCases } from './rule-cases.ts';

export const casesBySubject: Readonly<Record<string, readonly Case[]>> = {
  evidence: evidenceCases,
  certificate: certificateCases,
  chain: chainCases,
  'name constraints': constraintCases,
  rule: ruleCases,
};
