import { printable } from '../../core/outcome/printable-text.ts';
import { failure } from '../../core/outcome/result.ts';
import type { Result } from '../../core/outcome/result.ts';
import { UnsafeFileError } from '../files/own-files.ts';

/** The exit codes of every command, and 6: a file exists with other content and was not overwritten. */
export const joinExits = { ok: 0, refused: 1, usage: 2, configuration: 3, temporary: 5, conflict: 6 } as const;

/** Ends the command. The message and the hint are printed to standard error. */
export interface Stop {
  readonly exit: number;
  readonly message: string;
  readonly hint?: string | undefined;
}

export function usage(message: string): Result<never, Stop> {
  const hint = 'kubelet-authenticator join --help shows flags and examples';
  return failure({ exit: joinExits.usage, message, hint });
}

export function configuration(message: string): Result<never, Stop> {
  return failure({ exit: joinExits.configuration, message });
}

export function unreadable(file: string, error: unknown): Result<never, Stop> {
  if (error instanceof UnsafeFileError) return configuration(error.message);
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'it has an invalid form';
  return configuration(`${file} cannot be read: ${printable(code)}`);
}
