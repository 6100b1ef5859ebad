/** The log line of a call by an operator or by CloudFormation: names and states, never keys, certificates or what callers sent. */
import { named } from '../../core/outcome/trouble.ts';
import type { NamedTrouble } from '../../core/outcome/trouble.ts';

export interface CallReport {
  /** Whether an operator must act. */
  readonly failed: boolean;
  /** For each CA what was done, or the fault. */
  readonly cas: Readonly<Record<string, string>>;
  /** Days until each usable CA certificate expires. An alarm watches them. */
  readonly daysLeft?: Readonly<Record<string, number>>;
  /** Days until the latest CRL of each CA ends. */
  readonly crlDaysLeft?: Readonly<Record<string, number>>;
}

export interface OperatorLogEntry extends Partial<NamedTrouble>, Partial<Omit<CallReport, 'failed'>> {
  readonly level: 'info' | 'error';
  readonly action: string;
  readonly cluster?: string;
  readonly error?: { readonly name: string; readonly message: string };
}

const faulty = { level: 'error', ...named('ca-faults') } as const;

/** Writes one line about `work`, and gives its answer or throws what it throws. */
export async function loggedCall<Answer extends { readonly cluster: string }>(
  action: string,
  log: (entry: OperatorLogEntry) => void,
  work: () => Promise<{ readonly answer: Answer; readonly log: CallReport }>,
): Promise<Answer> {
  try {
    const { answer, log: seen } = await work();
    const { failed, ...fields } = seen;
    log({ ...(failed ? faulty : ({ level: 'info' } as const)), action, cluster: answer.cluster, ...fields });
    return answer;
  } catch (error) {
    log({ ...faulty, action, error: describeError(error) });
    throw error;
  }
}

/** One JSON line, in the format of the sign function. */
export function writeOperatorLog(entry: OperatorLogEntry): void {
  process.stdout.write(`${JSON.stringify({ time: new Date().toISOString(), ...entry })}\n`);
}

/** Bounded: the message of an SDK error may be a page long. */
export function describeError(error: unknown): { readonly name: string; readonly message: string } {
  if (!(error instanceof Error)) return { name: typeof error, message: '' };
  const cause = error.cause instanceof Error ? ` (${error.cause.message})` : '';
  return { name: error.name, message: `${error.message}${cause}`.slice(0, 500) };
}
