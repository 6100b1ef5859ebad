import { escapeHidden } from '../../../core/outcome/printable-text.ts';
import type { Clock } from './clock.ts';

/** Implemented by pino. Fields are names, codes and counts, never request contents, certificates or evidence. */
export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  /** The operator must act; docs/watch-relay.md lists these lines. */
  error(fields: object, message: string): void;
}

/** In characters: enough for a message of the API server or a stack trace. */
const longestText = 500;

/**
 * The fields with every text printable and short. Requesters choose names, and messages of the API server repeat them:
 * control characters would forge lines in a terminal, and a name may have a megabyte.
 */
export function printableFields(fields: object): Record<string, unknown> {
  const shown: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields)) shown[name] = printableValue(value);
  return shown;
}

function printableValue(value: unknown): unknown {
  // First shortened, since a name may have a megabyte; shortened again, since an escape is longer than its character.
  if (typeof value === 'string') return escapeHidden(value.slice(0, longestText)).slice(0, longestText);
  if (Array.isArray(value)) return value.slice(0, 20).map(printableValue);
  return value;
}

const linesAMinute = 10;

/**
 * Limits lines of one kind that a requester can cause repeatedly. Undefined if the line must be omitted; otherwise fields to
 * add to it: how many lines were omitted before it.
 */
export function createLineLimit(clock: Pick<Clock, 'monotonic'>): (kind: string) => { leftOut?: number } | undefined {
  const kinds = new Map<string, { since: number; lines: number; leftOut: number }>();
  return (kind) => {
    const now = clock.monotonic();
    const known = kinds.get(kind);
    const current =
      known === undefined || now - known.since >= 60_000
        ? { since: now, lines: 0, leftOut: known?.leftOut ?? 0 }
        : known;
    kinds.set(kind, current);
    if (current.lines >= linesAMinute) {
      current.leftOut += 1;
      return undefined;
    }
    current.lines += 1;
    const { leftOut } = current;
    current.leftOut = 0;
    return leftOut === 0 ? {} : { leftOut };
  };
}
