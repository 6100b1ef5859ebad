/** Every change of the register has a reason and an author, in an audit item that nobody can take away. */
import { InvalidArgumentError, Option } from 'commander';
import type { AuditItem, IdentityRecord } from '../../core/ports/attestation-store.ts';
import { ulid } from '../../core/attestation/records/ulid.ts';
import { CommandFailure, exitCodes } from './exit.ts';
import type { Io } from './io.ts';

const longest = 500;

export function reasonOption(): Option {
  return new Option('--reason <text>', 'why, for the audit item').argParser(reasonText);
}

/** Commander ends the command with exit code 2 where it is missing. */
export function mandatoryReason(): Option {
  return reasonOption().makeOptionMandatory();
}

function reasonText(text: string): string {
  const reason = text.trim();
  if (reason === '') throw new InvalidArgumentError('It must say something.');
  if (reason.length > longest) throw new InvalidArgumentError(`It may have ${longest} characters.`);
  if (/\p{Cc}/u.test(reason)) throw new InvalidArgumentError('It is one line of plain text.');
  return reason;
}

export interface Change {
  readonly action: AuditItem['action'];
  /** The identity, or the entry of the list of machines. */
  readonly subject: string;
  readonly nodeName?: string;
  readonly before?: IdentityRecord;
}

export function auditItem(change: Change, { by, reason }: { by: string; reason: string }, io: Io): AuditItem {
  const at = io.now();
  return { id: ulid(at, io.randomBytes(10)), at, by, reason, ...change };
}

/** A change holds only for what was read. What others changed meanwhile is looked at once more, and then left alone. */
export async function twice<T>(attempt: () => Promise<T | 'changed'>, what: string): Promise<T> {
  for (let tries = 0; tries < 2; tries += 1) {
    const answer = await attempt();
    if (answer !== 'changed') return answer;
  }
  throw new CommandFailure(exitCodes.conflict, `${what} changes while it is looked at; nothing was done`, 'try again');
}
