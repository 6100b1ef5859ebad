/** Every page: its links, npm scripts and files exist. Other tests compare single pages with the code. */
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { stepsOf, unmarkedCommands } from '../suites/pages/commands.ts';

const root = resolve(import.meta.dirname, '../..');
const read = (path: string): string => readFileSync(join(root, path), 'utf8');
const folders = 'acceptance|adapters|bench|cli|core|deploy|dev|docs|examples|kubelet-authenticator|lambdas|lib|test';
const files = globSync(`{*,{.ci,.github,${folders.replaceAll('|', ',')}}/**/*}`, { cwd: root });
const pages = files.filter((file) => file.endsWith('.md'));
const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };

/** The test command writes this file after a whole deep run. */
const existing = new Set([...files, 'test/deep-run.json']);
const exists = (path: string): boolean => existing.has(normalize(path).replace(/\/$/, ''));
const find = (text: string, pattern: RegExp): string[] => [...text.matchAll(pattern)].map(([, found = '']) => found);

/** As GitHub makes them: lower case, punctuation removed, spaces to dashes. */
const anchors = (text: string): string[] =>
  find(text, /^#+ (.+)$/gm).map((heading) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(/\s/g, '-'),
  );

const isBroken = (page: string, text: string) => (link: string) => {
  const [path = '', anchor] = link.split('#');
  const target = path === '' ? page : join(dirname(page), path);
  if (path !== '' && !exists(target)) return true;
  return anchor !== undefined && !anchors(target === page ? text : read(target)).includes(anchor);
};

/** Broken links, unknown scripts, and in backticks paths from the root and source files that do not exist. */
const mistakes = (page: string, text: string): string[] => [
  ...find(text, /\]\((?!https?:)([^)]*)\)/g).filter(isBroken(page, text)),
  ...find(text, /npm run (?:-s )?([\w:-]+)/g).filter((script) => !(script in scripts)),
  ...find(text, new RegExp(`\`((?:${folders})/[\\w./-]*)\``, 'g')).filter(
    (path) => !exists(path) && !exists(`${path}.test.ts`) && !onNode.has(path),
  ),
  ...find(text, /`([\w./-]+\.ts)`/g).filter((path) => !files.some((file) => `/${file}`.endsWith(`/${path}`))),
];
/** docs/join.md: files that join writes on a node. */
const onNode = new Set(['kubelet-authenticator/bootstrap-credentials.json', 'kubelet-authenticator/settings.json']);

test('what the pages link to and name exists', () => {
  expect(pages.length).toBeGreaterThan(40);
  // The tables of test/README.md name suites by shorter paths; the next test has them.
  const withoutTables = (page: string) =>
    page === 'test/README.md' ? read(page).replaceAll(/^\|.*$/gm, '') : read(page);
  const found = pages.flatMap((page) => mistakes(page, withoutTables(page)).map((mistake) => `${page}: ${mistake}`));
  expect(found).toEqual([]);
});

/** The pages that a page links to, from the root. */
const linked = (page: string): Set<string> =>
  new Set(find(read(page), /\]\((?!https?:|#)([^)#]*)/g).map((path) => join(dirname(page), path)));

test('docs/README.md links every page for users, docs/internals/README.md every other page and decision', () => {
  const [users, internals] = ['docs/README.md', 'docs/internals/README.md'].map(linked) as [Set<string>, Set<string>];
  const missing = pages
    .filter((page) => page.startsWith('docs/') && page !== 'docs/README.md')
    .filter(
      (page) =>
        !(page.startsWith('docs/internals/') && page !== 'docs/internals/README.md' ? internals : users).has(page),
    );
  expect(missing).toEqual([]);
  const titles = pages
    .filter((page) => page.startsWith('docs/internals/decisions/'))
    .map((page) => /^# \d{4}:? (.+)$/m.exec(read(page))![1]!);
  expect(titles.length).toBeGreaterThan(20);
  for (const title of titles)
    expect(read('docs/internals/README.md').toLowerCase()).toContain(`| ${title.toLowerCase()} |`);
});

test.each([
  ['Which test for which change', 30, ['test/suites', '.']],
  ['Where the pieces are', 20, ['test']],
] as const)('test/README.md, %s', (heading, atLeast, places) => {
  const section = read('test/README.md').split(`\n## ${heading}\n`)[1]!.split('\n## ')[0]!;
  const paths = find(section, /^(\|.*)$/gm).flatMap((row) => find(row, /`([\w./-]+)`/g));
  expect(paths.length).toBeGreaterThan(atLeast);
  const found = (path: string) =>
    places.some((place) => exists(join(place, path)) || exists(join(place, `${path}.test.ts`)));
  expect(paths.filter((path) => !found(path))).toEqual([]);
});

test.each([
  ['deploy', 10],
  ['kind', 10],
  ['quick-start', 6],
  ['eks', 5],
  ['kubeadm', 10],
  ['ca/migration', 7],
  ['upgrade-nodes', 10],
] as const)('each command of docs/%s.md is a step with a name', (page, atLeast) => {
  const text = read(`docs/${page}.md`);
  expect(stepsOf(text).length).toBeGreaterThan(atLeast);
  expect(unmarkedCommands(text)).toEqual([]);
});

test('a planted command without a name is found', () => {
  const step = '<!-- run: a -->\n\n```sh\nls\n```';
  expect(unmarkedCommands(`${step}\n\n1. x\n\n   \`\`\`sh\n   rm x\n   \`\`\``)).toEqual(['rm x']);
});

test.each([
  ['[a](gone.md)', 'gone.md'],
  ['# One `two`\n[a](#one-two) [b](#gone)', '#gone'],
  ['[a](deploy.md) [b](../README.md) [c](deploy.md#gone)', 'deploy.md#gone'],
  ['`npm run demo`, `npm run -s gone -- x`', 'gone'],
  ['`core/`, `core/issue.ts`, `kubernetes.io/gone`, `core/gone/`', 'core/gone/'],
  ['`test/unit/pages`, `test/unit/gone`', 'test/unit/gone'],
  ['`issue.ts`, `gone.ts`', 'gone.ts'],
])('a planted mistake is found: %s', (text, mistake) => {
  expect(mistakes('docs/planted.md', text)).toEqual([mistake]);
});
