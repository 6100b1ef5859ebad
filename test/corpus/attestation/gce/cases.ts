/** Every case of the gce provider, by what it is about. */
import type { Case } from './judge.ts';
import { tokenCases } from './token-cases.ts';
import { vmCases } from './vm-cases.ts';

export const casesBySubject: Readonly<Record<string, readonly Case[]>> = { ...tokenCases, ...vmCases };
