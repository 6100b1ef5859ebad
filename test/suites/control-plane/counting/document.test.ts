import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { summary, tableOf, ways, type WayName } from './budget.ts';

const page = readFileSync(join(import.meta.dirname, '../../../../docs/internals/call-budget.md'), 'utf8');
const names = Object.keys(ways) as WayName[];

/** What stands between this mark and the next empty line. */
function marked(name: string): string | undefined {
  return new RegExp(`<!-- counted: ${name} -->\n((?:\\|.*\n)+)`).exec(page)?.[1]?.trimEnd();
}

test.each(names)('docs/internals/call-budget.md has the table of %s as it is counted', (name) => {
  expect(marked(name)).toBe(tableOf(name));
  expect(page).toContain(`### ${ways[name].title}\n`);
});

test('and the sums of all of them', () => {
  expect(marked('summary')).toBe(summary());
  expect([...page.matchAll(/<!-- counted: /g)]).toHaveLength(names.length + 1);
});
