/** Output formats: tables for people, JSON and YAML for programs. */
import { stringify } from 'yaml';
import { escapeHidden } from '../../core/outcome/printable-text.ts';

/** Each column is as wide as its widest cell, with two blanks between columns; the last column is not padded. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths: number[] = [];
  for (const row of rows)
    for (const [column, cell] of row.entries()) widths[column] = Math.max(widths[column] ?? 0, cell.length);
  return rows
    .map((row) =>
      row.map((cell, column) => cell.padEnd(column === row.length - 1 ? 0 : (widths[column] ?? 0))).join('  '),
    )
    .map((line) => `${line.trimEnd()}\n`)
    .join('');
}

/** JSON or YAML of the value, for programs; for every other format the text, for people. */
export function formatOutput(format: string, value: unknown, text: () => string): string {
  if (format === 'json') return json(value);
  return format === 'yaml' ? yaml(value) : text();
}

/** Control and invisible characters are written as JSON escapes, so that programs read the same value and no text controls the terminal. */
export function json(value: unknown): string {
  return `${escapeHidden(JSON.stringify(value, null, 2), escaped)}\n`;
}

/** YAML with the same escapes as `json`. YAML allows escapes only in double quotes. */
function yaml(value: unknown): string {
  const options = { aliasDuplicateObjects: false, lineWidth: 0 } as const;
  const text = stringify(value, options);
  if (escapeHidden(text) === text) return text;
  return escapeHidden(stringify(value, { ...options, defaultStringType: 'QUOTE_DOUBLE' }), escaped);
}

function escaped(character: string): string {
  const units = Array.from({ length: character.length }, (_, index) => character.charCodeAt(index));
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('');
}

/** A duration in the largest unit that leaves no remainder. */
export function durationText(seconds: number): string {
  const units = [
    [86_400, 'd'],
    [3600, 'h'],
    [60, 'm'],
  ] as const;
  const [size, unit] = units.find(([unitSize]) => seconds >= unitSize && seconds % unitSize === 0) ?? [1, 's'];
  return `${seconds / size}${unit}`;
}

/** A time that is left, for people: the two largest units, such as `23h 59m`. */
export function spanText(seconds: number): string {
  const sizes = { d: 86_400, h: 3_600, m: 60, s: 1 };
  const parts: string[] = [];
  let left = seconds;
  for (const [unit, size] of Object.entries(sizes)) {
    const count = Math.floor(left / size);
    left -= count * size;
    if (count > 0) parts.push(`${count}${unit}`);
    // `1d 5m` would look more exact than it is.
    else if (parts.length > 0) break;
  }
  return parts.slice(0, 2).join(' ') || '0s';
}
