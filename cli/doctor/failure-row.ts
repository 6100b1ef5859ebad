/** A part that could not be looked at. A bug ends the command. */
import type { CheckRow } from '../output/check-rows.ts';
import { CommandFailure } from '../runtime/exit.ts';

export function failureRow(id: string, check: string, error: unknown): CheckRow {
  if (!(error instanceof CommandFailure)) throw error;
  return {
    id,
    check,
    result: 'unknown',
    seen: error.message,
    ...(error.hint === undefined ? {} : { mend: error.hint }),
  };
}
