/**
 * What an operator must learn of. A function names the trouble, and the alarm that counts it, in its log line. Each trouble has
 * a section of that name in docs/runbook.md. Troubles share a few alarms, since each alarm costs money also while it is quiet
 * (docs/internals/decisions/0018-few-alarms.md).
 */
import type { RefusalCode } from './outcome.ts';

/** The alarms that count log lines. */
export const logAlarms = [
  'faults', // an operator must act: the first one raises it
  'unexpected-refusals', // a correct client never causes it: the first one raises it
  'many-refusals', // so many within five minutes as `alarms.refusals` says
  'interruptions', // it passes by itself: raised after a quarter of an hour
  'retirement', // a schedule runs every ten minutes: raised after an hour
] as const;
export type LogAlarm = (typeof logAlarms)[number];

const refusals: Readonly<Record<RefusalCode, 'unexpected-refusals' | 'many-refusals'>> = {
  SignerValidationFailure: 'many-refusals',
  RequestMalformed: 'many-refusals',
  RequestTooLarge: 'many-refusals',
  SignatureInvalid: 'unexpected-refusals',
  KeyNotPermitted: 'many-refusals',
  UsageNotPermitted: 'many-refusals',
  SubjectNotPermitted: 'many-refusals',
  SanNotPermitted: 'many-refusals',
  NameReserved: 'unexpected-refusals',
  RequesterNotAllowed: 'many-refusals',
  UidReused: 'unexpected-refusals',
  IntentExpired: 'unexpected-refusals',
  Locked: 'unexpected-refusals',
  AttestationMissing: 'many-refusals',
  AttestationInvalid: 'many-refusals',
  AttestationVersion: 'many-refusals',
  AttestationChallenge: 'many-refusals',
  IdentityNotAllowed: 'many-refusals',
  TofuReuse: 'unexpected-refusals',
  TofuNodeMismatch: 'unexpected-refusals',
  TofuNodeTaken: 'unexpected-refusals',
  Revoked: 'unexpected-refusals',
  KeyReused: 'many-refusals',
  MachineNotFound: 'many-refusals',
  MachineNotReady: 'many-refusals',
  MachineAmbiguous: 'unexpected-refusals',
  MachineDeleting: 'many-refusals',
  MachineOfOtherCluster: 'unexpected-refusals',
  MachineMismatch: 'unexpected-refusals',
  AttestorNotAuthorized: 'many-refusals',
  NameNotOwned: 'unexpected-refusals',
};

const others = {
  internal: 'faults', // sign or attest met a fault that does not pass by itself
  unavailable: 'interruptions', // a service that sign or attest calls does not answer
  throttled: 'interruptions', // a service that sign or attest calls asks to slow down
  'retirement-fails': 'retirement', // attest could not look for terminated machines
  'callers-refused': 'unexpected-refusals', // IAM admitted a caller that the cluster does not know
  'authorizer-faults': 'faults', // no token can be checked
  'authorizer-keys': 'interruptions', // the issuer's keys are out of reach
  'ca-faults': 'faults', // a CA is missing, unusable, or could not be looked at; or its CRL ends in less than four days
} as const satisfies Readonly<Record<string, LogAlarm>>;

export type Trouble = keyof typeof others | `refused-${RefusalCode}`;

const alarmOf = {
  ...others,
  ...Object.fromEntries(Object.entries(refusals).map(([code, alarm]) => [`refused-${code}`, alarm])),
} as Readonly<Record<Trouble, LogAlarm>>;

export const troubles = Object.keys(alarmOf) as readonly Trouble[];

/** The two fields of a log line. */
export interface NamedTrouble {
  readonly trouble: Trouble;
  readonly alarm: LogAlarm;
}

export function named(trouble: Trouble): NamedTrouble {
  return { trouble, alarm: alarmOf[trouble] };
}
