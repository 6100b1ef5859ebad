/** Text tables. */

export function ratio(value: number | undefined, base: number | undefined): string {
  return value === undefined || base === undefined ? '–' : (value / base).toFixed(2);
}

/** Aligns the first column left and the others right. */
export function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [heads, ...rows];
  const widths = heads.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  return lines
    .map((line) =>
      line.map((cell, column) => (column === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[column]!))).join('  '),
    )
    .join('\n');
}
