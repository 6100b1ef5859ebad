/** Everything that is put to the aws provider, by what it is about. */
import { claimsCases } from './claims-cases.ts';
import { cmsCases } from './cms-cases.ts';
import { documentCases, evidenceCases } from './document-cases.ts';
import { instanceCases } from './instance-cases.ts';
import type { Case } from './judge.ts';
import { responseCases } from './response-cases.ts';
import { tokenCases } from './token-cases.ts';

export const casesBySubject: Readonly<Record<string, readonly Case[]>> = {
  claims: claimsCases,
  evidence: withDocument(evidenceCases),
  CMS: withDocument(cmsCases),
  document: withDocument(documentCases),
  'STS token': tokenCases,
  'STS answer': responseCases,
  instance: instanceCases,
};

/** Only aws/v1 carries a document. */
function withDocument(cases: readonly Case[]): readonly Case[] {
  return cases.map((one) => ({ version: 'aws/v1', ...one }));
}
