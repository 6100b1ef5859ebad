/** The tables of SECURITY.md, which the tests beside this file hold to what the handlers do. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const page = readFileSync(join(import.meta.dirname, '../../../../SECURITY.md'), 'utf8');

/** The first table under a heading: its rows without the head, as cells of plain text. */
export function tableUnder(heading: string): readonly (readonly string[])[] {
  const [, after = ''] = page.split(`\n${heading}\n`);
  const [, table = ''] = /\n((?:\|.*\|\n)+)/.exec(after) ?? [];
  const [, , ...rows] = table.trim().split('\n');
  return rows.map((row) =>
    row
      .slice(1, -1)
      .split('|')
      .map((cell) => cell.trim().replaceAll('**', '')),
  );
}

/** The words in backquotes. */
export function codesIn(cell: string): readonly string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code);
}
