/** One part of the status; the others are read even if this one cannot be. */
import type { CheckRow } from '../output/check-rows.ts';
import { CommandFailure } from '../runtime/exit.ts';

export interface StatusRow extends CheckRow {
  readonly id: 'relay' | 'endpoint' | 'rules' | 'ca' | 'table' | 'errors' | 'cluster' | 'stack';
  /** For programs, what `seen` says in words. */
  readonly facts?: Readonly<Record<string, unknown>>;
}

export type RowName = Pick<StatusRow, 'id' | 'check'>;

/** A failure to read makes the row unknown. A bug ends the command. */
export async function rowsOr(
  name: RowName,
  read: () => Promise<StatusRow | readonly StatusRow[]>,
): Promise<readonly StatusRow[]> {
  try {
    return [await read()].flat();
  } catch (error) {
    if (!(error instanceof CommandFailure)) throw error;
    return [unknown(name, error)];
  }
}

export function unknown(name: RowName, { message, hint }: CommandFailure): StatusRow {
  return { ...name, result: 'unknown', seen: message, ...(hint === undefined ? {} : { mend: hint }) };
}
