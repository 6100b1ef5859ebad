/** Everything that is put to the aws provider, by what it is about. */
import { cmsCases } from './cms-cases.ts';
import { documentCases, evidenceCases } from './document-cases.ts';
import { instanceCases } from './instance-cases.ts';
import type { Case } from './judge.ts';
import { responseCases } from './response-cases.ts';
import { tokenCases } from './token-cases.ts';

export const casesBySubject: Readonly<Record<string, readonly Case[]>> = {
  evidence: evidenceCases,
  CMS: cmsCases,
  document: documentCases,
  'STS token': tokenCases,
  'STS answer': responseCases,
  instance: instanceCases,
};
