/** test/README.md: the suites and the pieces of the harness that its tables name exist. */
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';

const root = resolve(import.meta.dirname, '../..');
const page = readFileSync(join(root, 'test/README.md'), 'utf8');
const section = (heading: string): string => page.split(`\n## ${heading}\n`)[1]!.split('\n## ')[0]!;
const named = (text: string): string[] =>
  [...text.matchAll(/^\|.*$/gm)].flatMap(([row]) => [...row.matchAll(/`([\w./-]+)`/g)].map(([, path = '']) => path));
const found = (path: string, folders: readonly string[]): boolean =>
  folders.some((folder) => existsSync(join(root, folder, path)) || existsSync(join(root, folder, `${path}.test.ts`)));

test.each([
  ['Which test for which change', 30, ['test/suites', '.']],
  ['Where the pieces are', 20, ['test']],
] as const)('%s', (heading, atLeast, folders) => {
  const paths = named(section(heading));
  expect(paths.length).toBeGreaterThan(atLeast);
  expect(paths.filter((path) => !found(path, folders))).toEqual([]);
});
