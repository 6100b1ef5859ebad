/** All checks, in the order in which they run and are reported: a check comes after those that it needs. */
import type { Check } from './check.ts';
import { everyAnswerChecks } from './checks/every-answer.ts';
import { issuedChecks } from './checks/issued.ts';
import { protocolChecks } from './checks/protocol.ts';
import { refusedChecks } from './checks/refused.ts';
import { repeatChecks } from './checks/repeats.ts';
import { trustChecks } from './checks/trust.ts';

export const checks: readonly Check[] = [
  ...trustChecks,
  ...issuedChecks,
  ...repeatChecks,
  ...refusedChecks,
  ...protocolChecks,
  ...everyAnswerChecks,
];
