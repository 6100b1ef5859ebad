/** Rows of a report, each with a mark, and what to do below it. */
import { printableUpTo } from '../../core/outcome/printable-text.ts';
import { table } from './output.ts';

export interface CheckRow {
  /** Stable, for programs. */
  readonly id: string;
  /** What must hold, or what was looked at. */
  readonly check: string;
  /** `unknown`: it could not be checked. `none`: it is not applicable, or was left out. */
  readonly result: 'pass' | 'fail' | 'unknown' | 'none';
  readonly seen: string;
  /** What to do about it: a command, a page, or the missing right. */
  readonly mend?: string;
}

const marks: Readonly<Record<CheckRow['result'], string>> = { pass: '✓', fail: '✗', unknown: '!', none: '–' };

/** `seen` may be text of AWS, of a cluster or of a server. */
export function rowsText(checks: readonly CheckRow[]): string {
  const lines = table(checks.map(({ check, result, seen }) => [marks[result], check, printableUpTo(400, seen)])).split(
    '\n',
  );
  return checks.map(({ mend }, index) => `${lines[index]}\n${mend === undefined ? '' : `   → ${mend}\n`}`).join('');
}

export function countOf(checks: readonly CheckRow[], result: CheckRow['result']): number {
  return checks.filter((each) => each.result === result).length;
}
