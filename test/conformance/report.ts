/** The report: a line for each check when it ends, with its problems below, and a summary. */
import type { Result } from './check.ts';
import { checks } from './checks.ts';

const marks = { passed: '✓', failed: '✗', skipped: '–' } as const;
const colours = { passed: 32, failed: 31, skipped: 33 } as const;
const idWidth = Math.max(...checks.map(({ id }) => id.length));

export function resultLines(result: Result, colour: boolean): string {
  const { id, rule, source, outcome, detail, milliseconds } = result;
  const mark = colour ? `\u001B[${colours[outcome]}m${marks[outcome]}\u001B[0m` : marks[outcome];
  const lines = [`${mark} ${id.padEnd(idWidth)} ${`${milliseconds} ms`.padStart(8)}  ${rule}`];
  const below = ' '.repeat(idWidth + 13);
  if (outcome === 'failed') {
    lines.push(...detail.split('\n').map((problem) => `${below}! ${problem}`), `${below}from: ${source}`);
  } else if (detail !== '') lines.push(`${below}(${detail})`);
  return `${lines.join('\n')}\n`;
}

export function summary(results: readonly Result[]): string {
  const of = (outcome: Result['outcome']): readonly Result[] => results.filter((each) => each.outcome === outcome);
  const failed = of('failed');
  const counts = `${of('passed').length} passed, ${failed.length} failed, ${of('skipped').length} skipped`;
  return failed.length === 0 ? `${counts}\n` : `${counts}: ${failed.map(({ id }) => id).join(', ')}\n`;
}

/** The output of `--list` and the table of docs/conformance.md; a test compares them. */
export function checkTable(): string {
  const cell = (text: string): string => text.replaceAll('|', '\\|');
  const rows = checks.map(({ id, rule, source }) => `| \`${id}\` | ${cell(rule)} | ${cell(source)} |`);
  return `| check | rule | from |\n|---|---|---|\n${rows.join('\n')}\n`;
}
