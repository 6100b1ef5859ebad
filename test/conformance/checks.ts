/** All checks, in the order they run. The order is part of the report: what others need comes first. */
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
