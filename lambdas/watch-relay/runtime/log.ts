import { withoutHidden } from '../../../core/outcome/printable-text.ts';
import type { Clock } from './clock.ts';

/** Structured log lines; pino fits. Never request contents, certificates or evidence: names, codes and counts. */
export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  /** Somebody has to do something: docs/watch-relay.md has a line for each. */
  error(fields: object, message: string): void;
}

/** Characters of one text in a log line: as much as a message of the API server or a stack needs. */
const longestText = 500;

/**
 * The same fields with every text printable and short. Requesters choose names, and messages of the API server repeat
 * them: control characters would forge lines in a terminal, and a name may have a megabyte.
 */
export function printableFields(fields: object): Record<string, unknown> {
  const shown: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields)) shown[name] = printableValue(value);
  return shown;
}

function printableValue(value: unknown): unknown {
  // Cut before, since a name may have a megabyte, and after, since an escape takes more room than its character.
  if (typeof value === 'string') return withoutHidden(value.slice(0, longestText)).slice(0, longestText);
  if (Array.isArray(value)) return value.slice(0, 20).map(printableValue);
  return value;
}

/** Lines of one sort in a minute. */
const linesAMinute = 10;

/**
 * Whether one more line of that sort is due; what a requester can cause again and again is asked for here first. The
 * fields of a line that is due say how many were left out before it.
 */
export function createLineLimit(clock: Pick<Clock, 'monotonic'>): (sort: string) => { leftOut?: number } | undefined {
  const sorts = new Map<string, { since: number; lines: number; leftOut: number }>();
  return (sort) => {
    const now = clock.monotonic();
    const known = sorts.get(sort);
    const current =
      known === undefined || now - known.since >= 60_000
        ? { since: now, lines: 0, leftOut: known?.leftOut ?? 0 }
        : known;
    sorts.set(sort, current);
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
