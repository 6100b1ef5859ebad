/** Every case of this folder, by what it is about. */
import { certificateCases, trustCases } from './certificate-cases.ts';
import { challengeCases } from './challenge-cases.ts';
import { eventCases } from './event-cases.ts';
import { evidenceCases } from './evidence-cases.ts';
import type { Case } from './judge.ts';
import { attestationKeys, endorsementKeys } from './key-cases.ts';
import { pcrCases, quoteCases } from './quote-cases.ts';

export const casesBySubject: Readonly<Record<string, readonly Case[]>> = {
  evidence: evidenceCases,
  'endorsement key': endorsementKeys,
  'attestation key': attestationKeys,
  quote: quoteCases,
  PCRs: pcrCases,
  events: eventCases,
  certificate: certificateCases,
  trust: trustCases,
  challenge: challengeCases,
};
