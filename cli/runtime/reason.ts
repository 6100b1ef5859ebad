/** The reason and the author of a change of the attestation records. The operators' IAM policy (lib/attest.ts) permits no deletion of audit items. */
import { InvalidArgumentError, Option } from 'commander';
import type { AuditItem } from '../../core/ports/attestation-store.ts';
import { ulid } from '../../core/attestation/records/ulid.ts';
import { CommandFailure, exitCodes } from './exit.ts';
import type { Io } from './io.ts';

const maxLength = 500;

export function reasonOption(): Option {
  return new Option('--reason <text>', 'why, for the audit item').argParser(reasonText);
}

/** Commander ends the command with exit code 2 if it is missing. */
export function mandatoryReason(): Option {
  return reasonOption().makeOptionMandatory();
}

export function reasonText(text: string): string {
  const reason = text.trim();
  if (reason === '') throw new InvalidArgumentError('It must not be empty.');
  if (reason.length > maxLength) throw new InvalidArgumentError(`It may have at most ${maxLength} characters.`);
  if (/\p{Cc}/u.test(reason)) throw new InvalidArgumentError('It must be one line of plain text.');
  return reason;
}

/** `by`: an ARN, or a user name of this machine. */
export type Author = Pick<AuditItem, 'by' | 'reason'>;

export function auditItem(change: Omit<AuditItem, 'id' | 'at' | keyof Author>, author: Author, io: Io): AuditItem {
  const at = io.now();
  return { id: ulid(at, io.randomBytes(10)), at, ...author, ...change };
}

/** A change is conditional on the records that the decision is based on. If they changed meanwhile, the command tries once more. */
export async function tryTwice<T>(attempt: () => Promise<T | 'changed'>, what: string): Promise<T> {
  for (let tries = 0; tries < 2; tries += 1) {
    const answer = await attempt();
    if (answer !== 'changed') return answer;
  }
  throw new CommandFailure(
    exitCodes.conflict,
    `${what} was changed by another command at the same time; this one changed nothing`,
    'try again',
  );
}
